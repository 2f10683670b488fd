"""Memorystore for Redis: instances and clusters, changed by long-running operations; a part of the embedded cloud."""
