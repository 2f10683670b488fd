"""The statistics of running transfers, updated by their events: counts, bytes, speed and the last retry."""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from forbear import Scheduled
from forbear_transfer.cli.shared.estimate import TimeEstimate
from forbear_transfer.items import Item, Outcome, Status
from forbear_transfer.progress import Finished, Moved, Planned, Retried, Sized, Started, TransferEvent, Warned

_WINDOW = 10.0
"""Seconds over which the speed is averaged: fewer would make it jump, more would hide that it has changed."""

_SHORTEST_WINDOW = 1.0
"""Seconds of the shortest window from which the time left is estimated."""

_LARGEST_STEP = 4 * 1024 * 1024
"""The most bytes that one event may count for the speed: a larger step is of bytes that an earlier run transferred."""

_STATUS = re.compile(r": (\d{3} [A-Z].*)", re.DOTALL)
"""Matches the HTTP status, and all after it, in the text of a failure.

The text before it names the item, which is shown separately.
"""


@dataclass(slots=True)
class RunningItem:
    """An item that is being transferred: its size in bytes (None: not known) and the bytes `moved` so far."""

    item: Item
    size: int | None
    moved: int = 0


@dataclass(frozen=True, slots=True)
class LastRetry:
    """The latest retry of an item, or of a listing (`item` is None); `reason` is the failure before it.

    The next attempt starts at `due` on the clock of the statistics.
    """

    item: Item | None
    reason: str
    due: float


class Statistics:
    """The statistics so far. One thread calls it with the events; another may read it at any time.

    `items` counts the planned items, finally if `is_planned`. `moved_at` is the time on `clock` when bytes moved or an
    item finished last.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.began_at = clock()
        self.moved_at = self.began_at
        self.items = 0
        self.is_planned = False
        self.done = 0
        self.skipped = 0
        self.failed = 0
        self.retries = 0
        self.retry: LastRetry | None = None
        self._running: dict[int, RunningItem] = {}
        self._planned: int | None = 0
        self._dropped = 0
        self._finished = 0
        self._under_way = 0
        self._moved = 0
        self._samples = deque([(self.began_at, 0)])
        self._estimate = TimeEstimate()
        self._window = (self.began_at, 0, 0)

    def __call__(self, event: TransferEvent) -> None:
        """Update the statistics with an event."""
        match event:
            case Moved():
                self._move(event.item, event.bytes)
            case Planned():
                self.items, self._planned, self.is_planned = event.items, event.size, event.complete
            case Started():
                self._running[id(event.item)] = RunningItem(event.item, event.item.size)
            case Sized():
                self._resize(event.item, event.size)
            case Retried():
                self._retry(event.item, event.scheduled)
            case Finished():
                self._finish(event.outcome)
            case Warned():
                pass

    def _resize(self, item: Item | None, size: int) -> None:
        running = self._running.get(id(item))
        if running is not None:
            running.size = size
            if self.is_planned and self.items == 1:
                self._planned = size

    def _move(self, item: Item | None, count: int) -> None:
        running = self._running.get(id(item))
        if running is not None:
            running.moved += count
            self._under_way += count
            if count <= _LARGEST_STEP:
                self._moved += count
            self.moved_at = self.clock()

    def _retry(self, item: Item | None, scheduled: Scheduled) -> None:
        self.retries += 1
        status = _STATUS.search(scheduled.failure.text)
        self.retry = LastRetry(item, status[1] if status else scheduled.failure.text, self.clock() + scheduled.delay)

    def _finish(self, outcome: Outcome) -> None:
        running = self._running.pop(id(outcome.item), None)
        if running is not None:
            self._under_way -= running.moved
        if outcome.status is Status.DONE:
            self._finished += outcome.item.size or outcome.bytes
        else:
            self._dropped += outcome.item.size or 0
        self.moved_at = self.clock()
        self.done += outcome.status is Status.DONE
        self.skipped += outcome.status is Status.SKIPPED
        self.failed += outcome.status is Status.FAILED

    @property
    def ended_items(self) -> int:
        """The number of items that are done, skipped or failed."""
        return self.done + self.skipped + self.failed

    @property
    def across(self) -> int:
        """The bytes of all items that are done, and the bytes transferred so far of the running ones."""
        return max(self._finished + self._under_way, 0)

    @property
    def size(self) -> int | None:
        """The bytes of all items planned so far, without the failed and skipped ones; None if unknown."""
        return None if self._planned is None else self._planned - self._dropped

    @property
    def share(self) -> float | None:
        """The share of all bytes that is transferred, from 0 to 1.

        None while the plan is incomplete, and if the total is unknown or zero.
        """
        size = self.size
        return min(self.across / size, 1.0) if size and self.is_planned else None

    def largest(self, count: int, at_least: int) -> list[RunningItem]:
        """Return at most `count` running items of at least `at_least` bytes, the largest first.

        Where a size is unknown, the bytes moved so far count.
        """
        large = [item for item in list(self._running.values()) if (item.size or item.moved) >= at_least]
        return sorted(large, key=lambda item: -(item.size or item.moved))[:count]

    def time_left(self, speed: float) -> float | None:
        """Return the seconds that the rest takes, by the files and bytes of the past; None if that cannot be known.

        `speed` is the present one in bytes per second. Call it often: each call may end a window of the past.
        """
        began, files, moved = self._window
        now, ended, total = self.clock(), self.ended_items, max(self._moved, moved)
        if now - began >= _SHORTEST_WINDOW and (ended, total) != (files, moved):
            self._estimate.add(ended - files, total - moved, now - began)
            self._window = now, ended, total
        if not self.size or self.share is None:
            return None
        return self._estimate.seconds(self.items - ended, max(self.size - self.across, 0), speed)

    def speed(self) -> float:
        """Return the bytes a second over the last 10 s; each call adds a sample, so call it often.

        Bytes that arrive in one step of more than `_LARGEST_STEP` do not count.
        """
        now = self.clock()
        self._samples.append((now, self._moved))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _WINDOW:
            self._samples.popleft()
        before, base = self._samples[0]
        return max(self._moved - base, 0) / (now - before) if now > before else 0.0
