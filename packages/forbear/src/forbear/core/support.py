"""The attempts of a report as a support case needs them: lines of text for people, and facts for JSON."""

from forbear.text.duration import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from forbear.core.attempt import Attempt


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
