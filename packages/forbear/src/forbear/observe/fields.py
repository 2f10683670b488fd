"""Describe an event as a name, plain values and a level, for loggers that keep values apart from the message."""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Recovered, Scheduled

LOGGER = "forbear"
"""The name of the logger to which events are written by default."""

Fields = dict[str, str | int | float | bool]


def fields(event: Event) -> tuple[str, Fields]:
    """Return the name of an event and its values by name; seconds are rounded to a thousandth.

    The names are "attempt failed", "retry scheduled", "recovered", "gave up", "budget degraded" and "budget restored".
    Texts are without secrets. A scheduled retry has "wait_from" only if the server asked for a wait.
    """
    match event:
        case BudgetDegraded():
            return "budget degraded", {
                "operation": event.operation,
                "text": event.text,
                "pause": round(event.pause, 3),
            }
        case BudgetRestored():
            return "budget restored", {"operation": event.operation, "elapsed": round(event.elapsed, 3)}
        case Scheduled():
            return "retry scheduled", {
                "operation": event.operation,
                "attempt": event.attempt,
                "delay": round(event.delay, 3),
                "elapsed": round(event.elapsed, 3),
                "vouched": event.vouched,
                "error": event.failure.error,
                "text": event.failure.text,
                **({} if event.wait_from is None else {"wait_from": event.wait_from}),
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
                "vouched": event.report.vouched,
                "error": last.error,
                "text": last.text,
            }


def is_warning(event: Event) -> bool:
    """Return whether an event is logged as a warning: a failure, a retry, giving up, or a budget without its server.

    A late success, giving up after a conflict, and a budget that has its server back, are none.
    """
    if isinstance(event, GaveUp):
        return event.report.reason is not Reason.CONFLICT
    return not isinstance(event, Recovered | BudgetRestored)


def reason(event: GaveUp) -> str:
    """Return the reason why a run ended, as the name of its `Reason` in lower case: "timeout", "retry_after"."""
    return event.report.reason.name.lower()
