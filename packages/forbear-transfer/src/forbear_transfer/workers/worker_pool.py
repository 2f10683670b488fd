"""A pool of workers that transfer many items over one Storage, as many at a time as the server allows.

The workers take items from a queue of limited length that the plan fills meanwhile. The outcomes of failed items are
kept, those of others are not. An item that fails stops no other item.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from forbear.adapters import current_runtime
from forbear_transfer.errors import StrPath
from forbear_transfer.items import Item, Outcome, Status, Summary
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.storage.client import Storage
from forbear_transfer.workers.local import Folders
from forbear_transfer.workers.perform import perform

if TYPE_CHECKING:
    from forbear_transfer.workers.manifest import Manifest

START = 16
_QUEUED = 1000


class WorkerPool:
    """Transfers items and counts their outcomes in `summary`.

    `progress` gets the events. `parallel` is the largest number of items at a time, by default one per connection.
    Items that `manifest` has as done are skipped, and it records the outcomes of the others. `state` is the folder for
    what the next process needs to continue.
    """

    def __init__(
        self,
        storage: Storage,
        progress: Progress,
        *,
        parallel: int | None = None,
        manifest: "Manifest | None" = None,
        state: StrPath | None = None,
    ) -> None:
        self.summary = Summary()
        self._storage = storage
        self._progress = progress
        self._manifest = manifest
        self._state = state
        self._maximum = storage.connections if parallel is None else parallel
        self._limiter = Limiter(self._maximum)
        self._folders = Folders()
        self._items = 0
        self._size: int | None = 0
        self._active = 0
        self._alone = asyncio.Lock()
        self._one_ended = asyncio.Event()

    async def run(self, items: AsyncGenerator[Item], *, complete: bool = True) -> None:
        """Transfer all items, and add their outcomes to `summary`.

        With `complete=False`, another call will follow, and the last Planned event is left to that one. Failed items
        raise nothing. An error of the plan, the manifest or the listener ends the run and is raised.
        """
        runtime = current_runtime()
        start = runtime.monotonic()
        self._limiter.lifted = False
        queue: asyncio.Queue[Item | None] = asyncio.Queue(_QUEUED)
        try:
            async with aclosing(items), asyncio.TaskGroup() as group:
                for number in range(self._maximum):
                    group.create_task(self._work(number, queue))
                await self._plan(items, queue, complete=complete)
        except BaseExceptionGroup as errors:
            # It is of the plan, the manifest or the listener, or a cancellation.
            raise errors.exceptions[0] from None
        finally:
            self.summary.seconds += runtime.monotonic() - start

    async def _plan(self, items: AsyncGenerator[Item], queue: asyncio.Queue[Item | None], *, complete: bool) -> None:
        async for item in items:
            self._items += 1
            if self._size is not None:
                self._size = None if item.size is None else self._size + item.size
            self._progress.emit_plan(self._items, self._size, complete=False)
            if queue.full():
                await queue.put(item)
            else:
                queue.put_nowait(item)
        if complete:
            self._progress.emit_plan(self._items, self._size, complete=True)
        for _ in range(self._maximum):
            await queue.put(None)

    async def _work(self, number: int, queue: asyncio.Queue[Item | None]) -> None:
        limiter = self._limiter
        progress = _WorkerProgress(self._progress, limiter)
        current_progress.set(progress)
        while True:
            await limiter.admit(number)
            item = await queue.get()
            if item is None:
                limiter.lift()
                return
            if self._manifest is not None and self._manifest.has(item):
                self._finish(Outcome(item, Status.SKIPPED, error="done before, by the manifest"))
                continue
            outcome = await self._transfer(item, progress)
            if outcome.status is Status.DONE and not progress.was_throttled:
                limiter.succeeded()
            if self._manifest is not None:
                self._manifest.add(outcome)
            self._finish(outcome)

    async def _transfer(self, item: Item, progress: Progress) -> Outcome:
        """Transfer an item; if no more files can be opened, again when others have closed theirs, one at a time."""
        outcome = await self._attempt(item, progress)
        if outcome is not None:
            return outcome
        async with self._alone:
            while (outcome := await self._attempt(item, progress)) is None:
                if self._active:
                    await self._one_ended.wait()
            return outcome

    async def _attempt(self, item: Item, progress: Progress) -> Outcome | None:
        crowded = self._active > 0
        self._active += 1
        try:
            return await perform(self._storage, item, progress, self._folders, state=self._state, crowded=crowded)
        finally:
            self._active -= 1
            if self._alone.locked():
                self._one_ended.set()
                self._one_ended.clear()

    def _finish(self, outcome: Outcome) -> None:
        self.summary.add(outcome)
        self._progress.emit_outcome(outcome)


class Limiter:
    """A limit on concurrent transfers that is found by trying: `limit` may be active, never more than `maximum`.

    It begins with `start`. Success raises the limit; a server that asks to slow down halves it. The limit doubles with
    every round until the first cut, then grows by one a round.
    """

    def __init__(self, maximum: int, start: int = START) -> None:
        if maximum < 1:
            raise ValueError(f"`parallel` must be at least 1, got {maximum}")
        self._maximum = maximum
        self._limit = float(min(start, maximum))
        self._grown = asyncio.Event()
        self.cuts = 0
        """The number of times that the limit was halved."""
        self.lifted = False
        """True if everyone is admitted, because nothing is left to limit."""

    @property
    def limit(self) -> int:
        return int(self._limit)

    def succeeded(self) -> None:
        """Raise the limit after a transfer that was not throttled, by 1; after the first cut by 1 / limit."""
        if self._limit >= self._maximum:
            return
        before = int(self._limit)
        self._limit = min(self._maximum, self._limit + (1 / self._limit if self.cuts else 1))
        if int(self._limit) > before:
            self._wake()

    def throttled(self, seen: int) -> int:
        """Halve the limit (to 1 at least) after a transfer was throttled, and return the number of cuts so far.

        `seen` is the number of cuts when the attempt began. If there was a cut since then, the limit stays: transfers
        that were active together halve it once.
        """
        if seen == self.cuts:
            self.cuts += 1
            self._limit = max(1.0, self._limit / 2)
        return self.cuts

    async def admit(self, number: int) -> None:
        """Wait until worker `number`, counted from 0, is below the limit, or until `lift` admits all workers."""
        while number >= self._limit and not self.lifted:
            await self._grown.wait()

    def lift(self) -> None:
        self.lifted = True
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown.clear()


class _WorkerProgress(Progress):
    """The progress of one worker, which lowers the limit of the pool when the worker is throttled."""

    __slots__ = ("_cuts", "_limiter", "was_throttled")

    def __init__(self, run: Progress, limiter: Limiter) -> None:
        super().__init__(run.on_event, run.warnings)
        self._limiter = limiter
        self._cuts = 0
        self.was_throttled = False

    def start(self, item: Item) -> None:
        self.was_throttled = False
        self._cuts = self._limiter.cuts
        super().start(item)

    def throttled(self) -> None:
        self.was_throttled = True
        self._cuts = self._limiter.throttled(self._cuts)
