"""Check the host that a request names against those that are allowed.

This keeps out web pages that reach this machine by DNS rebinding, under a name of their own.
"""

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from forbear_cloud.http.messages import ApiError

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[0-9a-z._-]{1,253})(?::\d{0,5})?")
_LONGEST = 300
_LOOPBACK, _GOOGLE = "localhost", "googleapis.com"


class Hosts:
    """The hosts that requests may name: loopback, Google's APIs, and the `allowed` names.

    These are loopback addresses, "localhost", "googleapis.com" and the subdomains of both; an attacker cannot choose
    their addresses. Every port is allowed, because a forwarder on this machine, which breaks connections or passes them
    into a container, has a port of its own. An `allowed` name may state its port, and then only that port is allowed.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._allows = lru_cache(256)(self._is_allowed)  # nearly all requests name the same host

    def check(self, host: str | None, target: str) -> None:
        """Raise ApiError 403 if the Host header, or a `target` that is a whole URL, names a host not allowed.

        A missing Host header (None) is allowed.
        """
        for authority in (host, _authority(target)):
            if authority is not None and not (len(authority) < _LONGEST and self._allows(authority)):
                raise ApiError(
                    403,
                    f"The host '{authority[:80]}' is not one of this server, which is for tests on this machine. Use "
                    "localhost, 127.0.0.1 or a host of Google's APIs, or allow it: `allowed_hosts`, --allow-host.",
                    "hostNotAllowed",
                )

    def _is_allowed(self, authority: str) -> bool:
        authority = authority.strip().lower()
        parts = _AUTHORITY.fullmatch(authority)
        if parts is None:
            return False
        name = parts[1].removesuffix(".")
        if authority in self._allowed or name in self._allowed:
            return True
        return is_loopback(name.strip("[]")) or f".{name}".endswith((f".{_LOOPBACK}", f".{_GOOGLE}"))


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address (without brackets) or the name localhost, in upper or lower case."""
    if host.lower() == _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authority(target: str) -> str | None:
    """Return the authority of a target that is a whole URL; None for a path, "" for a URL that cannot be parsed."""
    if target.startswith("/") or "://" not in target:
        return None
    try:
        return urlsplit(target).netloc
    except ValueError:
        return ""
