"""Which known service answers on a host. It loads nothing of a service before a request to that service is seen."""

from importlib import import_module
from typing import TYPE_CHECKING

from forbear.services import googleapis, rfc9110
from forbear.services.cloud_storage import hosts as cloud_storage_hosts

if TYPE_CHECKING:
    from forbear.http.request import Service
    from forbear.policy import Policy
    from forbear.services.rpc import RpcService

_BY_HOST = {"iam": "iam", "iamcredentials": "iam", "redis": "memorystore", "memorystore": "memorystore"}
_BY_PACKAGE = {
    "google.storage.": "cloud_storage",
    **dict.fromkeys(("google.iam.admin.", "google.iam.credentials.", "google.iam.v2.", "google.iam.v3."), "iam"),
    **dict.fromkeys(("google.cloud.redis.", "google.cloud.memorystore."), "memorystore"),
}


def find(host: str, path: str) -> "Service | None":
    """The service that answers for `path` on `host` (a port is ignored), by its recommended rules; None if unknown."""
    name = _name(host, path)
    if name is None:
        return None
    found: Service = import_module(f"forbear.services.{name}.service").RECOMMENDED
    return found


def recommended(host: str, path: str) -> "Policy":
    """The recommended policy for a request to `path` on `host`; for unknown hosts that of RFC 9110."""
    name = _name(host, path)
    if name is None:
        return rfc9110.policy
    found: Policy = import_module(f"forbear.services.{name}").policy
    return found


def find_rpc(method: str, host: str = "") -> "RpcService | None":
    """The service that knows the RPC `method` ("/google.storage.v2.Storage/GetObject"), by its recommended rules.

    `host` is asked where the RPC is one that many services share, such as those of long-running operations.
    """
    plain = method.removeprefix("/")
    name = next((known for package, known in _BY_PACKAGE.items() if plain.startswith(package)), None)
    name = name or _name(host, "")
    if name is None:
        return None
    found: RpcService = import_module(f"forbear.services.{name}.service").RECOMMENDED
    return found


def _name(host: str, path: str) -> str | None:
    if cloud_storage_hosts.serves(host, path):
        return "cloud_storage"
    return _BY_HOST.get(googleapis.api(host) or "")
