"""The endpoint of the service: its URL, its proxy, and the other URLs that may receive its data."""

import base64
import os
import re
import sys
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from forbear.adapters import HiddenText, conceal, redact_address
from forbear_transfer.errors import TransferError
from forbear_transfer.wire.origin import PORTS, Origin, parse_address

ENDPOINT = "https://storage.googleapis.com"
_GOOGLE = ".googleapis.com"

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[ -~]*")
_OWN = {
    "accept-encoding", "connection", "content-length", "content-range", "content-type", "expect", "host", "range",
    "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-goog-gcs-idempotency-token", "x-goog-hash",
    "x-goog-user-project",
}  # fmt: skip
_OWN_PREFIXES = ("if-", "proxy-", "x-goog-if-", "x-goog-encryption-", "x-goog-copy-source-", "x-upload-")
_SECRET = {"authorization", "cookie"}
_VISIBLE = re.compile(r"[!-~]+")
_AUTHORITY = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")


def check_endpoint(endpoint: str) -> str:
    """Return an endpoint with a scheme and without a slash at its end; the default scheme is http, for emulators.

    Raise ValueError for another scheme than http and https.
    """
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    if _parse_origin(url) is None or "?" in url or "#" in url:
        raise ValueError(
            "`endpoint` must be an http or https URL without user, query and fragment, "
            f"got {redact_address(endpoint)!r}; such as {ENDPOINT}"
        )
    return url.rstrip("/")


def check_headers(headers: Mapping[str, str], endpoint: str) -> dict[str, str]:
    """Return additional headers for an endpoint, with lower-case names.

    ValueError for a wrong name or value, for a header that transfers set themselves, and for a secret over plain http.
    """
    checked: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"`headers` must have names of letters, digits and dashes, got {name!r}; such as X-Test")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"`headers`: the value of {name} must be visible ASCII characters on one line; encode it")
        if lower in _OWN or lower.startswith(_OWN_PREFIXES):
            raise ValueError(f"`headers` must not set {name}, which transfers set themselves; leave it out")
        if lower in _SECRET and not is_private(endpoint):
            raise ValueError(f"`headers` must not send {name} to {endpoint} over plain http; use https")
        checked[lower] = HiddenText(value)  # it may be a secret
    return checked


def conceal_key(headers: dict[str, str], endpoint: str) -> dict[str, str]:
    """Return the headers with an encryption key, and hide the key in every text of forbear from now on.

    TransferError if the endpoint is plain http on another machine.
    """
    if not is_private(endpoint):
        text = f"an encryption key must not be sent to {endpoint}: over plain http anybody could read it"
        raise TransferError(text, "use https")
    for name, value in headers.items():
        if name.endswith("-key"):
            for spelling in _spell(value):
                conceal(spelling)
    return headers


def _spell(key: str) -> list[str]:
    """Return how a server may spell a key that it got in base64: percent-encoded, URL-safe, in JSON, as hexadecimals.

    Without padding, so that a text with it contains them, too.
    """
    plain = key.rstrip("=")
    encoded = quote(plain, safe="")
    raw = base64.b64decode(key).hex()
    return [
        plain, encoded, encoded.replace("%2B", "%2b").replace("%2F", "%2f"), plain.replace("+", " "),
        plain.replace("/", "\\/"), plain.replace("+", "-").replace("/", "_"), raw, raw.upper(),
    ]  # fmt: skip


def is_private(endpoint: str) -> bool:
    """Return whether a token that is sent to an endpoint stays secret: over https, or within this machine."""
    url = urlsplit(endpoint)
    return url.scheme == "https" or is_loopback(url.hostname or "")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: localhost, 127.0.0.0/8 or ::1."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    address = parse_address(host)
    return address is not None and address.is_loopback


def is_trusted(url: str, endpoint: str) -> bool:
    """Return whether data for `endpoint` may be sent to `url`, which a server or a file has named.

    A URL with the same scheme, host and port is trusted. So is another name of this machine with the same port, since
    emulators use any name. If the endpoint uses https, https hosts of Google are trusted, too. URLs that two libraries
    might parse differently are refused.
    """
    one, other = _parse_origin(endpoint), _parse_origin(url)
    if one is None or other is None:
        return False
    if one == other:
        return True
    if (one.scheme, one.port) == (other.scheme, other.port) and is_loopback(one.host):
        address = parse_address(other.host)
        return is_loopback(other.host) or (address is not None and address.is_unspecified)
    return one.scheme == "https" and other == ("https", other.host, 443) and other.host.endswith(_GOOGLE)


def origin(url: str) -> str:
    """Return "SCHEME://HOST:PORT" of a URL for messages: the rest may be a secret.

    If it is no http or https URL, return a text that says so.
    """
    parts = _parse_origin(url)
    return "an address that is no http or https URL" if parts is None else "{}://{}:{}".format(*parts)


def _parse_origin(url: str) -> Origin | None:
    """Return the scheme, host and port of a URL; None if it has a user or is no plain http or https URL."""
    if not _VISIBLE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None or parts.scheme not in PORTS:
        return None
    port = int(authority["port"] or PORTS[parts.scheme])
    return Origin(parts.scheme, authority["host"].strip("[]").lower(), port) if 0 < port < 65536 else None


def proxy(endpoint: str) -> str | None:
    """Return the URL of the proxy for an endpoint from the environment (HTTPS_PROXY, NO_PROXY and so on), else None.

    It is a hidden text, as it may have a password.

    A loopback endpoint has none: a proxy would see tokens sent over plain http, and would connect to its own machine.
    """
    url = urlsplit(endpoint)
    host = url.hostname or ""
    if is_loopback(host):
        return None
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # expensive to import, and few machines have a proxy

    address = None if proxy_bypass(host) else getproxies().get(url.scheme)
    if address is None:
        return None
    return HiddenText(address if "://" in address else f"http://{address}")
