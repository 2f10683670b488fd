"""What the adapters for httpx and httpx2 share. The two libraries have the same names, so neither is imported here."""
