"""Cloud Storage: what its APIs tolerate, and policies: `policy` is recommended, the others are from documents.

`profiles` says how they differ. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.cloud_storage.boto import gsutil_policy
    from forbear.services.cloud_storage.conflicts import WriteToken, is_conflict
    from forbear.services.cloud_storage.service import CloudStorage

    documented: Policy
    documented_2020: Policy
    gsutil: Policy
    policy: Policy
    python_client: Policy

__all__ = [
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

_POLICIES = ("documented", "documented_2020", "gsutil", "policy", "python_client")
_MODULES = {"CloudStorage": "service", "WriteToken": "conflicts", "gsutil_policy": "boto", "is_conflict": "conflicts"}

if not TYPE_CHECKING:  # a checker that sees it would believe in any name

    def __getattr__(name):
        from importlib import import_module

        if name in _POLICIES:
            return getattr(import_module(f"{__name__}.profiles"), name)()
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
