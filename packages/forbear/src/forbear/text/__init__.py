"""Text for people: secrets are hidden, durations are read and shown. It knows nothing of retries."""
