"""The code of one row of docs/migrate.md, and the scripts of failures that both sides meet."""

from threading import Event
from typing import Any, NamedTuple

from google.api_core.exceptions import from_http_status

A, B = ConnectionError, TimeoutError
event = Event()


class Limited(ConnectionError):
    """An error that says how long to wait."""

    wait = 3


def set_and_fail() -> Exception:
    """Set the event, as another thread would, and return the error of the attempt."""
    event.set()
    return A("lost")


google_error: Any = from_http_status
Google = [google_error(503, "busy"), google_error(429, "too many"), "done"]
Lasting = [A("lost")]
Twice = [A("lost"), A("lost"), "done"]


class Pair(NamedTuple):
    """The code around the snippets of one row: `{0}` is the first snippet of its side, `{1}` the second.

    `same` says what both have in common: the outcome (o), the number of calls (c), the waits (w).
    """

    key: str
    old: str
    new: str
    script: list[Any]
    same: str = "oc"
