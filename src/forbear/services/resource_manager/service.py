"""Resource Manager (v1): the service that judges requests for the allow policies of projects, and its two policies."""

from functools import cache
from pathlib import Path
from typing import ClassVar

from forbear.policy import Policy
from forbear.services import iam
from forbear.services.errors import ErrorVerdicts
from forbear.services.iam.service import DOCUMENTED_STATUSES
from forbear.tables.service import TableService


class ResourceManager(TableService):
    """The service Resource Manager: it judges requests and responses. `statuses` replaces the transient statuses.

    By default these are 408, 429, 500, 502, 503 and 504.
    """

    __slots__ = ()

    name = "resource_manager"
    folder = Path(__file__).parent
    files: ClassVar = {"cloudresourcemanager": ("projects",)}


RECOMMENDED = ResourceManager()
DOCUMENTED = ResourceManager(statuses=DOCUMENTED_STATUSES)


@cache
def documented() -> Policy:
    """Return a policy that follows the retry page of IAM to the letter, which covers these methods, too.

    It is `iam.documented` with the service Resource Manager.
    """
    return iam.documented.replace(on=ErrorVerdicts(DOCUMENTED), service=DOCUMENTED)


@cache
def policy() -> Policy:
    """Return the recommended policy: that of IAM with the service Resource Manager.

    The same page and the same reasons apply.
    """
    return iam.policy.replace(on=ErrorVerdicts(RECOMMENDED), service=RECOMMENDED)
