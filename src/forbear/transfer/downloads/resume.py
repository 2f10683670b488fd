"""Large downloads: their bytes stay on disk when they end halfway, and the next process goes on from there."""

import os
from functools import cache, partial
from pathlib import Path
from typing import Any

from forbear.transfer.checksum import Crc32c
from forbear.transfer.downloads.fetch import Fetch, Gone, Unsliceable, fill_checked
from forbear.transfer.downloads.sinks import FileSink
from forbear.transfer.downloads.slices import Layout, Slices, layout_for
from forbear.transfer.downloads.target import Part, Place, Terms, land
from forbear.transfer.errors import ChecksumMismatch, TargetExists, TransferError, unwritable, why_not
from forbear.transfer.files import hash_file
from forbear.transfer.progress import current_progress
from forbear.transfer.state import State
from forbear.transfer.threads import in_steps, to_the_end
from forbear.transfer.wire.response import Response


class Large:
    """A download to a part file that is kept, and what the state says of it.

    Without slices the length of the file is how far it has come, so the state is written only once.
    """

    def __init__(self, fetch: Fetch, place: Place, part: Part, state: State, terms: Terms) -> None:
        version = fetch.version
        self._fetch = fetch
        self._place = place
        self._part = part
        self._state = state
        self._terms = terms
        self._sink: FileSink | Slices | None = None
        self._known = {"generation": version.generation, "size": version.size, "crc32c": version.crc32c}

    async def run(self, reply: Response | None, connections: int) -> bool:
        """Bring the file into its place; whether the server decoded it on the way. `reply` is from its beginning."""
        version, part = self._fetch.version, self._part
        try:
            layout, begun = self._taken_up()
            if not begun:
                layout = layout_for(version.size, self._terms.slices, connections)
                self._begin(layout)
            decoded = False
            try:
                if layout is not None:
                    await self._in_slices(layout, reply, restarts=2 if begun else 1)
            except Unsliceable:
                layout, begun, reply = None, False, None
                self._begin(None)
            if layout is None:
                decoded = await self._in_one(reply, begun=begun)
            await self._sync()
            await land(part, self._place, version, self._terms, decoded=decoded)
        except (ChecksumMismatch, TargetExists, Gone):
            self._drop()
            raise
        except BaseException:
            if not (self._state.kept and (part.size if self._sink is None else self._sink.position)):
                self._drop()  # there is nothing to go on from, or nobody would know of what
            raise
        self._state.forget()
        return decoded

    async def _sync(self) -> None:
        try:
            await to_the_end(os.fsync, self._part.descriptor)
        except OSError as error:
            raise unwritable(self._place.path, error) from error

    def _unreadable(self, error: OSError) -> TransferError:
        why = why_not(self._part.path, error)
        return TransferError(f"cannot read what an earlier run left in {self._part.path}: {why}", "delete that file")

    def _drop(self) -> None:
        self._part.keep = False
        self._state.forget()

    async def _in_one(self, reply: Response | None, *, begun: bool) -> bool:
        version, checksum = self._fetch.version, Crc32c()
        if begun:
            try:
                await in_steps(hash_file(self._part.descriptor, 0, version.size, checksum))
            except OSError as error:
                raise self._unreadable(error) from error
            current_progress.get().moved(checksum.size)
        sink = FileSink(self._part.descriptor, self._place.path, version.size, checksum=checksum, truncate=True)
        self._sink = sink
        await fill_checked(self._fetch, sink, partial(self._fetch.fill, sink), reply, restarts=2 if begun else 1)
        return sink.decoded

    async def _in_slices(self, layout: Layout, reply: Response | None, *, restarts: int) -> None:
        at_once = self._terms.slices is not None
        with Slices(self._part.descriptor, self._place.path, layout, self._save, at_once=at_once) as slices:
            try:
                await slices.look(layout)
            except OSError as error:
                raise self._unreadable(error) from error
            current_progress.get().moved(slices.position)
            self._sink = slices
            await fill_checked(self._fetch, slices, partial(slices.fill, self._fetch), reply, restarts=restarts)

    def _taken_up(self) -> tuple[Layout | None, bool]:
        """What an earlier process left of this very version: its slices, and whether there is anything."""
        saved, size = self._state.load(), self._fetch.version.size
        there = self._part.size
        layout, synced, boot = (saved.pop(name, None) for name in ("slices", "synced", "boot"))
        if boot != _boot():
            layout = synced
        if saved != self._known or not there:
            return None, False
        if layout is None:
            return None, there <= size
        return layout, there == size and _covers(layout, size)

    def _begin(self, layout: Layout | None) -> None:
        """Have an empty file, or one with room for all slices; TransferError where the disk has no room."""
        version, part = self._fetch.version, self._part
        try:
            os.ftruncate(part.descriptor, 0)
            free = part.free
            if free is not None and free < version.size:
                room = f"{version.size} bytes are to come, and the disk has room for {free}"
                raise TransferError(f"cannot write {self._place.path}: {room}", "make room, then start again")
            self._save(layout, layout, lasting=True)
            if layout is not None:
                os.ftruncate(part.descriptor, version.size)
        except OSError as error:
            raise unwritable(self._place.path, error) from error

    def _save(self, layout: Layout | None, synced: Layout | None, *, lasting: bool) -> None:
        slices = {} if layout is None else {"slices": layout, "synced": synced, "boot": _boot()}
        self._state.save({**self._known, **slices}, lasting=lasting)


@cache
def _boot() -> str:
    """What tells this run of the machine from others; empty where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _covers(layout: Any, size: int) -> bool:
    """Whether what was read from disk is a layout of so many bytes."""
    position = 0
    try:
        for start, end, count in layout:
            if start != position or not 0 <= count <= end - start:
                return False
            position = end
    except (TypeError, ValueError):
        return False
    return bool(position == size)
