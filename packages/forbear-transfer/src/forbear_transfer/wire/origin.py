"""The origin of a request: scheme, host and port, read from its URL."""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from forbear.adapters import HiddenText

PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """The origin of a request: `scheme` (http or https), host and port."""

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """The host (an IPv6 address in brackets), with ":port" unless that is the default port of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@lru_cache(maxsize=256)
def _parse_origin(scheme: str, netloc: str) -> Origin:
    parts = urlsplit(f"{scheme}://{netloc}")
    if scheme not in PORTS or not parts.hostname:
        raise ValueError(f"`url` must begin with http:// or https:// and a host, got {scheme}://{netloc}")
    return Origin(scheme, parts.hostname, parts.port or PORTS[scheme])


def split(url: str) -> tuple[Origin, str]:
    """Return the origin of a URL, and its path and query unchanged ("/" if there is no path).

    ValueError unless it begins with http:// or https://, a host and, if given, a valid port.
    """
    scheme, _, rest = url.partition("://")
    slash = rest.find("/")
    netloc, target = (rest, "/") if slash < 0 else (rest[:slash], rest[slash:])
    return _parse_origin(scheme.lower(), netloc), HiddenText(target)
