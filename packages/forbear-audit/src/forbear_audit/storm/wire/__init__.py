"""The patches of a storm: one for each client library, at its lowest send function, below its own retries."""
