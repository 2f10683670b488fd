"""The services that forbear knows, their registry, and a module that reads the errors of all HTTP and gRPC clients.

`find` returns the service of a host and path, `find_rpc` that of an RPC.
"""

from forbear.services.registry import find, find_rpc

__all__ = ["find", "find_rpc"]
