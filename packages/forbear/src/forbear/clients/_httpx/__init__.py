"""The shared code of the adapters for httpx and httpx2.

The two libraries have the same names, so neither is imported here.
"""
