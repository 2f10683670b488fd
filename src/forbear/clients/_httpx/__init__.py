"""What the adapters for httpx and httpx2 share: all but the two modules themselves."""
