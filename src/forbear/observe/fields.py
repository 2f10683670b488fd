"""What an event says, as a name and plain values, for loggers that keep them apart. It knows no logger."""

from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled
from forbear.core.report import Attempt

LOGGER = "forbear"
"""The name of the logger."""

Fields = dict[str, str | int | float | bool]


def fields(event: Event) -> tuple[str, Fields]:
    """The name of an event and what it says; seconds are rounded to a thousandth."""
    match event:
        case Scheduled():
            return "retry scheduled", {
                "operation": event.operation,
                "attempt": event.attempt,
                "delay": round(event.delay, 3),
                "elapsed": round(event.elapsed, 3),
                "error": event.failure.error,
                "text": event.failure.text,
            }
        case Failed():
            return "attempt failed", {
                "operation": event.operation,
                "attempt": event.attempt,
                "elapsed": round(event.elapsed, 3),
                "error": event.name,
                "text": event.text,
            }
        case Recovered():
            return "recovered", {
                "operation": event.operation,
                "attempt": event.attempt,
                "elapsed": round(event.elapsed, 3),
            }
        case GaveUp():
            last: Attempt = event.report.attempts[-1]
            return "gave up", {
                "operation": event.operation,
                "attempts": event.report.count,
                "elapsed": round(event.report.elapsed, 3),
                "reason": reason(event),
                "rule": event.report.text,
                "maybe_done": event.report.maybe_done,
                "error": last.error,
                "text": last.text,
            }


def reason(event: GaveUp) -> str:
    """The rule that ended a run in a word: "timeout", "unsafe"."""
    return event.report.reason.name.lower()
