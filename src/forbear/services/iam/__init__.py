"""IAM: what its APIs tolerate, two policies, `policy` (recommended) and `documented` (to the letter), and conflicts.

`profiles` says how the two differ. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.iam.conflicts import has_member, is_conflict
    from forbear.services.iam.service import Iam

    documented: Policy
    policy: Policy

__all__ = ["Iam", "documented", "has_member", "is_conflict", "policy"]

_POLICIES = ("documented", "policy")
_MODULES = {"Iam": "service", "has_member": "conflicts", "is_conflict": "conflicts"}

if not TYPE_CHECKING:  # a checker that sees it would believe in any name

    def __getattr__(name):
        from importlib import import_module

        if name in _POLICIES:
            return getattr(import_module(f"{__name__}.profiles"), name)()
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
