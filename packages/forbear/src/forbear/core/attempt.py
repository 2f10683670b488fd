"""One failed attempt, as events and reports show it, and its forms for a support case: text, HTML and JSON."""

from forbear.core.dataclass import dataclass
from forbear.core.record import Record
from forbear.text.duration import show
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


RequestIds = tuple[tuple[str, str], ...]
"""The ids by which a server knows a request, as pairs of a header's name, in lower case, and its value."""

Details = tuple[()] | tuple[float, int | str | None, RequestIds]
"""The time, status and request ids of a failed attempt, as `Attempt` has them; () if they are not known."""

_ENDS = str.maketrans({end: f"{end}\u2424" for end in "\n\r\t"})
"""Marks the line ends of a text, so that they are known after `redact` has spelt them out."""

_LONGEST_TEXT = 500
_LONGEST_ID = 256


@dataclass(frozen=True, slots=True)
class Attempt(Record):
    """One failed attempt: its `number` from 1, the `error` type and `text`, and the seconds `elapsed` in the run.

    `error` is a name, such as "ConnectionError" or "HTTP 503". `delay` is the wait after it in seconds, None after the
    last attempt. `time` is the wall clock when it failed, in seconds since the epoch, None if it is not known;
    comparisons leave it out. `status` is the HTTP status or the name of the gRPC code that the server sent, None
    without one. `request_ids` are the ids that the server gave the attempt, as pairs of a header's name and its value.

    The constructor removes secrets from text and ids, writes several lines as one, and cuts the text after 500
    characters and each id after 256, because reports and events show them. Example: see `Report`.
    """

    number: int
    error: str
    text: str
    elapsed: float
    delay: float | None = None
    time: float | None = None
    status: int | str | None = None
    request_ids: RequestIds = ()

    def __post_init__(self) -> None:
        self._set(text=_join_lines(self.text)[:_LONGEST_TEXT])
        if self.request_ids:
            self._set(request_ids=tuple((name, redact(value)[:_LONGEST_ID]) for name, value in self.request_ids))

    def _values(self) -> "Iterator[object]":
        return (getattr(self, name) for name in self._fields() if name != "time")


def _join_lines(text: str) -> str:
    """Return a text without secrets, and with a space for each line end: `redact` knows by them where a secret ends."""
    if text.isprintable():
        return redact(text)
    shown = redact(text.translate(_ENDS))
    for spelt_out in ("\\n\u2424", "\\r\u2424", "\\t\u2424"):
        shown = shown.replace(spelt_out, " ")
    return " ".join(shown.split())


def lines_of(attempts: "Iterable[Attempt]") -> list[str]:
    """Return the lines of attempts, each after an empty line; a line says how many are omitted between two of them."""
    lines: list[str] = []
    previous = 0
    for attempt in attempts:
        lines.append("")
        if attempt.number > previous + 1:
            lines += [f"{attempt.number - previous - 1} attempts are omitted here", ""]
        lines += _lines(attempt)
        previous = attempt.number
    return lines


def table_of(caption: str, attempts: "Iterable[Attempt]") -> str:
    """Return attempts as an HTML table with a caption; whatever a server sent is escaped."""
    from html import escape  # expensive to import

    names = ("attempt", "after", "error", "text", "wait")
    rows = [
        (str(one.number), show(one.elapsed), one.error, one.text, "" if one.delay is None else show(one.delay))
        for one in attempts
    ]
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts_of(attempt: "Attempt") -> "dict[str, Any]":
    """Return the facts of an attempt as a dict that `json.dumps` accepts, for `Report.as_dict`."""
    return {
        "number": attempt.number,
        "time": utc(attempt.time),
        "elapsed": round(attempt.elapsed, 3),
        "error": attempt.error,
        "text": attempt.text,
        "status": attempt.status,
        "request_ids": dict(attempt.request_ids),
        "delay": None if attempt.delay is None else round(attempt.delay, 3),
    }


def utc(seconds: float | None) -> str | None:
    """Return a time in seconds since the epoch as UTC, such as "2026-11-22T10:00:00.123Z".

    None for None, and for a time after the year 9999.
    """
    from datetime import UTC, datetime  # expensive to import

    try:
        known = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return None if known is None else f"{known:%Y-%m-%dT%H:%M:%S}.{known.microsecond // 1000:03}Z"


def _lines(attempt: "Attempt") -> "list[str]":
    time = utc(attempt.time)
    when = f"after {show(attempt.elapsed)}" if time is None else f"at {time}, after {show(attempt.elapsed)}"
    status = "" if attempt.status is None or str(attempt.status) in attempt.error else f", status {attempt.status}"
    lines = [f"Attempt {attempt.number} failed {when}: {attempt.error}{status}"]
    if attempt.text:
        lines.append(f"  {attempt.text}")
    lines += [f"  {name}: {value}" for name, value in attempt.request_ids]
    if attempt.delay is not None:
        lines.append(f"  next attempt after a wait of {show(attempt.delay)}")
    return lines
