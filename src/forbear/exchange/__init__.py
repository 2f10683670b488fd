"""One call through its attempts, without I/O: an HTTP request, an RPC, a Redis command. The clients drive it."""
