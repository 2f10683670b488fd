"""The meaning of HTTP responses: by their status, and by the JSON body of a Google API's error.

Such a body is `{"error": {…}}`, with a status, reasons and details in the inner object.
"""

import json
from collections.abc import Container, Mapping
from typing import Any

from forbear.core.check import is_list, is_mapping
from forbear.core.verdict import Verdict
from forbear.http import status as http_status
from forbear.http.preconditions import MAX_BODY
from forbear.run.runtime import current


def verdict(
    status: int, headers: Mapping[str, str], transient: Container[int] = http_status.TRANSIENT_STATUSES
) -> Verdict | None:
    """Return the verdict on a response, None for a success (a status below 400).

    The statuses in `transient` are transient, with the wait of a Retry-After header; all others are permanent.
    `headers` has lower-case names.
    """
    now = current.get().now() if "retry-after" in headers and "date" not in headers else None
    return http_status.verdict(status, headers, transient, now)


def checked(statuses: Any) -> frozenset[int]:
    """Return a user's `statuses` as a frozenset.

    Raises TypeError if they are a string or no collection, ValueError if one is not an int from 400 to 599.
    """
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
    """Return the reasons in a Google error's JSON body ("conditionNotMet"), an empty set if there are none.

    A body that is no such error, or larger than MAX_BODY, has none.
    """
    errors: Any = _error(body).get("errors")
    return frozenset(str(error.get("reason")) for error in (errors if is_list(errors) else ()) if is_mapping(error))


def error_delay(body: bytes) -> float | None:
    """Return the seconds that the first RetryInfo in a Google error's JSON body asks to wait.

    None if there is no RetryInfo or its delay ("3.5s") cannot be read.
    """
    details: Any = _error(body).get("details")
    for detail in details if is_list(details) else ():
        if is_mapping(detail) and str(detail.get("@type")).endswith("/google.rpc.RetryInfo"):
            text = str(detail.get("retryDelay"))[:24]
            whole, _, fraction = text.removesuffix("s").partition(".")
            plain = text[-1:] == "s" and text.isascii() and whole.isdigit() and (fraction or "0").isdigit()
            return float(text[:-1]) if plain else None
    return None


def _error(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY:  # parsed it may take twenty times as much memory
        return {}
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error: Any = document.get("error") if is_mapping(document) else None
    return error if is_mapping(error) else {}
