"""Resource Manager: projects, folders, organizations and tags, and two policies, `policy` and `documented`.

Both are those of IAM, for this service; `policy` is the recommended one. The module is loaded at the first use.
"""

from typing import TYPE_CHECKING

from forbear.core.lazy import exports

if TYPE_CHECKING:
    from forbear.policy import Policy
    from forbear.services.resource_manager.service import RECOMMENDED, ResourceManager

    documented: Policy
    policy: Policy

__all__ = ["RECOMMENDED", "ResourceManager", "documented", "policy"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = exports(
        __name__,
        {"RECOMMENDED": "service", "ResourceManager": "service"},
        calls={"documented": "service", "policy": "service"},
    )
