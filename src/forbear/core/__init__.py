"""Pure decisions: what a failure means, how long to hold back, when to stop. No clock, sleep, randomness or I/O."""
