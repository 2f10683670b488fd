"""Resource Manager (v1): the allow policies of projects."""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.policy import Policy
from forbear.services import iam
from forbear.services.errors import ErrorVerdicts
from forbear.services.iam.service import DOCUMENTED_STATUSES
from forbear.tables.service import TableService


class ResourceManager(TableService):
    """The knowledge of Resource Manager; `statuses` are the transient ones (408, 429, 500, 502, 503 and 504)."""

    __slots__ = ()

    name = "resource_manager"
    folder = Path(__file__).parent
    files: ClassVar = {"cloudresourcemanager": ("projects",)}


RECOMMENDED = ResourceManager()
DOCUMENTED = ResourceManager(statuses=DOCUMENTED_STATUSES)


@cache
def documented() -> Policy:
    """Return a policy that follows the retry page of IAM to the letter, as `iam.documented` does.

    The page covers these methods, too.
    """
    return iam.documented.replace(on=ErrorVerdicts(DOCUMENTED), service=DOCUMENTED)


@cache
def policy() -> Policy:
    """Return the recommended policy, which is that of IAM, because the same page and reasons apply."""
    return iam.policy.replace(on=ErrorVerdicts(RECOMMENDED), service=RECOMMENDED)
