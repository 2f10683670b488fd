"""The meaning of HTTP responses: by their status, and by the JSON body of a Google API's error."""

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
    """Return the verdict on a response, None for a success; the statuses in `transient` are worth a retry."""
    now = current.get().now() if "retry-after" in headers and "date" not in headers else None
    return http_status.verdict(status, headers, transient, now)


def checked(statuses: Any) -> frozenset[int]:
    """Return a user's `statuses` as a set. Raises TypeError or ValueError if they are not HTTP statuses of errors."""
    if isinstance(statuses, str) or not hasattr(statuses, "__iter__"):
        raise TypeError(f"`statuses` must be a set of HTTP statuses, such as {{429, 503}}, got {statuses!r}")
    for status in statuses:
        if not isinstance(status, int) or not 400 <= status < 600:
            raise ValueError(f"`statuses` must be HTTP statuses of errors, from 400 to 599, got {status!r}")
    return frozenset(statuses)


def error_status(body: bytes) -> str | None:
    """Return the status that an error names ("ABORTED"), None if the body is no such error."""
    status: object = _error(body).get("status")
    return status if isinstance(status, str) else None


def error_reasons(body: bytes) -> frozenset[str]:
    """Return the reasons that an error names ("conditionNotMet"), none if the body is no such error."""
    errors: Any = _error(body).get("errors")
    return frozenset(str(error.get("reason")) for error in (errors if is_list(errors) else ()) if is_mapping(error))


def error_delay(body: bytes) -> float | None:
    """Return the seconds that an error's RetryInfo asks to wait, None if the body has no valid one."""
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
