"""Endpoint: where the service is, how it is reached, and what may be sent where. It opens no connection."""

import os
import re
import sys
from ipaddress import ip_address
from urllib.parse import urlsplit

ENDPOINT = "https://storage.googleapis.com"
_GOOGLE = ".googleapis.com"
_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[!-~]+")
_AUTHORITY = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")


def checked(endpoint: str) -> str:
    """An endpoint without a slash at its end; emulators are often named without a scheme."""
    url = endpoint.rstrip("/")
    url = url if "://" in url else f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"`endpoint` must be an http or https URL, such as {ENDPOINT}, got {endpoint!r}")
    return url


def is_private(endpoint: str) -> bool:
    """Return whether a token that is sent there cannot be read on the way."""
    url = urlsplit(endpoint)
    return url.scheme == "https" or is_loopback(url.hostname or "")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name or address: localhost, 127.0.0.0/8, ::1."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_trusted(url: str, endpoint: str) -> bool:
    """Return whether data for `endpoint` may go to `url`, an address that a server or a file has named.

    That is the same scheme, host and port; another name of this machine with the same port, since emulators name
    themselves as they like; or over https, where the endpoint has it too, a host of Google's. Addresses that two
    libraries might read differently are refused.
    """
    one, other = _origin(endpoint), _origin(url)
    if one is None or other is None:
        return False
    if one == other:
        return True
    (scheme, host, port), (_, there, _) = one, other
    if (scheme, port) == (other[0], other[2]) and is_loopback(host):
        return is_loopback(there) or _is_unspecified(there)
    return scheme == "https" and other == ("https", there, 443) and there.endswith(_GOOGLE)


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL, for messages: the rest may be a secret."""
    found = _origin(url)
    return "an address that is no http or https URL" if found is None else f"{found[0]}://{found[1]}:{found[2]}"


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return the scheme, host and port of a URL; None where it has a user or is no plain http or https URL."""
    if not _VISIBLE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None or parts.scheme not in _PORTS:
        return None
    port = int(authority["port"] or _PORTS[parts.scheme])
    return (parts.scheme, authority["host"].strip("[]").lower(), port) if 0 < port < 65536 else None


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def proxy(endpoint: str) -> str | None:
    """Return the proxy that the environment (HTTPS_PROXY, NO_PROXY and so on) names for it, None for the straight way.

    A loopback endpoint has none: a proxy would read the tokens that may go there over plain http, and would reach its
    own machine.
    """
    url = urlsplit(endpoint)
    host = url.hostname or ""
    if is_loopback(host):
        return None
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # not cheap to import, and most go straight

    found = None if proxy_bypass(host) else getproxies().get(url.scheme)
    return found if found is None or "://" in found else f"http://{found}"
