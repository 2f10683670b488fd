"""Recognize the host names of Google's APIs (googleapis.com), and the API in each."""

import re
from functools import lru_cache

_GOOGLE = re.compile(r"(?:[a-z0-9][a-z0-9-]*\.)+googleapis\.com")
_WITH_PORT = re.compile(r"([^:@]*)(?::[0-9]*)?")
_API = r"(?P<{}>[a-z]+)"
_HOST = re.compile(
    rf"(?:(?:content-)?{_API.format('plain')}(?:\.mtls)?"  # iam, iam.mtls
    rf"|{_API.format('regional')}\.[^.]+\.rep"  # redis.us-central1.rep
    rf"|{_API.format('private')}-[^.]+\.p)\.googleapis\.com"  # redis-endpoint.p: Private Service Connect
)


@lru_cache(maxsize=256)
def api(host: str) -> str | None:
    """Return the API that answers on `host`, such as "iam", also by mutual TLS, region or endpoint; None for others."""
    match = _HOST.fullmatch(name_of(host))
    return None if match is None else match[match.lastgroup or 0]


@lru_cache(maxsize=256)
def is_google(host: str) -> bool:
    """Return whether `host` (with or without a port) is below googleapis.com, such as us-east1-run.googleapis.com."""
    return _GOOGLE.fullmatch(name_of(host)) is not None


def name_of(host: str) -> str:
    """Return a host in lower case, without its port and a final dot; "" for an IPv6 address or a user name."""
    match = _WITH_PORT.fullmatch(host.lower())
    return "" if match is None else match[1].removesuffix(".")
