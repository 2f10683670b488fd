"""Notify listeners of events: the listener of a run's policy, and those of the whole process."""

from collections.abc import Callable, Coroutine
from contextvars import ContextVar

from forbear.core.report import text_of
from forbear.run import judges
from forbear.run.functions import name_of
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.core.events import Event, Succeeded

    Listener = Callable[[Event], object]

LOGGER = "forbear"
"""The name of the logger to which events are written by default."""


def set_process_listeners(provide: "Callable[[], tuple[Listener, ...]]") -> None:
    """Set the function that returns the process's listeners, in place of the earlier one.

    Each run calls `provide` at its first failure.
    """
    judges.listeners[0] = provide


def collect(own: "Listener | None") -> "tuple[Listener, ...]":
    """Return all listeners of a run: `own`, that of its policy (None without one), then those of the process."""
    others = judges.listeners[0]()
    return others if own is None else (own, *others)


_active: "ContextVar[tuple[Callable[[Any], object], ...]]" = ContextVar("forbear_active_listeners", default=())
"""The listeners that are handling an event now, outermost first."""
_DEEPEST = 5
"""The number of listeners that may handle events within each other; from there on, no listener is notified.

A listener may be a new object each time.
"""


def is_notified() -> bool:
    """Return whether this code runs within a listener that handles an event."""
    return bool(_active.get())


def notify(listeners: "tuple[Callable[[Any], object], ...]", *events: "Event | Succeeded") -> None:
    """Call each listener with the events, in order: the first listener with all of them, then the next one.

    A listener that raises, or returns a coroutine, causes a RuntimeWarning only, so that it neither hides an error nor
    fails a success. While a listener handles an event, it is not notified of runs that it starts itself, nor of those
    in tasks that it starts. With `_DEEPEST` listeners handling events within each other, none is called.
    """
    active = _active.get()
    if len(active) >= _DEEPEST:
        return
    for listener in listeners:
        if listener in active:
            continue
        token = _active.set((*active, listener))
        try:
            for event in events:
                _notify_one(listener, event)
        finally:
            _active.reset(token)


def _notify_one(listener: "Callable[[Any], object]", event: "Event | Succeeded") -> None:
    try:
        value = listener(event)
        if value is not None and isinstance(value, Coroutine):
            value.close()
            raise TypeError(f"{name_of(listener)} returned a coroutine, which is not awaited")
    except Exception as error:
        import warnings

        name, kind = type(event).__name__, type(error).__qualname__
        text = f"a listener failed on {name}: {kind}: {redact(text_of(error))}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
