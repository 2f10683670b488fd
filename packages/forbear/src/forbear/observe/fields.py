"""Describe an event as a name, plain values and a level, for loggers that keep values apart from the message."""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Recovered, Scheduled, WouldStop

LOGGER = "forbear"
"""The name of the logger to which events are written by default."""

Fields = dict[str, str | int | float | bool]


def fields(event: Event) -> tuple[str, Fields]:
    """Return the name of an event and its values without secrets; seconds are rounded to a thousandth."""
    if isinstance(event, GaveUp):
        report = event.report
        last: Attempt = report.attempts[-1]
        return "gave up", {
            "operation": event.operation,
            "attempts": report.count,
            "elapsed": round(report.elapsed, 3),
            "reason": reason(event),
            "rule": report.text,
            "maybe_done": report.maybe_done,
            "vouched": report.vouched,
            "error": last.error,
            "text": last.text,
        }
    name, attributes = _EVENTS[type(event)]
    values: Fields = {each: getattr(event, each) for each in ("operation", *attributes)}
    values = {each: round(value, 3) if isinstance(value, float) else value for each, value in values.items()}
    if isinstance(event, Scheduled):
        values |= {"error": event.failure.error, "text": event.failure.text}
    elif isinstance(event, Recovered):
        values |= {each: True for each in ("maybe_done", "settled") if getattr(event, each)}
    elif isinstance(event, Failed):
        values |= {"error": event.name, "text": event.text}
    return name, values


_EVENTS: dict[type[Event], tuple[str, tuple[str, ...]]] = {
    Failed: ("attempt failed", ("attempt", "elapsed")),
    Scheduled: ("retry scheduled", ("attempt", "delay", "elapsed", "vouched")),
    Recovered: ("recovered", ("attempt", "elapsed")),
    WouldStop: ("would stop", ("attempt", "elapsed", "text")),
    BudgetDegraded: ("budget degraded", ("text", "pause")),
    BudgetRestored: ("budget restored", ("elapsed",)),
}
"""The name of each other event, and its attributes besides the operation."""


def is_warning(event: Event) -> bool:
    """Return whether an event is a warning: no late success, conflict or budget that has its server back."""
    if isinstance(event, GaveUp):
        return event.report.reason is not Reason.CONFLICT
    return not isinstance(event, Recovered | BudgetRestored)


def reason(event: GaveUp) -> str:
    """Return the reason why a run ended, as the name of its `Reason` in lower case: "timeout", "retry_after"."""
    return event.report.reason.name.lower()
