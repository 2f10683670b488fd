"""The origin of a request: scheme, host and port, read from its URL."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
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
        return _format_netloc(self)


@lru_cache(maxsize=256)
def _format_netloc(origin: Origin) -> str:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return host if origin.port == PORTS[origin.scheme] else f"{host}:{origin.port}"


@lru_cache(maxsize=256)
def _parse_origin(text: str) -> Origin:
    scheme, _, netloc = text.partition("://")
    scheme = scheme.lower()
    parts = urlsplit(f"{scheme}://{netloc}")
    if scheme not in PORTS or not parts.hostname:
        raise ValueError(f"`url` must begin with http:// or https:// and a host, got {scheme}://{netloc}")
    return Origin(scheme, parts.hostname, parts.port or PORTS[scheme])


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a host is, None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def split(url: str) -> tuple[Origin, str]:
    """Return the origin of a URL, and its path and query unchanged ("/" if there is no path).

    ValueError unless it begins with http:// or https://, a host and, if given, a valid port.
    """
    slash = url.find("/", url.find("://") + 3)
    if slash < 0:
        return _parse_origin(url), HiddenText("/")
    return _parse_origin(url[:slash]), HiddenText(url[slash:])
