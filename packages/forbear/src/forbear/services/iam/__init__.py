"""IAM: the safety of its operations, conflicts, and two policies: `policy` (recommended) and `documented`.

`documented` follows the retry page; `service.py` explains the difference. A module is loaded when one of its names is
first used.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.iam.service import RECOMMENDED, Iam, has_member, is_conflict

    documented: Policy
    policy: Policy

__all__ = ["RECOMMENDED", "Iam", "documented", "has_member", "is_conflict", "policy"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {"RECOMMENDED": "service", "Iam": "service", "has_member": "service", "is_conflict": "service"},
        calls={"documented": "service", "policy": "service"},
    )
