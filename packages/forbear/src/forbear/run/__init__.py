"""Run a policy: the runtime (clock, sleep, randomness), the state of one run, and the loops around it."""
