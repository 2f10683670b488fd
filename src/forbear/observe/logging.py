"""Events as lines of the standard library's logging. It sets up no handler and no level."""

import logging

from forbear.core.decide import Reason, show
from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled
from forbear.core.redact import printable
from forbear.core.report import Attempt
from forbear.observe.fields import LOGGER, fields


class Logging:
    """A listener that writes to `logger` ("forbear"): a line for each retry, one for how the run ended.

    Retries and giving up are warnings, never errors: whether the failure is one is for who gets it to say. A conflict
    is the read-modify-write's business and like a late success told as INFO. Calls that succeed at once say nothing.
    The record also has what is told as plain values, in the attribute `forbear`.
    """

    def __init__(self, logger: logging.Logger | str = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        if not isinstance(self._logger, logging.Logger):
            raise TypeError(f"`logger` must be a logging.Logger or the name of one, got {logger!r}")

    def __call__(self, event: Event) -> None:
        """Write the line of an event."""
        if isinstance(event, Failed):
            return  # the event that comes next tells of it, too
        calm = isinstance(event, Recovered) or (isinstance(event, GaveUp) and event.report.reason is Reason.CONFLICT)
        level = logging.INFO if calm else logging.WARNING
        if self._logger.isEnabledFor(level):
            name, values = fields(event)
            extra = {"forbear": {"event": name, **values}}
            # As Logger.log does, but for the search of the calling line, which is always this one.
            record = self._logger.makeRecord(
                self._logger.name, level, __file__, 0, "%s", (_line(event),), None, "__call__", extra
            )
            self._logger.handle(record)


def _line(event: Scheduled | Recovered | GaveUp) -> str:
    """Return what an event says, in one line: an error may say it in several."""
    if isinstance(event, Scheduled):
        coming = f"attempt {event.attempt} in {show(event.delay)}"
        line = f"attempt {event.attempt - 1} failed ({_failure(event.failure)}), {coming}"
    elif isinstance(event, Recovered):
        line = f"attempt {event.attempt} worked, after {show(event.elapsed)}"
    else:
        report = event.report
        line = f"{report.note.removeprefix('forbear: ')}; the last one: {_failure(report.attempts[-1])}"
    return " ".join(f"{printable(event.operation)}: {line}".split())


def _failure(failure: Attempt) -> str:
    return f"{failure.error}: {failure.text}" if failure.text else failure.error


DEFAULT = Logging()
