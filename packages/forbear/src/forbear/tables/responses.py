"""The meaning of an HTTP response by the JSON body of a Google API's error.

Such a body is `{"error": {…}}`, with a status, reasons and details in the inner object.
"""

import json
from collections.abc import Callable
from typing import Any

from forbear.core.check import is_list, is_mapping
from forbear.http.preconditions import MAX_BODY

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
