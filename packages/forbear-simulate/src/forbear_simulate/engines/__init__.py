"""The two engines: exact, event by event, and cohort, with the means of large fleets."""
