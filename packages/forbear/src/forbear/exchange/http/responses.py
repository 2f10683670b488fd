"""Decide what to do with the body of a response: read it at once, continue it where it breaks, watch it, or leave it.

An error that ends the body of a write, or of a response that was given up on, must carry a report. Otherwise a policy
around the client would take it for a failed attempt and send the write again. So does the error that
`raise_for_status()` of a response raises on which forbear gave up. `HandedOut` has the bytes that the caller received.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256

from forbear.core.report import attach, report_on
from forbear.http import ranges
from forbear.http.ranges import number
from forbear.http.request import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash
    from typing import Any


CONTINUED = ("GET", "HEAD")
"""The methods whose bodies are continued where they break, rather than read at once."""

_WHOLE_OR_PART = (200, 206)
"""The statuses of responses to a GET whose body can be continued in another response."""

_SHORT = 64 * 1024
"""The bytes up to which a response is short, and read at once."""

SHOWN = 1024 * 1024
"""The bytes up to which a body, decoded or not, is read before `on_result` judges its response."""

LOOK = 1.0
"""The seconds for which the body of an error is read to find a wait in it; a server may send one without an end."""

_ENDLESS = ("text/event-stream", "multipart/x-mixed-replace")
"""The content types of bodies that go on for as long as the server likes."""


def is_bodiless(method: str, status: int) -> bool:
    """Return whether a response ends with its headers, whatever length they say (RFC 9112 §6.3).

    It does after a HEAD request, and with a status of 1xx, 204 or 304.
    """
    return method == "HEAD" or status < 200 or status in (204, 304)


def is_read_at_once(method: str, status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a response is short, no error, and belongs to a request other than GET and HEAD.

    It is short if its Content-Length says at most 64 KiB. If such a body breaks, it breaks before the caller gets the
    response. The body of a GET is continued instead. `headers` must find names in any case.
    """
    if status >= 400 or method in CONTINUED or "transfer-encoding" in headers or is_bodiless(method, status):
        return False
    length = number(headers.get("content-length", ""))
    return length is not None and length <= _SHORT


def is_shown(method: str, status: int, headers: Mapping[str, str]) -> bool:
    """Return whether to read the body of a response before `on_result` judges it, unless it turns out to be long.

    Not if its Content-Length is above SHOWN, nor if it is a stream of events. `headers` must find names in any case.
    """
    if is_bodiless(method, status) or headers.get("content-type", "").strip().lower().startswith(_ENDLESS):
        return False
    return (number(headers.get("content-length", "")) or 0) <= SHOWN


def is_continued(method: str, status: int) -> bool:
    """Return whether the body of a response can be continued in another one: that of a GET with status 200 or 206."""
    return method == "GET" and status in _WHOLE_OR_PART


def needs_reader(method: str, status: int, headers: Mapping[str, str], *, given_up: bool) -> bool:
    """Return whether the caller must read the body of a response through a Reader, which notices where it breaks.

    It must after the request was `given_up`, for a body that can be continued, and for a write's body that is not read
    at once. A response without a body never needs one.
    """
    if is_continued(method, status):
        return True
    if is_bodiless(method, status):
        return False
    return given_up or (method not in READS and not is_read_at_once(method, status, headers))


class GivenUp:
    """The base of responses on which forbear gave up, before the library's own class."""

    def raise_for_status(self) -> "Any":
        """Do what the library's response does; its error gets the report and the note."""
        above: Any = super()
        try:
            return above.raise_for_status()
        except Exception as error:
            report = report_on(self)
            if report is not None:
                attach(error, report)
            raise


@cache
def make_given_up(kind: "type[Any]") -> "type[Any]":
    """Return a class of responses like `kind` with the base `GivenUp`; pickle does not find it."""
    return type(kind.__name__, (GivenUp, kind), {"__module__": kind.__module__})


KEPT = 1024 * 1024
"""The bytes of a body that are kept before they are hashed: most bodies are shorter and never break."""


class HandedOut:
    """The bytes of a body that the caller has received: their number, and proof that other bytes are the same.

    `status` and `headers` (lower-case names) are the response's. Up to 1 MiB is kept whole. Of a longer body only a
    hash is kept, and nothing if the validator of the response is the proof. If the bytes are `held` back until the body
    is complete, they are only counted.
    """

    __slots__ = ("count", "held", "_hash", "_headers", "_kept", "_status")

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.held = False
        self.restart(status, headers)

    def restart(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin again with another response, none of whose bytes the caller has."""
        self.count = 0
        self._status = status
        self._headers = headers
        self._kept: list[bytes] | None = []
        self._hash: _Hash | None = None

    def add(self, chunk: bytes) -> None:
        self.count += len(chunk)
        if self.held:
            return
        if self._kept is not None:
            self._kept.append(chunk)
            if self.count > KEPT:
                self._hash, self._kept = self._make_hash(self._kept), None
        elif self._hash is not None:
            self._hash.update(chunk)

    def forget(self) -> None:
        self._hash = self._kept = None

    def digest(self) -> bytes | None:
        """Return the SHA-256 hash of all bytes so far, None if the validator of the response is the proof."""
        known = self._hash if self._kept is None else self._make_hash(self._kept)
        return None if known is None else known.digest()

    def _make_hash(self, chunks: list[bytes]) -> "_Hash | None":
        return None if ranges.is_pinned(self._status, self._headers) else sha256(b"".join(chunks))
