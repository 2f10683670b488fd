"""Describe an event as a name, plain values and a level, for loggers that keep values apart from the message."""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Recovered, Scheduled, WouldStop

LOGGER = "forbear"
"""The name of the logger to which events are written by default."""

RECOVERED = ("maybe_done", "settled", "billed")
"""The fields of a late success that are shown where they are true."""

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
            "billed": report.billed,
            "error": last.error,
            "text": last.text,
        }
    values: Fields = {"operation": event.operation}
    if isinstance(event, BudgetDegraded):
        return "budget degraded", values | {"text": event.text, "pause": round(event.pause, 3)}
    values["elapsed"] = round(event.elapsed, 3)
    if isinstance(event, BudgetRestored):
        return "budget restored", values
    values["attempt"] = event.attempt
    if isinstance(event, Scheduled):
        values["delay"], values["vouched"] = round(event.delay, 3), event.vouched
        values["error"], values["text"] = event.failure.error, event.failure.text
        return "retry scheduled", values
    if isinstance(event, Failed):
        return "attempt failed", values | {"error": event.name, "text": event.text}
    if isinstance(event, WouldStop):
        return "would stop", values | {"text": event.text}
    values |= {name: True for name in RECOVERED if getattr(event, name)}
    return "recovered", values


def is_warning(event: Event) -> bool:
    """Return whether an event is a warning: no late success, conflict or budget that has its server back."""
    if isinstance(event, GaveUp):
        return event.report.reason is not Reason.CONFLICT
    return not isinstance(event, Recovered | BudgetRestored)


def reason(event: GaveUp) -> str:
    """Return the reason why a run ended, as the name of its `Reason` in lower case: "timeout", "retry_after"."""
    return event.report.reason.name.lower()
