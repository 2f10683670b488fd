"""Adapters that add retries to client libraries at each library's own extension point, a module or package for each."""
