"""Downloads: the bytes of an object, checked, into a file that is there in whole or not at all, or into a stream."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import BinaryIO

import aiohttp

from forbear.core.verdict import TRANSIENT
from forbear.http.request import Request
from forbear.transfer.address import Url
from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import ChecksumMismatch, SourceChanged, TargetExists, TransferError
from forbear.transfer.fetch import FAILURES, Fetch, Gone
from forbear.transfer.meter import meter
from forbear.transfer.objects import Object
from forbear.transfer.patience import Patience
from forbear.transfer.place import Part, Place
from forbear.transfer.replies import GZIP, described
from forbear.transfer.sinks import FileSink, Sink, StreamSink
from forbear.transfer.state import State, default_directory
from forbear.transfer.storage import Storage, refusal

SMALL = 8 * 1024 * 1024
"""Up to this many bytes a download begins anew in the next process; larger ones go on where they were."""

_HASHED_AT_ONCE = 16 * 1024 * 1024


async def download(
    storage: Storage,
    source: Url | Object,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    no_clobber: bool = False,
    slices: int | None = None,
    decode: bool = True,
    state: Path | None = None,
) -> Object:
    """Download an object to a file, which is replaced by all of it or not touched, or to a binary stream."""
    return await Download(storage, source, target, no_clobber=no_clobber, state=state).run()


class Download:
    """One download; `run` it once."""

    def __init__(
        self,
        storage: Storage,
        source: Url | Object,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        no_clobber: bool,
        state: Path | None,
    ) -> None:
        self._storage = storage
        self._url = source if isinstance(source, Url) else Url(source.bucket, source.name)
        self._item = source if isinstance(source, Object) else None
        self._target = target
        self._no_clobber = no_clobber
        self._state = state
        self._parts = (storage.endpoint, str(self._url))

    async def run(self) -> Object:
        """Go on until it is done; a version that is gone gives way to the one that is there."""
        patience = Patience(self._storage.policy, f"download {self._url}")
        while True:
            try:
                return await self._land()
            except Gone as gone:
                cause = gone.error
                item = None if self._url.generation is not None else await self._storage.stat(self._url)
                if item is None:
                    raise cause from None
                if self._item is not None and item.generation == self._item.generation:
                    await patience.after(cause, TRANSIENT)
                else:
                    await patience.after(SourceChanged(f"{self._url} was replaced while it was read"), TRANSIENT)
                self._item = item

    async def _land(self) -> Object:
        target = self._target
        if not isinstance(target, str | os.PathLike):
            return await self._stream(target, getattr(target, "name", "the stream"))
        place = Place.of(target, no_clobber=self._no_clobber)
        if place.special:
            with await asyncio.to_thread(place.opened) as stream:
                return await self._stream(stream, place.path)
        begun = place.has_part(*self._parts)
        if begun and self._item is None:
            self._item = await self._storage.stat(self._url)
        async with AsyncExitStack() as stack:
            reply = None
            if self._item is None:
                reply, self._item = await self._first(stack)
            fetch = Fetch(self._storage, self._item)
            if begun or self._item.size > SMALL:
                await self._large(fetch, place, reply)
            else:
                await self._small(fetch, place, reply)
        return self._item

    async def _small(self, fetch: Fetch, place: Place, reply: aiohttp.ClientResponse | None) -> None:
        item = fetch.item
        with Part.fresh(place) as part:
            sink = FileSink(part.descriptor, place.path, item.size)
            await self._check(fetch, sink, reply, chances=1)
            part.publish(item.mtime, no_clobber=self._no_clobber)

    async def _large(self, fetch: Fetch, place: Place, reply: aiohttp.ClientResponse | None) -> None:
        item = fetch.item
        known = {"generation": item.generation, "size": item.size, "crc32c": item.crc32c}
        directory = self._state or default_directory()
        with (
            State(directory, "download", *self._parts, place.absolute) as state,
            Part.kept(place, *self._parts) as part,
        ):
            checksum = None
            if state.load() == known and 0 < os.fstat(part.descriptor).st_size <= item.size:
                checksum = await _hashed(part.descriptor)
                meter.get().moved(checksum.size)
            else:
                os.ftruncate(part.descriptor, 0)
                state.save(known)
            sink = FileSink(part.descriptor, place.path, item.size, checksum)
            try:
                await self._check(fetch, sink, reply, chances=1 if checksum is None else 2)
                await asyncio.to_thread(os.fsync, part.descriptor)
                part.publish(item.mtime, no_clobber=self._no_clobber)
                state.forget()
            except (ChecksumMismatch, TargetExists, Gone):
                part.keep = False
                state.forget()
                raise

    async def _check(self, fetch: Fetch, sink: Sink, reply: aiohttp.ClientResponse | None, *, chances: int) -> None:
        """Fill the sink until its checksum is right, from the beginning for so many times."""
        item, patience = fetch.item, Patience(self._storage.policy, fetch.what)
        while True:
            if sink.position < item.size or not item.size:
                await fetch.fill(sink, reply)
            reply = None
            if sink.decoded or sink.checksum.text == item.crc32c:
                patience.progressed()
                return
            error = ChecksumMismatch(
                f"the bytes of {item.url} have the CRC32C {sink.checksum.text}, and should have {item.crc32c}"
            )
            if not chances:
                raise error
            chances -= 1
            await patience.after(error, TRANSIENT)
            meter.get().moved(-sink.position)
            sink.restart()

    async def _stream(self, stream: BinaryIO, name: str) -> Object:
        async with AsyncExitStack() as stack:
            reply = None
            if self._item is None:
                reply, self._item = await self._first(stack)
            fetch = Fetch(self._storage, self._item)
            sink = StreamSink(stream, name, self._item.size)
            await self._check(fetch, sink, reply, chances=0)
            await sink.flush()
        return self._item

    async def _first(self, stack: AsyncExitStack) -> tuple[aiohttp.ClientResponse | None, Object]:
        """The reply to a request for all of an object of which nothing is known yet, and what it says of it."""
        storage, what = self._storage, f"download {self._url}"
        patience = Patience(storage.policy, what)
        url = storage.url(self._url.path, {"alt": "media", "generation": self._url.generation})
        while True:
            try:
                response = await stack.enter_async_context(storage.stream("GET", str(url), {"Accept-Encoding": GZIP}))
                if response.status != 200:
                    raise await refusal(what, response)
            except FAILURES as error:
                request = Request("GET", url.host or "", url.raw_path_qs)
                await patience.after(error, storage.verdict(error, request))
                continue
            patience.progressed()
            item = described(self._url, response.headers)
            if item is not None:
                return response, item
            found = await storage.stat(self._url)
            if found is None or found.crc32c is None:
                raise TransferError(f"{what}: the server does not tell its CRC32C, so that it cannot be checked")
            return None, found


async def _hashed(descriptor: int) -> Crc32c:
    """The checksum of what is in a file, which is then at its end."""
    checksum = Crc32c()

    def more() -> bool:
        for _ in range(_HASHED_AT_ONCE // 2**18):
            data = os.read(descriptor, 2**18)
            if not data:
                return False
            checksum.update(data)
        return True

    os.lseek(descriptor, 0, os.SEEK_SET)
    while await asyncio.to_thread(more):
        pass
    return checksum
