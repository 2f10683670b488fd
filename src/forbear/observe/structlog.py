"""Events as entries of structlog, whose processors say what becomes of them."""

from forbear.core.decide import Reason
from forbear.core.events import Event, Failed, GaveUp, Recovered
from forbear.observe.fields import LOGGER, fields

try:
    import structlog
except ImportError as error:
    raise ImportError(
        'forbear.observe.structlog needs structlog; install it with: pip install "forbear[structlog]"'
    ) from error


class Structlog:
    """A listener that makes entries: "retry scheduled", "recovered" and "gave up", with what is known as values.

    `logger` is a bound logger (default: `structlog.get_logger("forbear")`). The levels are those of
    `forbear.observe.logging.Logging`.
    """

    def __init__(self, logger: structlog.typing.FilteringBoundLogger | None = None) -> None:
        self._logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(LOGGER) if logger is None else logger

    def __call__(self, event: Event) -> None:
        """Make the entry of an event."""
        if isinstance(event, Failed):
            return  # the event that comes next tells of it, too
        name, values = fields(event)
        calm = isinstance(event, Recovered) or (isinstance(event, GaveUp) and event.report.reason is Reason.CONFLICT)
        if calm:
            self._logger.info(name, **values)
        else:
            self._logger.warning(name, **values)
