"""Write events to the standard library's logging; handlers and levels are the application's.

Each event except `Failed` is one line. `fields` describes an event for loggers that keep values apart from the message.
"""

import logging

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Recovered, Scheduled, WouldStop
from forbear.run.listeners import LOGGER
from forbear.text.duration import show
from forbear.text.redact import printable

RECOVERED = ("maybe_done", "settled", "billed")
"""The fields of a late success that are shown where they are true."""

COUNTED: "dict[type[Event], tuple[str, str, str]]" = {
    Failed: ("failures", "{attempt}", "Failed attempts"),
    Scheduled: ("retries", "{retry}", "Retries"),
    Recovered: ("recoveries", "{run}", "Runs that worked after a failure"),
    GaveUp: ("give_ups", "{run}", "Runs that ended without success"),
    WouldStop: ("would_stop", "{attempt}", "Attempts repeated under enforce=warn"),
    BudgetDegraded: ("budgets_degraded", "{event}", "Shared budgets that lost their server"),
    BudgetRestored: ("budgets_restored", "{event}", "Shared budgets that have their server back"),
}
"""The metrics that count events: the name of each, its unit and its description."""

DELAY, ATTEMPTS = "Waits before retries", "Attempts of runs that failed at least once"
"""The descriptions of the two histograms."""

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
            "reason": report.reason.code,
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


class Logging:
    """A listener that writes to `logger` (default "forbear"): one line for each retry, and one for the end of the run.

    Retries and giving up are warnings, never errors: only the caller knows whether the failure is an error. Late
    successes, and conflicts, which a read-modify-write handles, are logged as INFO. A call that succeeds at once logs
    nothing. The record's attribute `forbear` has the same values as a dict.

    >>> import logging, sys
    >>> from forbear.testing import Script
    >>> logging.getLogger("orders").addHandler(logging.StreamHandler(sys.stdout))
    >>> policy = forbear.retry(OSError, backoff=forbear.Constant(2), on_event=Logging("orders"), name="load")
    >>> done = policy.call(Script(OSError("lost"), "done"))
    load: attempt 1 failed (OSError: lost), attempt 2 in 2 s
    """

    def __init__(self, logger: logging.Logger | str = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        if not isinstance(self._logger, logging.Logger):
            raise TypeError(f"`logger` must be a logging.Logger or the name of one, got {logger!r}")

    def __call__(self, event: Event) -> None:
        """Log an event; `Failed` is skipped, because the next event has its failure, too."""
        if isinstance(event, Failed):
            return
        level = logging.WARNING if is_warning(event) else logging.INFO
        if self._logger.isEnabledFor(level):
            name, values = fields(event)
            extra = {"forbear": {"event": name, **values}}
            # The same as Logger.log without its search for the calling line, which is always this one.
            record = self._logger.makeRecord(
                self._logger.name, level, __file__, 0, "%s", (_line(event),), None, "__call__", extra
            )
            self._logger.handle(record)


def _line(event: Scheduled | Recovered | GaveUp | WouldStop | BudgetDegraded | BudgetRestored) -> str:
    """Return the text of an event as one line, even if the error's text has several; it begins with the operation."""
    if isinstance(event, Scheduled):
        line = f"attempt {event.attempt - 1} failed ({_failure(event.failure)})"
        line += f", attempt {event.attempt} in {show(event.delay)}{' (vouched)' if event.vouched else ''}"
        if event.wait_from is not None:
            line += f", as {event.wait_from} asks"
    elif isinstance(event, Recovered):
        line = f"attempt {event.attempt} worked, after {show(event.elapsed)}"
        if event.settled:
            line = f"settled after {show(event.elapsed)}: a read showed that an attempt before the last had worked"
        line += "; an earlier attempt may have worked" if event.maybe_done else ""
        line += "; an earlier attempt may have been billed, too" if event.billed else ""
    elif isinstance(event, WouldStop):
        line = f'attempt {event.attempt} would be the last, but enforce is "warn": {event.text}'
    elif isinstance(event, BudgetDegraded):
        line = f"{event.text}; it lives on its own credit, and asks again in {show(event.pause)}"
    elif isinstance(event, BudgetRestored):
        line = f"the server answers again, after {show(event.elapsed)}"
    else:
        report = event.report
        line = f"{report.note.removeprefix('forbear: ')}; last failure: {_failure(report.attempts[-1])}"
    return " ".join(f"{printable(event.operation)}: {line}".split())


def _failure(failure: Attempt) -> str:
    return f"{failure.error}: {failure.text}" if failure.text else failure.error


DEFAULT = Logging()
