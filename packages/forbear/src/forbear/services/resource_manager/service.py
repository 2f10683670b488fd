"""Resource Manager: the service that judges requests for projects, folders, organizations and tags, and its policies.

The tables have the APIs v1, v1beta1, v2 (folders) and v3; operations that are equal in several of them share a row.
"""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.policy import Policy
from forbear.services import iam
from forbear.services.errors import ErrorVerdicts
from forbear.services.iam.service import AccessService


class ResourceManager(AccessService):
    """The service Resource Manager: it judges requests, RPCs and responses, by the options of `AccessService`.

    >>> from forbear.http.request import Request
    >>> read = Request("GET", "cloudresourcemanager.googleapis.com", "/v3/projects/my-project")
    >>> judgement = ResourceManager().classify(read)
    >>> judgement.operation, judgement.repeatable
    ('cloudresourcemanager.projects.get', True)
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
    """Return `iam.documented` for Resource Manager: the retry page of IAM covers the IAM methods of these APIs."""
    return iam.documented.replace(on=ErrorVerdicts(DOCUMENTED), service=DOCUMENTED)


@cache
def policy() -> Policy:
    """Return the recommended policy: that of IAM for Resource Manager, for the same reasons."""
    return iam.policy.replace(on=ErrorVerdicts(RECOMMENDED), service=RECOMMENDED)
