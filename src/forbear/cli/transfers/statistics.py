"""How far a run of transfers has come, as a listener hears it: figures only. Nothing is shown here."""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from forbear.core.events import Scheduled
from forbear.transfer.items import Item, Outcome, Status

_WINDOW = 10.0
"""Seconds whose bytes make the speed: fewer would make it jump, more would hide that it has changed."""

_LARGEST_STEP = 4 * 1024 * 1024
"""Bytes that may come at once over a network; what comes in a larger step was there before, and has no speed."""

_STATUS = re.compile(r": (\d{3} [A-Z].*)", re.DOTALL)
"""In what a failure says, the reply; before it is what was asked for, which is known where it is shown."""


@dataclass(slots=True)
class Flight:
    """One transfer under way."""

    item: Item
    size: int | None
    moved: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry of one item, or (None) of what the plan asks for; it is to begin at `due` on the progress's clock."""

    item: Item | None
    reason: str
    due: float


class Progress:
    """The figures so far. It is written by one thread and may be read by another at any moment."""

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
        self.retry: Retry | None = None
        self._flights: dict[int, Flight] = {}
        self._planned: int | None = 0
        self._dropped = 0
        self._settled = 0
        self._flying = 0
        self._moved = 0
        self._samples = deque([(self.began_at, 0)])

    def planned(self, items: int, size: int | None, complete: bool) -> None:
        """So many there are, as far as is known."""
        self.items, self._planned, self.is_planned = items, size, complete

    def began(self, item: Item) -> None:
        """A transfer begins."""
        self._flights[id(item)] = Flight(item, item.size)

    def sized(self, item: Item, size: int) -> None:
        """Its size, which the plan did not know, is known now."""
        flight = self._flights.get(id(item))
        if flight is not None:
            flight.size = size
            if self.is_planned and self.items == 1:
                self._planned = size

    def moved(self, item: Item, count: int) -> None:
        """Bytes of it are across, or, where `count` is negative, must go again."""
        flight = self._flights.get(id(item))
        if flight is not None:
            flight.moved += count
            self._flying += count
            if count <= _LARGEST_STEP:
                self._moved += count
            self.moved_at = self.clock()

    def retried(self, item: Item | None, event: Scheduled) -> None:
        """Something of it, or of the plan, failed and will be tried again."""
        self.retries += 1
        status = _STATUS.search(event.failure.text)
        self.retry = Retry(item, status[1] if status else event.failure.text, self.clock() + event.delay)

    def ended(self, outcome: Outcome) -> None:
        """It is over."""
        flight = self._flights.pop(id(outcome.item), None)
        if flight is not None:
            self._flying -= flight.moved
        if outcome.status is Status.DONE:
            self._settled += outcome.item.size or outcome.bytes
        else:
            self._dropped += outcome.item.size or 0
        self.moved_at = self.clock()
        self.done += outcome.status is Status.DONE
        self.skipped += outcome.status is Status.SKIPPED
        self.failed += outcome.status is Status.FAILED

    @property
    def ended_items(self) -> int:
        """How many are over, whatever came of them."""
        return self.done + self.skipped + self.failed

    @property
    def across(self) -> int:
        """The bytes across, with those of what is over."""
        return max(self._settled + self._flying, 0)

    @property
    def size(self) -> int | None:
        """The bytes of all that has not failed or been skipped, as far as is known; None where that is not known."""
        return None if self._planned is None else self._planned - self._dropped

    @property
    def share(self) -> float | None:
        """Of all bytes, how many are across, from 0 to 1; None while nobody knows how many there are."""
        size = self.size
        return min(self.across / size, 1.0) if size and self.is_planned else None

    def largest(self, count: int, at_least: int) -> list[Flight]:
        """The largest transfers under way."""
        found = [flight for flight in list(self._flights.values()) if (flight.size or flight.moved) >= at_least]
        return sorted(found, key=lambda flight: -(flight.size or flight.moved))[:count]

    def speed(self) -> float:
        """Bytes a second, of late; to be asked often, since it remembers when it was asked."""
        now = self.clock()
        self._samples.append((now, self._moved))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _WINDOW:
            self._samples.popleft()
        before, base = self._samples[0]
        return max(self._moved - base, 0) / (now - before) if now > before else 0.0
