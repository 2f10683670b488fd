"""Memorystore: the safety of its admin operations, and two policies: `policy` (recommended) and `documented`.

`documented` follows Google's page; `service.py` explains the difference. A module is loaded when one of its names is
first used.
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
