"""Adapters: retries inside the clients people already use, each on the library's own seam and in a file of its own."""
