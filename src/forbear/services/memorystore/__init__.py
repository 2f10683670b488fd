"""Memorystore: what its admin APIs tolerate, and two policies: `policy` (recommended), `documented` (to the letter).

`profiles` says how the two differ. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.memorystore.service import RECOMMENDED, Memorystore

    documented: Policy
    policy: Policy

__all__ = ["RECOMMENDED", "Memorystore", "documented", "policy"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {"RECOMMENDED": "service", "Memorystore": "service"},
        calls={"documented": "service", "policy": "service"},
    )
