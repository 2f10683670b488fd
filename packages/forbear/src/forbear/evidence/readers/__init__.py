"""The readers: one small function for each place where a client keeps what it sent. They load on demand."""
