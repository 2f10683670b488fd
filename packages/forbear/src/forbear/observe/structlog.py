"""Write events to structlog, one entry for each except `Failed`."""

from forbear.core.events import Event, Failed
from forbear.observe.logging import fields, is_warning
from forbear.run.listeners import LOGGER

try:
    import structlog
except ImportError as error:
    raise ImportError(
        'forbear.observe.structlog needs structlog; install it with: pip install "forbear[structlog]"'
    ) from error


class Structlog:
    """A listener that makes the entries "retry scheduled", "recovered" and "gave up", with the event's values.

    Others are "would stop", and for shared budgets "budget degraded" and "budget restored".

    `logger` is a bound logger (default: `structlog.get_logger("forbear")`). The levels are those of
    `forbear.observe.logging.Logging`.

    >>> import structlog
    >>> from forbear.testing import Script
    >>> with structlog.testing.capture_logs() as entries:
    ...     forbear.retry(OSError, on_event=Structlog()).call(Script(OSError, "done"))
    'done'
    >>> [entry["event"] for entry in entries]
    ['retry scheduled', 'recovered']
    """

    def __init__(self, logger: structlog.typing.FilteringBoundLogger | None = None) -> None:
        self._logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(LOGGER) if logger is None else logger

    def __call__(self, event: Event) -> None:
        """Make the entry of an event; `Failed` is skipped, because the next event has its failure, too."""
        if isinstance(event, Failed):
            return
        name, values = fields(event)
        log = self._logger.warning if is_warning(event) else self._logger.info
        log(name, **values)
