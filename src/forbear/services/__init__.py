"""What is known of services: tables of operations, the rules that read them, and which service lives on which host."""

from forbear.services.registry import find

__all__ = ["find"]
