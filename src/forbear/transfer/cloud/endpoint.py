"""Endpoint: where the service is, how it is reached, and whether a token may go there. It opens no connection."""

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

ENDPOINT = "https://storage.googleapis.com"


def checked(endpoint: str) -> str:
    """An endpoint without a slash at its end; emulators are often named without a scheme."""
    url = endpoint.rstrip("/")
    url = url if "://" in url else f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"`endpoint` must be an http or https URL, such as {ENDPOINT}, got {endpoint!r}")
    return url


def is_private(endpoint: str) -> bool:
    """Whether nobody on the way to it can read a token."""
    url = urlsplit(endpoint)
    host = url.hostname or ""
    try:
        return url.scheme == "https" or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def proxy(endpoint: str) -> str | None:
    """The proxy that the environment (HTTPS_PROXY, NO_PROXY and so on) names for it, None for the straight way.

    aiohttp can find it by itself, too, but looks for it anew for each request, in a thread.
    """
    url = urlsplit(endpoint)
    found = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
    return found if found is None or "://" in found else f"http://{found}"
