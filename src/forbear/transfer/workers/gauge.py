"""Gauge: the meter of one item at a time, which counts what happens and hands it on. It decides nothing."""

from forbear.core.events import Scheduled
from forbear.transfer.items import QUIET, Item, Listener
from forbear.transfer.progress import warner
from forbear.transfer.workers.worker_pool import Limiter

_NOTHING = Item("", "")


class Gauge:
    """The meter of a worker: tells the listener of each item in turn, and the limiter of those who were throttled."""

    __slots__ = ("_cuts", "_limiter", "_listener", "_warnings", "item", "retries", "slowed")

    def __init__(
        self, listener: Listener | None = None, limiter: Limiter | None = None, warnings: set[str] | None = None
    ) -> None:
        self._listener = QUIET if listener is None else listener
        self._limiter = limiter
        self._cuts = 0
        self._warnings = set[str]() if warnings is None else warnings
        self.item = _NOTHING
        self.retries = 0
        self.slowed = False

    def begin(self, item: Item) -> None:
        """From here on all is about `item`."""
        self.item = item
        self.retries = 0
        self.slowed = False
        if self._limiter is not None:
            self._cuts = self._limiter.cuts
        self._listener.began(item)

    def sized(self, size: int) -> None:
        """It is known now how many bytes there are, which the plan may have known before."""
        if self.item.size is None:
            self._listener.sized(self.item, size)

    def moved(self, count: int) -> None:
        """So many more bytes are across."""
        self._listener.moved(self.item, count)

    def retried(self, event: Scheduled) -> None:
        """Something failed and will be tried again."""
        self.retries += 1
        self._listener.retried(self.item, event)

    def throttled(self) -> None:
        """The server asked to slow down."""
        self.slowed = True
        if self._limiter is not None:
            self._cuts = self._limiter.throttled(self._cuts)

    def warned(self, text: str) -> None:
        """Hand on what is worth knowing, once for all items of a run."""
        if text not in self._warnings:
            self._warnings.add(text)
            warner(self._listener)(text)
