"""The services that forbear knows, the registry that finds them, and one module that reads errors of all clients."""

from forbear.services.registry import find, find_rpc

__all__ = ["find", "find_rpc"]
