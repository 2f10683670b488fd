"""Fleet: does many items over one Storage, as many at a time as the server takes. It knows no rule of any item.

A fixed set of workers takes the items from a queue that the plan fills meanwhile, so that memory does not depend on how
many there are. One that fails stops no other.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from forbear.run.runtime import current
from forbear.transfer.files import StrPath
from forbear.transfer.items import QUIET, Item, Listener, Outcome, Status, Summary
from forbear.transfer.progress import current_meter
from forbear.transfer.storage.client import Storage
from forbear.transfer.workers.gauge import Gauge
from forbear.transfer.workers.manifest import Manifest
from forbear.transfer.workers.perform import Folders, perform

_AHEAD = 1000


class Fleet:
    """Does items; `summary` counts their outcomes. `parallel` is how many at most, by default one a connection.

    `warnings` are the texts that the listener has had, which come once.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        parallel: int | None = None,
        listener: Listener | None = None,
        manifest: Manifest | None = None,
        state: StrPath | None = None,
        warnings: set[str] | None = None,
    ) -> None:
        self.summary = Summary()
        self._storage = storage
        self._listener = listener or QUIET
        self._manifest = manifest
        self._state = state
        self._maximum = storage.connections if parallel is None else parallel
        self._limiter = Limiter(self._maximum)
        self._folders = Folders()
        self._warnings = set[str]() if warnings is None else warnings
        self._items = 0
        self._size: int | None = 0
        self._at_work = 0
        self._alone = asyncio.Lock()
        self._one_ended = asyncio.Event()

    async def run(self, items: AsyncGenerator[Item], *, complete: bool = True) -> None:
        """Do all items; `complete=False` if there will be others."""
        runtime = current.get()
        start = runtime.monotonic()
        self._limiter.lifted = False
        queue: asyncio.Queue[Item | None] = asyncio.Queue(_AHEAD)
        try:
            async with aclosing(items), asyncio.TaskGroup() as group:
                for number in range(self._maximum):
                    group.create_task(self._work(number, queue))
                await self._plan(items, queue, complete=complete)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None  # what stops all is not of the items: the plan, the disk, the user
        finally:
            self.summary.seconds += runtime.monotonic() - start

    async def _plan(self, items: AsyncGenerator[Item], queue: asyncio.Queue[Item | None], *, complete: bool) -> None:
        async for item in items:
            self._items += 1
            if self._size is not None:
                self._size = None if item.size is None else self._size + item.size
            self._listener.planned(self._items, self._size, complete=False)
            await queue.put(item)
        if complete:
            self._listener.planned(self._items, self._size, complete=True)
        for _ in range(self._maximum):
            await queue.put(None)

    async def _work(self, number: int, queue: asyncio.Queue[Item | None]) -> None:
        limiter = self._limiter
        gauge = Gauge(self._listener, limiter, self._warnings)
        current_meter.set(gauge)
        while True:
            await limiter.admitted(number)
            item = await queue.get()
            if item is None:
                limiter.lift()
                return
            if self._manifest is not None and self._manifest.has(item):
                self._ended(Outcome(item, Status.SKIPPED, error="done before, by the manifest"))
                continue
            outcome = await self._outcome(item, gauge)
            if outcome.status is Status.DONE and not gauge.slowed:
                limiter.succeeded()
            if self._manifest is not None:
                self._manifest.add(outcome)
            self._ended(outcome)

    async def _outcome(self, item: Item, gauge: Gauge) -> Outcome:
        """Do an item; one that could open no more files is done again, alone, once others have closed theirs."""
        outcome = await self._attempt(item, gauge, crowded=self._at_work > 0)
        if outcome is not None:
            return outcome
        async with self._alone:
            while True:
                outcome = await self._attempt(item, gauge, crowded=self._at_work > 0)
                if outcome is not None:
                    return outcome
                if self._at_work:
                    await self._one_ended.wait()

    async def _attempt(self, item: Item, gauge: Gauge, *, crowded: bool) -> Outcome | None:
        self._at_work += 1
        try:
            return await perform(self._storage, item, gauge, self._folders, state=self._state, crowded=crowded)
        finally:
            self._at_work -= 1
            self._one_ended.set()
            self._one_ended.clear()

    def _ended(self, outcome: Outcome) -> None:
        self.summary.add(outcome)
        self._listener.ended(outcome)


START = 16


class Limiter:
    """Grows with success and is halved when the server asks to slow down: `limit` may be under way, `maximum` at most.

    It doubles with every round until the first time, then grows by one a round.
    """

    def __init__(self, maximum: int, start: int = START) -> None:
        if maximum < 1:
            raise ValueError(f"`parallel` must be at least 1, got {maximum}")
        self._maximum = maximum
        self._limit = float(min(start, maximum))
        self._grown = asyncio.Event()
        self.cuts = 0
        """How often it was halved."""
        self.lifted = False
        """Whether all are let go, for there is nothing left to limit."""

    @property
    def limit(self) -> int:
        """How many may be under way."""
        return int(self._limit)

    def succeeded(self) -> None:
        """One came through without being told to slow down."""
        if self._limit >= self._maximum:
            return
        before = int(self._limit)
        self._limit = min(self._maximum, self._limit + (1 / self._limit if self.cuts else 1))
        if int(self._limit) > before:
            self._wake()

    def throttled(self, seen: int) -> int:
        """One was told to slow down; returns how often that has led to a cut by now.

        `seen` is that number when its attempt began: the cut that an attempt has not seen was made for it as well, so
        that those who were under way together halve the limit once.
        """
        if seen == self.cuts:
            self.cuts += 1
            self._limit = max(1.0, self._limit / 2)
        return self.cuts

    async def admitted(self, number: int) -> None:
        """Wait until so many may be under way, counted from 0."""
        while number >= self._limit and not self.lifted:
            await self._grown.wait()

    def lift(self) -> None:
        """Let all go that wait."""
        self.lifted = True
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown.clear()
