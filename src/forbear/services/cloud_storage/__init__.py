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


def __getattr__(name: str) -> object:
    if name in ("documented", "policy"):
        from forbear.services.cloud_storage import profiles

        made: Policy = getattr(profiles, name)()
        return made
    if name == "CloudStorage":
        from forbear.services.cloud_storage.service import CloudStorage

        return CloudStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
