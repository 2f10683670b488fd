"""The statistics of running transfers, updated by their events: counts, bytes, speed and the last retry."""

import re
from collections import deque
from collections.abc import Callable

from forbear.adapters import dataclass
from forbear.events import Scheduled
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


_LARGE = 8 * 1024 * 1024
"""The mean size in bytes from which the time for a file beside that for its bytes is negligible."""
_FADING = 0.97
"""The weight of older windows against the next one: the network and the server change."""
_DISTINCT = 0.02
"""The least variation in the mixture of files and bytes for a fit of both."""
_ALIKE = 4.0
"""The factor within which the mean size of the remaining files must be that of the past ones without such a fit."""


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
        """The share of all bytes that is transferred; None while the plan is incomplete or the total unknown or 0."""
        size = self.size
        return min(self.across / size, 1.0) if size and self.is_planned else None

    def largest(self, count: int, at_least: int) -> list[RunningItem]:
        """Return the largest running items of at least `at_least` bytes; if a size is unknown, by the bytes moved."""
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


class TimeEstimate:
    """Learns from windows of time how long files and bytes take, and estimates the rest.

    A small file takes a request's time whatever its size, and a large one takes time by its bytes. So the time of a
    file has two parts, one for the file and one for its bytes. Both are fitted to the past.
    """

    def __init__(self) -> None:
        self._sums = [0.0] * 8

    def add(self, files: int, count: int, seconds: float) -> None:
        products = files * files, files * count, count * count, seconds * files, seconds * count
        new = (files, count, seconds, *products)
        self._sums = [before * _FADING + value for before, value in zip(self._sums, new, strict=True)]

    def seconds(self, files: int, count: int, speed: float) -> float | None:
        """Return the seconds that so many more files with `count` bytes in all take; None if that cannot be known.

        That is so while only small files were seen, and large ones are left, or the other way round. `speed` is the
        present one in bytes per second, which counts alone if all files are large.
        """
        if not files or count / files >= _LARGE:
            return count / speed if speed else None
        past_files, past_bytes, past_seconds, of_files, of_both, format_bytes, time_files, time_bytes = self._sums
        if not past_files or not past_seconds:
            return None
        spread = of_files * format_bytes
        rest = spread - of_both**2
        if spread and rest / spread > _DISTINCT:  # least squares, with no negative times
            each = (time_files * format_bytes - time_bytes * of_both) / rest
            byte = (time_bytes * of_files - time_files * of_both) / rest
            if each < 0:
                each, byte = 0.0, time_bytes / format_bytes
            elif byte < 0:
                each, byte = time_files / of_files, 0.0
            return each * files + byte * count
        before, after = past_bytes / past_files, count / files
        if before and not 1 / _ALIKE <= after / before <= _ALIKE:
            return None
        return past_seconds * files / past_files
