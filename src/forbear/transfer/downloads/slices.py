"""Slices: an object in parts that come side by side, into one file, each of them continued by itself."""

import asyncio
import os
import threading
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

from forbear.run.runtime import current
from forbear.transfer.checksum import Crc32c
from forbear.transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear.transfer.downloads.sinks import FileSink
from forbear.transfer.errors import TransferError
from forbear.transfer.files import hash_file
from forbear.transfer.progress import current_progress
from forbear.transfer.threads import in_steps
from forbear.transfer.wire.response import Response

SLICED_FROM = 150 * 1024 * 1024
"""Objects of so many bytes come in slices unless the caller says otherwise."""

MOST = 4
_LEAST = 1024 * 1024
_ALIGNED = 256 * 1024
_SAVED_EVERY = 8 * 1024 * 1024
_SYNCED_AFTER = 1.0  # seconds; a disk that is asked for it more often does little else
_ALONE = 0.5  # seconds
_WORTHWHILE = 4  # times as long

Layout = list[list[int]]
"""Of each slice: where it starts, where it ends (not included), and how many of its bytes are on disk."""


class Save(Protocol):
    """Puts down how far slices have come."""

    def __call__(self, layout: Layout, synced: Layout, *, lasting: bool) -> None:
        """`layout` is true as long as the machine runs, `synced` ever after; both are to last where `lasting`."""
        ...


def layout_for(size: int, slices: int | None, connections: int) -> Layout | None:
    """How to slice an object; None for not at all."""
    if slices is None:
        slices = MOST if size >= SLICED_FROM else 1
    count = min(slices, connections, size // _LEAST)
    if count < 2:
        return None
    each = -(-size // (count * _ALIGNED)) * _ALIGNED
    return [[start, min(start + each, size), 0] for start in range(0, size, each)]


class Slices:
    """The slices of an object, and a context in which it is put on disk how far they have come.

    Where they do not come side by side `at_once`, one connection takes them one after the other, and others join in
    unless it is fast: then the limit is elsewhere, and several would only get into each other's way.

    How far they have come is saved now and then, first their bytes and then the word of it: so it never claims bytes
    that are not there. When the process dies, what was written is; when the machine does, only what was synced before,
    which takes so long on some disks that it is done beside, and told apart.
    """

    decoded = False

    def __init__(self, descriptor: int, name: str, layout: Layout, save: Save, *, at_once: bool) -> None:
        self._sinks = [
            FileSink(descriptor, name, end, start=start, checksum=Crc32c(), wrote=self._wrote)
            for start, end, _ in layout
        ]
        self._descriptor = descriptor
        self._save = save
        self._at_once = at_once
        self._unsaved = 0
        self._synced_at = asyncio.get_running_loop().time()
        self._synced = [[start, end, 0] for start, end, _ in layout]
        self._lock = threading.Lock()
        self._left = False
        self._saving: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._left = True
        if kind is not None:
            self._save_passing()

    @property
    def position(self) -> int:
        """How many bytes are there."""
        return sum(sink.position - sink.start for sink in self._sinks)

    @property
    def checksum(self) -> Crc32c:
        """That of all bytes."""
        whole = Crc32c()
        for sink in self._sinks:
            whole.join(sink.checksum)
        return whole

    async def look(self, layout: Layout) -> None:
        """Take up what is on disk, by the layout of an earlier process."""
        for sink, (start, _, count) in zip(self._sinks, layout, strict=True):
            await in_steps(hash_file(self._descriptor, start, count, sink.checksum))
            sink.position = start + sink.checksum.size

    async def fill(self, fetch: Fetch, reply: Response | None) -> None:
        """Bring what is missing; `reply` has the object from its beginning, if it is there already."""
        missing = iter([sink for sink in self._sinks if sink.position < sink.end])
        failure: BaseException | None = None

        async def work() -> None:
            nonlocal reply
            for sink in missing:
                first, reply = reply, None
                if first is not None and sink.position > 0:
                    first.close()
                    first = None
                await fetch.fill(sink, first)

        async def join_in() -> None:
            if not self._at_once and not await self._is_slow():
                return
            for _ in self._sinks[1:]:
                group.create_task(work())

        try:
            async with asyncio.TaskGroup() as group:
                joining = group.create_task(join_in())
                await work()
                joining.cancel()
        except BaseExceptionGroup as failures:
            failure = _most_telling(failures)
        if failure is not None:
            if isinstance(failure, Gone | Unsliceable):
                current_progress.get().moved(-self.position)
                self.restart()
            raise failure
        if self._saving is not None:
            await asyncio.wait({self._saving})

    def restart(self) -> None:
        """Begin anew."""
        for sink in self._sinks:
            sink.restart()

    async def _is_slow(self) -> bool:
        """Whether one connection, which begins alone, would take much longer than it has had so far."""
        before = self.position
        await current.get().asleep(_ALONE)
        left = self._sinks[-1].end - self.position
        return left > (self.position - before) * _WORTHWHILE

    @property
    def _layout(self) -> Layout:
        return [[sink.start, sink.end, sink.position - sink.start] for sink in self._sinks]

    def _wrote(self, count: int) -> None:
        self._unsaved += count
        if self._unsaved < _SAVED_EVERY:
            return
        self._unsaved = 0
        self._save_passing()
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._synced_at + _SYNCED_AFTER and (self._saving is None or self._saving.done()):
            self._synced_at = now
            self._saving = loop.run_in_executor(None, self._put_on_disk, self._layout)
            self._saving.add_done_callback(self._after_sync)

    def _save_passing(self) -> None:
        with suppress(TransferError):  # without it, a later process would only have more to do
            self._save(self._layout, self._synced, lasting=False)

    def _put_on_disk(self, layout: Layout) -> None:
        with self._lock, suppress(OSError, TransferError):
            if not self._left:
                os.fsync(self._descriptor)
                self._synced = layout
                self._save(self._layout, layout, lasting=True)

    def _after_sync(self, _: object) -> None:
        """What has come since that began is put down again: the word of the sync has replaced later ones."""
        if not self._left:
            self._save_passing()


def _most_telling(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of the failures of several slices, the one that says what to do now."""
    for each in failures.exceptions:
        if isinstance(each, Gone | Unsliceable):
            return each
    return failures.exceptions[0]
