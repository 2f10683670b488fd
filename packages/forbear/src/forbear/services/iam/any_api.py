"""The IAM methods of every Google API: getIamPolicy, setIamPolicy and testIamPermissions, found by path or RPC.

They are the same in all APIs: most requests end with `:setIamPolicy`, those of Compute Engine and Deployment Manager
with `/setIamPolicy`. A test compares these rules with the discovery documents. Importing this loads no table.
"""

import re

from forbear.services.cloud_storage import hosts
from forbear.tables import google_apis

METHODS = ("getIamPolicy", "setIamPolicy", "testIamPermissions")

_RPCS = {f"{name[0].upper()}{name[1:]}": name for name in METHODS}
# The version keeps out /v0/ of Firebase Storage, whose paths end with names that users choose.
_WITH_COLON = re.compile(r"/(?:[a-z]+/)?v[1-9][a-z0-9]*/[^:]")
_WITH_SLASH = re.compile(r"/(?:compute|deploymentmanager)/(?:v[1-9][a-z0-9]*|alpha|beta)/[^/]+/")
_DOTS = frozenset({"", ".", ".."})


def method_of(path: str) -> str | None:
    """Return the IAM method that a path names, such as "setIamPolicy", with or without a query; None for others."""
    path = path.partition("?")[0]
    resource, _, name = path.rpartition(":")
    if _WITH_COLON.match(path) is None or name not in METHODS:
        resource, _, name = path.rpartition("/")
        if _WITH_SLASH.match(path) is None or name not in METHODS:
            return None
    return None if resource.rpartition("/")[2] in _DOTS else name


def rpc_method_of(rpc: str) -> str | None:
    """Return the IAM method that an RPC of a Google API is, such as "setIamPolicy"; None for any other RPC."""
    package, _, name = rpc.removeprefix("/").rpartition("/")
    return _RPCS.get(name) if package.startswith("google.") else None


def serves(host: str, path: str) -> bool:
    """Return whether a request is an IAM method of a Google API other than Cloud Storage."""
    return google_apis.is_google(host) and not is_storage(host) and method_of(path) is not None


def is_storage(host: str) -> bool:
    """Return whether a host serves Cloud Storage only, where a path may end with any words that a user chose."""
    return hosts.kind_of(host) not in (None, hosts.HostKind.SHARED)
