"""Resource Manager: the service that judges requests for projects, folders, organizations and tags, and its policies.

The tables have the APIs v1, v1beta1, v2 (folders) and v3; operations that are equal in several of them share a row.
"""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.policy import Policy
from forbear.services import iam
from forbear.services.error_verdicts import ErrorVerdicts
from forbear.services.iam.service import AccessService


class ResourceManager(AccessService):
    """The service Resource Manager: it judges requests, RPCs and responses.

    `documented` takes the statuses of IAM's retry page. `statuses` replaces the transient statuses (408, 429, 500,
    502, 503 and 504; with `documented` 500, 502, 503 and 504). `retry_not_found` makes 404 transient, too, unless it
    may mean that an earlier attempt worked.
    """

    __slots__ = ()

    name = "resource_manager"
    folder = Path(__file__).parent
    files: ClassVar = {"cloudresourcemanager": ("operations",)}


RECOMMENDED = ResourceManager()
"""The service with its recommended rules."""

DOCUMENTED = ResourceManager(documented=True)


@cache
def documented() -> Policy:
    """Return a policy that follows the retry page of IAM to the letter, which covers the IAM methods of these APIs.

    It is `iam.documented` with the service Resource Manager. Other operations have the same waits, limits and statuses,
    and the table says which of them may be repeated.
    """
    return iam.documented.replace(on=ErrorVerdicts(DOCUMENTED), service=DOCUMENTED)


@cache
def policy() -> Policy:
    """Return the recommended policy: that of IAM with the service Resource Manager.

    The same page and the same reasons apply.
    """
    return iam.policy.replace(on=ErrorVerdicts(RECOMMENDED), service=RECOMMENDED)
