"""The progress of transfers: events, and the object through which a running transfer sends them to one listener."""

import asyncio
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar

from forbear.adapters import dataclass
from forbear.events import Event, Failed, Scheduled
from forbear_transfer.errors import is_out_of_files
from forbear_transfer.items import Item, Outcome


@dataclass(slots=True)
class Planned:
    """The plan has found `items` so far, of `size` bytes in all (None: unknown); `complete` once there are no more.

    >>> events = []
    >>> summary = cp("photos/1.jpg", "gs://my-bucket/copy.jpg", on_event=events.append)
    >>> sorted({type(event).__name__ for event in events})
    ['Finished', 'Moved', 'Planned', 'Started']
    """

    items: int
    size: int | None
    complete: bool


@dataclass(slots=True)
class Started:
    """A worker has started an item.

    Items that the plan skips or refuses, or that a manifest has as done, finish without a start. Example: see
    `Planned`.
    """

    item: Item


@dataclass(slots=True)
class Sized:
    """The size of an item is known now, in bytes. It is sent only where the plan did not know the size.

    `item` is None for an upload, download or copy that was called alone. Example: see `Planned`.
    """

    item: Item | None
    size: int


@dataclass(slots=True)
class Moved:
    """`bytes` more bytes of an item are transferred; a negative number takes back bytes that must be sent again.

    `item` is None for an upload, download or copy that was called alone. Example: see `Planned`.
    """

    item: Item | None
    bytes: int


@dataclass(slots=True)
class Retried:
    """An attempt failed and will be repeated; `scheduled` has the failure and the delay before the next attempt.

    `item` is None for listings, and for an upload, download or copy that was called alone. Example: see `Planned`.
    """

    item: Item | None
    scheduled: Scheduled


@dataclass(slots=True)
class Finished:
    """An item was done, was skipped or failed, as `outcome` says. Example: see `Planned`."""

    outcome: Outcome


@dataclass(slots=True)
class Warned:
    """A warning about something that is no failure, such as that no state can be kept. Example: see `Planned`."""

    text: str


TransferEvent = Planned | Started | Sized | Moved | Retried | Finished | Warned
"""An event of a transfer. `item` is None for listings, and for an upload, download or copy that was called alone."""

Listener = Callable[[TransferEvent], object]
"""A function that gets every event, in the event loop. It is called often and must return at once."""


class Progress:
    """Sends the events of a transfer to a listener; `item` is the one under way, and `retries` counts its retries.

    `item` is None outside of items. With `warnings`, each warning is sent once, and its text is added to that set.
    Without a listener, a warning becomes a RuntimeWarning, and everything else is dropped.
    """

    __slots__ = ("item", "on_event", "retries", "warnings")

    def __init__(self, on_event: Listener | None = None, warnings: set[str] | None = None) -> None:
        self.on_event = on_event
        self.warnings = warnings
        self.item: Item | None = None
        self.retries = 0

    def emit_plan(self, items: int, size: int | None, *, complete: bool) -> None:
        if self.on_event is not None:
            self.on_event(Planned(items, size, complete))

    def start(self, item: Item) -> None:
        """Make `item` the current one, which all further events are about, and send a Started event."""
        self.item = item
        self.retries = 0
        if self.on_event is not None:
            self.on_event(Started(item))

    def sized(self, size: int) -> None:
        """Send a Sized event with the size in bytes, unless the current item has a size from the plan."""
        if self.on_event is not None and (self.item is None or self.item.size is None):
            self.on_event(Sized(self.item, size))

    def moved(self, count: int) -> None:
        if self.on_event is not None:
            self.on_event(Moved(self.item, count))

    def retried(self, scheduled: Scheduled) -> None:
        self.retries += 1
        if self.on_event is not None:
            self.on_event(Retried(self.item, scheduled))

    def emit_outcome(self, outcome: Outcome) -> None:
        if self.on_event is not None:
            self.on_event(Finished(outcome))

    def throttled(self) -> None:
        """Do nothing; the progress of a worker lowers the limit."""

    def warned(self, text: str) -> None:
        """Send a warning, unless it is in the set `warnings` already."""
        if self.warnings is not None:
            if text in self.warnings:
                return
            self.warnings.add(text)
        if self.on_event is None:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        else:
            self.on_event(Warned(text))


current_progress: ContextVar[Progress] = ContextVar("forbear_transfer_progress", default=Progress())  # noqa: B039
"""The progress of the transfer that this task is working on."""


@contextmanager
def tracked(progress: Progress) -> Generator[None]:
    """Make `progress` the current one of this context within the block, and restore the one before at its end."""
    token = current_progress.set(progress)
    try:
        yield
    finally:
        current_progress.reset(token)


def listening(on_event: Listener) -> AbstractContextManager[None]:
    """Call `on_event` with every event of the `upload`, `download` and `copy` calls awaited within the block.

    >>> import asyncio
    >>> async def main(events):
    ...     async with Storage() as storage:
    ...         with listening(events.append):
    ...             await upload(storage, "photos/1.jpg", Url("my-bucket", "new.jpg"))
    ...     return sum(event.bytes for event in events if isinstance(event, Moved))
    >>> asyncio.run(main([]))
    7
    """
    return tracked(Progress(on_event))


def forward(event: Event) -> None:
    """Pass a retry of a call on to the current progress, and a failure that means to slow down."""
    if isinstance(event, Scheduled):
        current_progress.get().retried(event)
    elif isinstance(event, Failed) and (event.verdict.throttled or is_out_of_files(event.error)):
        current_progress.get().throttled()


def warner() -> Callable[[str], object]:
    """Return a function that sends a warning's text to the progress that is current now.

    It may be called in any thread: the event loop that is running now sends the warning. It does nothing once that loop
    is closed.
    """
    warned, loop = current_progress.get().warned, asyncio.get_running_loop()

    def warn(text: str) -> None:
        with suppress(RuntimeError):  # the loop may be closed already
            loop.call_soon_threadsafe(warned, text)

    return warn
