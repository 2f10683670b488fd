"""What transfers know of Cloud Storage: addresses, objects, credentials, and the connections they share."""
