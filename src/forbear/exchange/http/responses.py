"""What becomes of the body of a reply: read at once, continued where it breaks, watched, or left alone. It reads none.

The rule: an error that ends the body of a write, or of a reply that was given up on, carries a report; else a policy
around the client would take it for a failed attempt of its own and send the write once more.
"""

from typing import Generic, TypeVar, cast

from forbear.http.method import READS
from forbear.http.ranges import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_CONTINUED = ("GET", "HEAD")
WHOLE_OR_PART = (200, 206)
"""The statuses of replies to a GET whose body may go on in a further one."""

_SHORT = 64 * 1024
"""A reply of at most so many bytes is little, and read at once."""


def is_bodiless(method: str, status: int) -> bool:
    """Return whether a response ends with its headers, whatever length they say (RFC 9112 §6.3)."""
    return method == "HEAD" or status < 200 or status in (204, 304)


def is_read_at_once(method: str, status: int, headers: "Mapping[str, str]") -> bool:
    """Whether a reply is a short success of a write: read now, it breaks now; that of a read goes on if it breaks.

    Headers are found by names of any case.
    """
    if status >= 400 or method in _CONTINUED or "transfer-encoding" in headers or is_bodiless(method, status):
        return False
    length = number(headers.get("content-length", ""))
    return length is not None and length <= _SHORT


def is_continued(method: str, status: int) -> bool:
    """Whether the body of a reply may go on in a further one."""
    return method == "GET" and status in WHOLE_OR_PART


def needs_reader(method: str, status: int, headers: "Mapping[str, str]", *, given_up: bool) -> bool:
    """Whether the body of a reply that is handed out must come through a Reader."""
    if is_bodiless(method, status):
        return False
    if given_up or is_continued(method, status):
        return True
    return method not in READS and not is_read_at_once(method, status, headers)


R = TypeVar("R")


class FirstResult(Generic[R]):
    """A reply or an error."""

    __slots__ = ("_what",)

    def __init__(self, what: R | Exception) -> None:
        self._what: R | Exception | None = what

    def taken(self) -> R:
        """Return the reply or raise the error."""
        what, self._what = self._what, None
        if not isinstance(what, Exception):
            return cast(R, what)
        try:
            raise what
        finally:
            del what
