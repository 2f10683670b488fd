"""Download an object in slices: ranges that arrive side by side, into one file, each with its own progress.

A `Layout` says how far each slice has come. It is saved while they arrive, so that a later process can continue them.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from forbear.adapters import current_runtime
from forbear_transfer.checksum import Crc32c
from forbear_transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear_transfer.downloads.sinks import FileSink
from forbear_transfer.errors import TransferError
from forbear_transfer.files import hash_file
from forbear_transfer.progress import current_progress
from forbear_transfer.threads import run_steps
from forbear_transfer.wire.response import Response

SLICED_FROM = 150 * 1024 * 1024
"""The size in bytes from which objects are sliced by default."""

MAX_SLICES = 4
"""The number of slices of an object of at least SLICED_FROM bytes, if the caller names no number."""

_MIN_SLICE = 1024 * 1024
_ALIGNED = 256 * 1024
_SAVED_EVERY = 8 * 1024 * 1024
_SYNCED_AFTER = 1.0  # seconds; a disk that syncs more often does little else
_ALONE = 0.5  # seconds
_WORTHWHILE = 4

Layout = list[list[int]]
"""Start, end (not included) and number of written bytes of each slice, in order."""

Save = Callable[[Layout, Layout, bool], None]
"""Saves two layouts: one that holds while the machine runs, and a synced one. True syncs the file that has them."""


def layout_for(size: int, slices: int | None, connections: int) -> Layout | None:
    """Return the layout of a new download of `size` bytes in `slices` slices; None if there would be fewer than two.

    By default (None), objects from 150 MiB on have 4 slices, and smaller ones are not sliced. There are at most
    `connections` slices, and at most one for each full MiB of the size. Slices begin at multiples of 256 KiB.
    """
    if slices is None:
        slices = MAX_SLICES if size >= SLICED_FROM else 1
    count = min(slices, connections, size // _MIN_SLICE)
    if count < 2:
        return None
    each = -(-size // (count * _ALIGNED)) * _ALIGNED
    return [[start, min(start + each, size), 0] for start in range(0, size, each)]


class Slices(AbstractContextManager["Slices", None]):
    """The slices of one object, written to one file; a context manager that saves their progress.

    With `at_once`, all slices are fetched side by side. Otherwise one connection fetches them one after the other, and
    further connections join only if it is slow. If it is fast, the bottleneck is elsewhere, and more connections would
    not help.

    The progress is saved every 8 MiB and at exit, also after the last byte: the file may still fail to take its name. A
    saved layout never claims bytes that are not in the file. After the process died, the saved progress counts; after
    the machine crashed, only the part of it that was synced to disk. A sync can be slow, so it runs in a thread, at
    most once a second.
    """

    decoded = False

    def __init__(self, descriptor: int, name: str, layout: Layout, save: Save, *, at_once: bool) -> None:
        self._sinks = [
            FileSink(descriptor, name, end, start=start, on_write=self._on_write) for start, end, _ in layout
        ]
        self._descriptor = descriptor
        self._save = save
        self._at_once = at_once
        self._unsaved = 0
        self._synced_at = asyncio.get_running_loop().time()
        self._synced = [[start, end, 0] for start, end, _ in layout]
        self._lock = threading.Lock()
        self._closed = False
        self._syncing: asyncio.Future[None] | None = None

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._save_progress()

    @property
    def position(self) -> int:
        return sum(sink.position - sink.start for sink in self._sinks)

    @property
    def checksum(self) -> Crc32c:
        whole = Crc32c()
        for sink in self._sinks:
            whole.join(sink.checksum)
        return whole

    async def resume(self, layout: Layout) -> None:
        """Hash the bytes that an earlier process wrote, as its `layout` says; each slice continues behind its bytes."""
        for sink, (start, _, count) in zip(self._sinks, layout, strict=True):
            await run_steps(hash_file(self._descriptor, start, count, sink.checksum))
            sink.position = start + sink.checksum.size

    async def fill(self, fetch: Fetch, response: Response | None) -> None:
        """Fetch the bytes that are missing. `response` may have the object from its beginning.

        If slices fail, raise one failure: Gone or Unsliceable before any other. After one of these two, the bytes of
        all slices are discarded.
        """
        missing = iter([sink for sink in self._sinks if sink.position < sink.end])
        failure: BaseException | None = None

        async def work() -> None:
            nonlocal response
            for sink in missing:
                first, response = response, None
                if first is not None and sink.position > 0:
                    first.close()
                    first = None
                await fetch.fill(sink, first)

        async def add_workers() -> None:
            if self._at_once or await self._is_slow():
                for _ in self._sinks[1:]:
                    group.create_task(work())

        try:
            async with asyncio.TaskGroup() as group:
                adding = group.create_task(add_workers())
                await work()
                adding.cancel()
        except BaseExceptionGroup as failures:
            failure = _pick_failure(failures)
        finally:
            if self._syncing is not None:  # `__exit__` would wait for it, too, and stop the event loop meanwhile
                await asyncio.wait({self._syncing})
        if failure is not None:
            if isinstance(failure, Gone | Unsliceable):
                current_progress.get().moved(-self.position)
                self.restart()
            raise failure

    def restart(self) -> None:
        for sink in self._sinks:
            sink.restart()

    async def _is_slow(self) -> bool:
        """Wait half a second; return whether the rest would take over two more seconds at the speed of that time."""
        before = self.position
        await current_runtime().asleep(_ALONE)
        left = self._sinks[-1].end - self.position
        return left > (self.position - before) * _WORTHWHILE

    @property
    def _layout(self) -> Layout:
        return [[sink.start, sink.end, sink.position - sink.start] for sink in self._sinks]

    def _on_write(self, count: int) -> None:
        self._unsaved += count
        if self._unsaved < _SAVED_EVERY:
            return
        self._unsaved = 0
        self._save_progress()
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._synced_at + _SYNCED_AFTER and (self._syncing is None or self._syncing.done()):
            self._synced_at = now
            self._syncing = loop.run_in_executor(None, self._sync, self._layout)
            self._syncing.add_done_callback(self._after_sync)

    def _save_progress(self) -> None:
        with suppress(TransferError):  # the only effect is that a later process fetches more
            self._save(self._layout, self._synced, False)

    def _sync(self, layout: Layout) -> None:
        """Sync the file to disk and save `layout` as synced, unless the context was left meanwhile; ignore failures."""
        with self._lock, suppress(OSError, TransferError):
            if not self._closed:
                os.fsync(self._descriptor)
                self._synced = layout
                self._save(layout, layout, True)

    def _after_sync(self, _: object) -> None:
        """Save the present progress again: the layout that the sync has saved dates from its start."""
        if not self._closed:
            self._save_progress()


def _pick_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    every = failures.exceptions
    return next((each for each in every if isinstance(each, Gone | Unsliceable)), every[0])
