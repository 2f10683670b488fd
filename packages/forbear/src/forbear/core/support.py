"""Show a report to people who have to find its requests in the logs of a server: as text, and as a dict for JSON."""

from forbear.text.duration import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.core.report import Attempt, Report


def text_of_report(report: "Report") -> str:
    """Return the lines of `Report.as_text`: the request, the outcome, and each attempt after an empty line."""
    request = " ".join(part for part in (report.method, report.resource) if part is not None)
    outcome = report.note.partition(": ")[2]
    lines = [f"Operation: {report.operation}", f"Outcome: {outcome}"]
    if request:
        lines.insert(0, f"Request: {request}")
    previous = 0
    for attempt in report.attempts:
        lines.append("")
        if attempt.number > previous + 1:
            lines += [f"{attempt.number - previous - 1} attempts are omitted here", ""]
        lines += _lines(attempt)
        previous = attempt.number
    return "\n".join(lines)


def dict_of_report(report: "Report") -> "dict[str, Any]":
    """Return the dict of `Report.as_dict`."""
    return {
        "operation": str(report.operation),
        "method": report.method,
        "resource": report.resource,
        "reason": report.reason.name.lower(),
        "text": report.text,
        "elapsed": round(report.elapsed, 3),
        "count": report.count,
        "omitted": report.omitted,
        "maybe_done": report.maybe_done,
        "attempts": [
            {
                "number": attempt.number,
                "time": utc(attempt.time),
                "elapsed": round(attempt.elapsed, 3),
                "error": attempt.error,
                "text": attempt.text,
                "status": attempt.status,
                "request_ids": dict(attempt.request_ids),
                "delay": None if attempt.delay is None else round(attempt.delay, 3),
            }
            for attempt in report.attempts
        ],
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
