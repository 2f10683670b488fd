"""Observe: tells loggers, traces and metrics what becomes of failed attempts. It decides nothing and waits for nothing.

Each library has a module of its own with the listener for it: `forbear.observe.logging`, `.opentelemetry`,
`.prometheus` and `.structlog`. `listen` has listeners told of all runs in the process, `all_of` makes one of several.
"""

import sys

from forbear.observe.fields import LOGGER
from forbear.run import listeners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from forbear.core.events import Event
    from forbear.run.listeners import Listener


__all__ = ["all_of", "listen"]


_WARNING = 30  # logging.WARNING
_found: "list[tuple[Logger, tuple[Listener, ...]]]" = []
"""The logger, and the listener that writes to it once it is heard."""


def listen(*told: "Listener") -> None:
    """Tell these listeners of all runs in this process, besides the `on_event` of each run's own policy.

    They take the place of those told before, and so of the logger that is told by default: `listen(Logging(),
    Prometheus())` keeps it, and `listen()` tells nobody. They may be called by any thread or task. Runs that have
    failed already keep theirs. Raises TypeError for what cannot be called.
    """
    for listener in told:
        listeners.check("a listener", listener)
    listeners.set_process_listeners(lambda: told)


def all_of(*told: "Listener") -> "Listener":
    """One listener that tells each of these in turn, for `on_event`; one that fails keeps no other from hearing."""
    for listener in told:
        listeners.check("a listener", listener)

    def tell_all(event: "Event") -> None:
        listeners.notify(told, event)

    return tell_all


def logger_where_heard() -> "tuple[Listener, ...]":
    """The logger, once the application has set up logging in such a way that warnings of it come out somewhere.

    Without that, `logging` would print to stderr on its own account, but only if any library had imported it.
    """
    if not _found:
        logging: Any = sys.modules.get("logging")
        if logging is None or not hasattr(logging, "getLogger"):  # not loaded, or another thread is about to
            return ()
        _found.append((logging.getLogger(LOGGER), ()))
    logger, heard = _found[0]
    if not (logger.hasHandlers() and logger.isEnabledFor(_WARNING)):
        return ()
    if not heard:
        from forbear.observe.logging import DEFAULT

        _found[0] = logger, (heard := (DEFAULT,))
    return heard
