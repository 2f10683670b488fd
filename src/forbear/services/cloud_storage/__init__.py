"""Cloud Storage: what its JSON API tolerates, and two policies: `policy` (recommended), `documented` (to the letter).

`profiles` says how the two differ. Nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.cloud_storage.service import CloudStorage

    documented: Policy
    policy: Policy

__all__ = ["CloudStorage", "documented", "policy"]

if not TYPE_CHECKING:  # a checker that sees it would believe in any name

    def __getattr__(name):
        if name in ("documented", "policy"):
            from forbear.services.cloud_storage import profiles

            return getattr(profiles, name)()
        if name == "CloudStorage":
            from forbear.services.cloud_storage.service import CloudStorage

            return CloudStorage
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
