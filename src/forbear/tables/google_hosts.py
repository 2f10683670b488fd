"""Recognize the host names of Google's APIs (googleapis.com), and the API in each."""

import re
from functools import lru_cache

_API = r"(?P<{}>[a-z]+)"
_HOST = re.compile(
    rf"(?:(?:content-)?{_API.format('plain')}(?:\.mtls)?"  # iam, iam.mtls
    rf"|{_API.format('regional')}\.[^.]+\.rep"  # redis.us-central1.rep
    rf"|{_API.format('private')}-[^.]+\.p)\.googleapis\.com"  # redis-endpoint.p: Private Service Connect
)


@lru_cache(maxsize=256)
def api(host: str) -> str | None:
    """Return the API that answers on `host` (with or without a port), such as "iam"; None for any other host.

    `host` may be iam.googleapis.com, or the same API's name for mutual TLS, a region or Private Service Connect.
    """
    match = _HOST.fullmatch(host.lower().partition(":")[0].rstrip("."))
    return None if match is None else match[match.lastgroup or 0]
