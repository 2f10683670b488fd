"""Pure HTTP meaning: what headers, statuses and bodies say about repeating a request. No I/O and no client library."""
