"""Faults: define them, choose the requests they meet, and inject them."""
