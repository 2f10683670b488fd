"""Download a large object to a part file from which a later process can continue.

The part file keeps the bytes, and a `State` says of which version they are. This is where a download continues after
its process died.
"""

import os
from collections.abc import Awaitable
from functools import cache, partial
from pathlib import Path
from typing import Any

from forbear_transfer.checksum import Crc32c
from forbear_transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear_transfer.downloads.sinks import FileSink
from forbear_transfer.downloads.slices import Layout, Slices, layout_for
from forbear_transfer.downloads.target import DownloadOptions, PartFile
from forbear_transfer.errors import ChecksumMismatch, TargetExists, TransferError, unwritable, why_not
from forbear_transfer.files import hash_file
from forbear_transfer.progress import current_progress
from forbear_transfer.state import State
from forbear_transfer.threads import run_steps, to_the_end
from forbear_transfer.wire.response import Response


class ResumableDownload:
    """One download to a resumable part file, with its state; `path` is the target's path for error messages.

    Without slices, the length of the part file is the progress, so the state is written only once. With slices, the
    state has their layout.
    """

    def __init__(self, fetch: Fetch, path: str, part: PartFile, state: State, options: DownloadOptions) -> None:
        version = fetch.version
        self._fetch = fetch
        self._path = path
        self._part = part
        self._state = state
        self._options = options
        self._received: FileSink | Slices | None = None
        self._identity = {"generation": version.generation, "size": version.size, "crc32c": version.crc32c}

    async def run(self, response: Response | None, connections: int) -> bool:
        """Continue or begin the download, and publish the file; return whether the server decoded its gzip.

        `response` may have the object from its beginning. `connections` is the largest possible number of slices. If
        the server does not serve ranges, begin anew without slices. On failure, part file and state are kept only if a
        later process can continue from them.
        """
        size, part = self._fetch.version.size, self._part
        try:
            layout, resumed = self._load_progress()
            if not resumed:
                layout = layout_for(size, self._options.slices, connections)
                self._begin(layout)
            decoded = False
            try:
                if layout is not None:
                    await self._download_in_slices(layout, response, restarts=2 if resumed else 1)
            except Unsliceable:
                layout, resumed, response = None, False, None
                self._begin(None)
            if layout is None:
                decoded = await self._download_in_one(response, resumed=resumed)
            await self._sync()
            await part.publish(self._fetch.version, self._options, decoded=decoded)
        except (ChecksumMismatch, TargetExists, Gone):
            self._discard()
            raise
        except BaseException:
            progress = part.size if self._received is None else self._received.position
            if not (self._state.kept and progress):
                self._discard()
            raise
        self._state.forget()
        return decoded

    async def _download_in_one(self, response: Response | None, *, resumed: bool) -> bool:
        """Hash what is there if `resumed`, fetch the rest with one request at a time, and verify all."""
        size, checksum = self._fetch.version.size, Crc32c()
        if resumed:
            await self._hash(run_steps(hash_file(self._part.descriptor, 0, size, checksum)))
            current_progress.get().moved(checksum.size)
        self._received = sink = FileSink(self._part.descriptor, self._path, size, checksum=checksum, truncate=True)
        fill = partial(self._fetch.fill, sink)
        await self._fetch.fill_verified(sink, fill, response, restarts=2 if resumed else 1)
        return sink.decoded

    async def _download_in_slices(self, layout: Layout, response: Response | None, *, restarts: int) -> None:
        """Hash the bytes that each slice of `layout` has, fetch the rest side by side, and verify all."""
        at_once = self._options.slices is not None
        with Slices(self._part.descriptor, self._path, layout, self._save, at_once=at_once) as slices:
            await self._hash(slices.resume(layout))
            current_progress.get().moved(slices.position)
            self._received = slices
            await self._fetch.fill_verified(slices, partial(slices.fill, self._fetch), response, restarts=restarts)

    async def _hash(self, hashing: Awaitable[None]) -> None:
        try:
            await hashing
        except OSError as error:
            raise TransferError(
                f"cannot read what an earlier run left in {self._part.path}: {why_not(self._part.path, error)}",
                "delete that file",
            ) from error

    def _load_progress(self) -> tuple[Layout | None, bool]:
        """Return the saved layout (None without slices), and whether the download can continue from what was saved.

        It can if the part file is not empty, the state is of the same generation, size and CRC32C, and both fit
        together. After the machine was restarted, only the synced layout counts.
        """
        saved, size = self._state.load(), self._fetch.version.size
        there = self._part.size
        layout, synced, boot = (saved.pop(name, None) for name in ("slices", "synced", "boot"))
        if boot != _find_boot_id():
            layout = synced
        if saved != self._identity or not there:
            return None, False
        if layout is None:
            return None, there <= size
        return layout, there == size and _covers(layout, size)

    def _begin(self, layout: Layout | None) -> None:
        size, part = self._fetch.version.size, self._part
        try:
            os.ftruncate(part.descriptor, 0)
            free = part.free
            if free is not None and free < size:
                room = f"the object has {size} bytes, and the disk has room for {free}"
                raise TransferError(f"cannot write {self._path}: {room}", "make room, then start again")
            self._save(layout, layout, True)
            if layout is not None:
                os.ftruncate(part.descriptor, size)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _save(self, layout: Layout | None, synced: Layout | None, lasting: bool) -> None:
        slices = {} if layout is None else {"slices": layout, "synced": synced, "boot": _find_boot_id()}
        self._state.save({**self._identity, **slices}, lasting=lasting)

    async def _sync(self) -> None:
        try:
            await to_the_end(os.fsync, self._part.descriptor)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _discard(self) -> None:
        self._part.keep = False
        self._state.forget()


@cache
def _find_boot_id() -> str:
    """Return an id that changes each time the machine starts; "" if the system has none (only Linux has one)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().decode("ascii").strip()  # needs no import
    except (OSError, ValueError):
        return ""


def _covers(layout: Any, size: int) -> bool:
    """Return whether `layout`, read from disk, has slices that cover `size` bytes without a gap, and valid counts."""
    position = 0
    try:
        for start, end, count in layout:
            if start != position or not 0 <= count <= end - start:
                return False
            position = end
    except (TypeError, ValueError):
        return False
    return bool(position == size)
