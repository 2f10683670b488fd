"""Cloud Storage: the safety of its operations, conflicts, and policies. `policy` is the recommended one.

The other policies follow documents; the module `profiles` describes each. A module is loaded when one of its names is
first used.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.cloud_storage.boto import gsutil_policy
    from forbear.services.cloud_storage.conflicts import WriteToken, is_conflict
    from forbear.services.cloud_storage.service import RECOMMENDED, CloudStorage

    documented: Policy
    documented_2020: Policy
    gsutil: Policy
    policy: Policy
    python_client: Policy

__all__ = [
    "RECOMMENDED",
    "CloudStorage",
    "WriteToken",
    "documented",
    "documented_2020",
    "gsutil",
    "gsutil_policy",
    "is_conflict",
    "policy",
    "python_client",
]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {
            "RECOMMENDED": "service",
            "CloudStorage": "service",
            "WriteToken": "conflicts",
            "gsutil_policy": "boto",
            "is_conflict": "conflicts",
        },
        calls=dict.fromkeys(("documented", "documented_2020", "gsutil", "policy", "python_client"), "profiles"),
    )
