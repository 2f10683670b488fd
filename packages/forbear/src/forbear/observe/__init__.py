"""Notify loggers, traces and metrics of failed attempts, waits and ends of runs.

Each library has a module with its listener: `forbear.observe.logging`, `.opentelemetry`, `.prometheus`, `.structlog`.
`listen` sets the listeners of the whole process, `all_of` makes one listener of several.
"""

import sys

from forbear.run import listeners as _listeners
from forbear.run.judges import check_notified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from forbear.core.events import Event
    from forbear.run.listeners import Listener

__all__ = ["all_of", "listen"]

_WARNING = 30  # logging.WARNING
_default: "list[tuple[Logger, tuple[Listener, ...]]]" = []
"""Empty at first, then one pair: the logger "forbear" and a tuple of its listener, () until that is needed."""


def listen(*listeners: "Listener") -> None:
    """Notify these listeners of all runs in this process, besides the `on_event` of each run's own policy.

    They replace the earlier ones, also the logger that listens by default: `listen(Logging(), Prometheus())` keeps it,
    and `listen()` removes all. Raises TypeError for a listener that is not callable or is async.

    >>> from forbear.testing import Script
    >>> listen(lambda event: print(type(event).__name__))
    >>> forbear.retry(OSError).call(Script(OSError, "done"))
    Failed
    Scheduled
    Recovered
    'done'
    """
    for listener in listeners:
        check_notified("a listener", listener)
    _listeners.set_process_listeners(lambda: listeners)


def all_of(*listeners: "Listener") -> "Listener":
    """Return one listener for `on_event` that calls each of these in turn, even after one has failed.

    >>> from forbear.testing import Script
    >>> events, names = [], []
    >>> listener = all_of(events.append, lambda event: names.append(type(event).__name__))
    >>> forbear.retry(OSError, on_event=listener).call(Script(OSError, "done"))
    'done'
    >>> names, len(events)
    (['Failed', 'Scheduled', 'Recovered'], 3)
    """
    for listener in listeners:
        check_notified("a listener", listener)

    def notify_all(event: "Event") -> None:
        _listeners.notify(listeners, event)

    return notify_all


def default_listeners() -> "tuple[Listener, ...]":
    """Return the logging listener if the logger "forbear" has a handler and lets warnings through, else nothing.

    Without a handler, `logging` would print warnings to stderr, but only if some library happened to import it.
    """
    if not _default:
        logging: Any = sys.modules.get("logging")
        if logging is None or not hasattr(logging, "getLogger"):  # not loaded, or another thread is loading it
            return ()
        _default.append((logging.getLogger(_listeners.LOGGER), ()))
    logger, listeners = _default[0]
    if not (logger.hasHandlers() and logger.isEnabledFor(_WARNING)):
        return ()
    if not listeners:
        from forbear.observe.logging import DEFAULT

        _default[0] = logger, (listeners := (DEFAULT,))
    return listeners


_listeners.set_process_listeners(default_listeners)  # until the application says otherwise, by `listen`
