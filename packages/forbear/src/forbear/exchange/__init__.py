"""One call through its attempts, without I/O: an HTTP request, an RPC, or a Redis command.

The client adapters do the I/O.
"""
