"""Which known service answers on a host. It loads nothing of a service before a request to that service is seen."""

from typing import TYPE_CHECKING

from forbear.services.cloud_storage import hosts as cloud_storage_hosts

if TYPE_CHECKING:
    from forbear.http.request import Service


def find(host: str, path: str) -> "Service | None":
    """The service for `path` on `host`, with its recommended rules; None where nothing is known of the host.

    A port in `host` is ignored.
    """
    if cloud_storage_hosts.serves(host, path):
        from forbear.services.cloud_storage.service import RECOMMENDED

        return RECOMMENDED
    return None
