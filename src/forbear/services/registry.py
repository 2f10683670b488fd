"""Which known service answers on a host. It loads nothing of a service before a request to that service is seen."""

from typing import TYPE_CHECKING

from forbear.services import rfc9110
from forbear.services.cloud_storage import hosts as cloud_storage_hosts

if TYPE_CHECKING:
    from forbear.http.request import Service
    from forbear.policy import Policy


def find(host: str, path: str) -> "Service | None":
    """The service that answers for `path` on `host` (a port is ignored), by its recommended rules; None if unknown."""
    if cloud_storage_hosts.serves(host, path):
        from forbear.services.cloud_storage.service import RECOMMENDED

        return RECOMMENDED
    return None


def recommended(host: str, path: str) -> "Policy":
    """The recommended policy for a request to `path` on `host`; for unknown hosts that of RFC 9110."""
    if cloud_storage_hosts.serves(host, path):
        from forbear.services import cloud_storage

        return cloud_storage.policy
    return rfc9110.policy
