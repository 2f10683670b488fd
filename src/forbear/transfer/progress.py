"""Meter: who is told how far one transfer has come. What is shown of it is not known here."""

import asyncio
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol

from forbear.core.events import Event, Failed, Scheduled
from forbear.transfer.files import is_out_of_files


class Meter(Protocol):
    """Told of one transfer while it runs; its methods are called often and must return at once.

    It may have a method `warned(text)`, which gets what is worth knowing though nothing has failed: that no state can
    be kept. Without one it is a RuntimeWarning.
    """

    def sized(self, size: int) -> None:
        """It is known now how many bytes there are."""
        ...

    def moved(self, count: int) -> None:
        """So many more bytes are across; a negative count takes back bytes that must go again."""
        ...

    def retried(self, event: Scheduled) -> None:
        """Something failed and will be tried again."""
        ...

    def throttled(self) -> None:
        """The server asked to slow down, or no more files can be opened."""
        ...


class QuietMeter:
    """Tells nobody."""

    def sized(self, size: int) -> None:
        """Nothing."""

    def moved(self, count: int) -> None:
        """Nothing."""

    def retried(self, event: Scheduled) -> None:
        """Nothing."""

    def throttled(self) -> None:
        """Nothing."""


QUIET = QuietMeter()

current_meter: ContextVar[Meter] = ContextVar("forbear_transfer_meter", default=QUIET)
"""The meter of the transfer that this task is at work on: set yours before `upload`, `download` or `copy`."""


def hear(event: Event) -> None:
    """Pass an event of a run on to the meter of the task in which it happened."""
    if isinstance(event, Scheduled):
        current_meter.get().retried(event)
    elif isinstance(event, Failed) and (event.verdict.throttled or is_out_of_files(event.error)):
        current_meter.get().throttled()


def warner(receiver: object = None) -> Callable[[str], object]:
    """Return what takes warnings, from any thread: `receiver`, by default the meter of this task, or else Python's own.

    The receiver gets them in the event loop that runs here.
    """
    method: Any = getattr(current_meter.get() if receiver is None else receiver, "warned", None)
    loop = asyncio.get_running_loop()

    def tell(text: str) -> None:
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(method or _warn, text)

    return tell


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
