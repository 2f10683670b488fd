"""What is known of services: tables of operations, the rules that read them, and which service lives on which host."""

from forbear.services.registry import find, find_rpc

__all__ = ["find", "find_rpc"]
