"""Google's APIs: their host names (googleapis.com), and what the JSON bodies of their errors say.

Such a body is `{"error": {…}}`, with a status, reasons and details in the inner object.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from forbear.core.check import is_list, is_mapping
from forbear.http.preconditions import MAX_BODY

_GOOGLE = r"(?:[a-z0-9][a-z0-9-]*\.)+googleapis\.com"
_WITH_PORT = re.compile(r"([^:@]*)(?::[0-9]*)?")
_API = r"(?P<{}>[a-z]+)"
_HOST = (
    rf"(?:(?:content-)?{_API.format('plain')}(?:\.mtls)?"  # iam, iam.mtls
    rf"|{_API.format('regional')}\.[^.]+\.rep"  # redis.us-central1.rep
    rf"|{_API.format('private')}-[^.]+\.p)\.googleapis\.com"  # redis-endpoint.p: Private Service Connect
)


@lru_cache(maxsize=256)
def api(host: str) -> str | None:
    """Return the API that answers on `host`, such as "iam", also by mutual TLS, region or endpoint; None for others."""
    match = re.fullmatch(_HOST, name_of(host))
    return None if match is None else match[match.lastgroup or 0]


@lru_cache(maxsize=256)
def is_google(host: str) -> bool:
    """Return whether `host` (with or without a port) is below googleapis.com, such as us-east1-run.googleapis.com."""
    return re.fullmatch(_GOOGLE, name_of(host)) is not None


def name_of(host: str) -> str:
    """Return a host in lower case, without its port and a final dot; "" for an IPv6 address or a user name."""
    match = _WITH_PORT.fullmatch(host.lower())
    return "" if match is None else match[1].removesuffix(".")


ReadBody = Callable[[], bytes] | None
"""A function that reads the body of a response, if there is one; it is called where the verdict depends on that."""


def check_statuses(statuses: Any) -> frozenset[int]:
    """Return a user's `statuses` as a frozenset; raise TypeError or ValueError for what is no set of error statuses."""
    if isinstance(statuses, str) or not hasattr(statuses, "__iter__"):
        raise TypeError(f"`statuses` must be a set of HTTP statuses, such as {{429, 503}}, got {statuses!r}")
    for status in statuses:
        if not isinstance(status, int) or not 400 <= status < 600:
            raise ValueError(f"`statuses` must be HTTP statuses of errors, from 400 to 599, got {status!r}")
    return frozenset(statuses)


def error_status(body: bytes) -> str | None:
    """Return the status in a Google error's JSON body ("ABORTED"), None if the body is no such error or too large."""
    status: object = _error(body).get("status")
    return status if isinstance(status, str) else None


def error_reasons(body: bytes) -> frozenset[str]:
    """Return the reasons in a Google error's JSON body ("conditionNotMet"), an empty set if there are none."""
    errors: Any = _error(body).get("errors")
    return frozenset(str(error.get("reason")) for error in (errors if is_list(errors) else ()) if is_mapping(error))


def _error(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY:  # parsed it may take twenty times as much memory
        return {}
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error: Any = document.get("error") if is_mapping(document) else None
    return error if is_mapping(error) else {}
