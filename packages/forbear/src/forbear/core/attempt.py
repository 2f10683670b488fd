"""`Attempt`: one failed attempt of a run, as its report keeps it: text and numbers without secrets."""

from forbear.core.record import Record
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RequestIds = tuple[tuple[str, str], ...]
"""The ids by which a server knows a request, as pairs of a header's name, in lower case, and its value."""

Details = tuple[()] | tuple[float, int | str | None, RequestIds]
"""The time, status and request ids of a failed attempt, as `Attempt` has them; () if they are not known."""

_LONGEST_TEXT = 500
_LONGEST_ID = 256


class Attempt(Record):
    """One failed attempt: its `number` from 1, the `error` type and `text`, and the seconds `elapsed` in the run.

    `error` is a name, such as "ConnectionError" or "HTTP 503". `delay` is the wait after it in seconds, None after the
    last attempt. `time` is the wall clock when it failed, in seconds since the epoch, None if it is not known;
    comparisons leave it out. `status` is the HTTP status or the name of the gRPC code that the server sent, None
    without one. `request_ids` are the ids that the server gave the attempt, as pairs of a header's name and its value.

    The constructor removes secrets from text and ids, and cuts the text after 500 characters and each id after 256,
    because reports and events show them. Example: see `Report`.
    """

    __slots__ = ("number", "error", "text", "elapsed", "delay", "time", "status", "request_ids")

    number: int
    error: str
    text: str
    elapsed: float
    delay: float | None
    time: float | None
    status: int | str | None
    request_ids: RequestIds

    def __init__(
        self,
        number: int,
        error: str,
        text: str,
        elapsed: float,
        delay: float | None = None,
        time: float | None = None,
        status: int | str | None = None,
        request_ids: RequestIds = (),
    ) -> None:
        store = object.__setattr__
        store(self, "number", number)
        store(self, "error", error)
        store(self, "text", redact(text)[:_LONGEST_TEXT])
        store(self, "elapsed", elapsed)
        store(self, "delay", delay)
        store(self, "time", time)
        store(self, "status", status)
        cleaned = tuple((name, redact(value)[:_LONGEST_ID]) for name, value in request_ids) if request_ids else ()
        store(self, "request_ids", cleaned)

    def _values(self) -> "Iterator[object]":
        return (getattr(self, name) for name in self._fields() if name != "time")
