"""Driving runs: the clock, sleep and randomness, and the loops that ask the core what to do after each attempt."""
