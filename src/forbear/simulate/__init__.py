"""Simulate a fleet of clients against a service, in virtual time, with the waits and stops of real policies."""
