"""Events as lines of the standard library's logging. It sets up no handler and no level."""

import logging

from forbear.core.decide import Reason, show
from forbear.core.events import Event, Failed, Recovered, Scheduled
from forbear.core.report import Attempt, writable
from forbear.observe.fields import fields
from forbear.observe.process import LOGGER


class Logging:
    """A listener that writes to `logger` ("forbear"): a line for each retry, one for how the run ended.

    Retries and giving up are warnings, never errors: whether the failure is one is for who gets it to say. A conflict
    is the read-modify-write's business and like a late success told as INFO. Calls that succeed at once say nothing.
    The record also has what is told as plain values, in the attribute `forbear`.
    """

    def __init__(self, logger: logging.Logger | str = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __call__(self, event: Event) -> None:
        """Write the line of an event."""
        if isinstance(event, Failed):
            return  # the event that comes next tells of it, too
        if isinstance(event, Scheduled):
            level = logging.WARNING
            failed, coming = f"attempt {event.attempt - 1} failed", f"attempt {event.attempt} in {show(event.delay)}"
            line = f"{failed} ({_told(event.failure)}), {coming}"
        elif isinstance(event, Recovered):
            level = logging.INFO
            line = f"attempt {event.attempt} worked, after {show(event.elapsed)}"
        else:
            report = event.report
            level = logging.INFO if report.reason is Reason.CONFLICT else logging.WARNING
            line = f"{report.note.removeprefix('forbear: ')}; the last one: {_told(report.attempts[-1])}"
        if self._logger.isEnabledFor(level):
            name, values = fields(event)
            told = " ".join(f"{writable(event.operation)}: {line}".split())  # an error may say it in several lines
            self._logger.log(level, "%s", told, extra={"forbear": {"event": name, **values}})


def _told(failure: Attempt) -> str:
    return f"{failure.error}: {failure.text}" if failure.text else failure.error


DEFAULT = Logging()
