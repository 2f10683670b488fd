"""The decision: verdicts, backoff, limits, budget rules, events and reports. No clock, sleep, randomness or I/O."""
