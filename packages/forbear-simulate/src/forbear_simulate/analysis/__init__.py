"""Runs of a scenario, their figures, and the questions that take many of them: verdict, search, map, sweep."""
