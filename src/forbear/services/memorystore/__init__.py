"""Memorystore: what its admin APIs tolerate, and two policies: `policy` (recommended), `documented` (to the letter).

`profiles` says how the two differ. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.memorystore.service import Memorystore

    documented: Policy
    policy: Policy

__all__ = ["Memorystore", "documented", "policy"]

_POLICIES = ("documented", "policy")
_MODULES = {"Memorystore": "service"}

if not TYPE_CHECKING:  # a checker that sees it would believe in any name

    def __getattr__(name):
        from importlib import import_module

        if name in _POLICIES:
            return getattr(import_module(f"{__name__}.profiles"), name)()
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
