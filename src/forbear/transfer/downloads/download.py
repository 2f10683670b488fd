"""Downloads: the bytes of an object, checked, into a file that is there in whole or not at all, or into a stream."""

import asyncio
import io
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import BinaryIO

from forbear.core.verdict import TRANSIENT
from forbear.transfer.downloads.description import GZIP, Contradiction, described, is_unlabelled
from forbear.transfer.downloads.fetch import FAILURES, Fetch, Gone, fill_checked
from forbear.transfer.downloads.resume import Large
from forbear.transfer.downloads.sinks import FileSink, Gunzip, StreamSink
from forbear.transfer.downloads.target import Part, Place, Terms, land
from forbear.transfer.errors import HttpError, SourceChanged, StrPath, WrongResponse
from forbear.transfer.objects import Object, Url
from forbear.transfer.progress import current_progress, warner
from forbear.transfer.state import SMALL, State
from forbear.transfer.storage.calls import Retries
from forbear.transfer.storage.client import Storage
from forbear.transfer.wire.response import Response


async def download(
    storage: Storage,
    source: Url | Object,
    target: StrPath | BinaryIO,
    *,
    no_clobber: bool = False,
    slices: int | None = None,
    decode: bool = True,
    state: StrPath | None = None,
    root: StrPath | None = None,
) -> Object:
    """Download an object to a file or a binary stream, and return what is known of the version that was read.

    A file is replaced by all of the object at once, or not touched: its bytes are checked by their CRC32C beside it,
    under a hidden name that ends in ".forbear". It keeps its mode, and gets the modification time of the file that was
    uploaded, where that is known. Links are followed, devices and pipes are written to. `no_clobber` refuses to replace
    it (TargetExists). The bytes of an object of more than 8 MiB stay when the download ends halfway, and the next one
    goes on from there; `state` is the folder where it is noted what they are of.

    `slices` is into how many parts it is cut that come side by side: by default 4 from 150 MiB on, otherwise 1.
    `decode` undoes the gzip of an object that is stored with "Content-Encoding: gzip". Where the server does so in
    spite of being asked for the stored bytes, they cannot be checked: the `crc32c` returned is None. `root` is a folder
    that the file must lie in: UnsafeName where a symbolic link leads out of it, whenever it was put there.

    An object that is replaced meanwhile is begun anew, unless `source` is a Url that names a generation. Bytes of two
    versions never mix: a stream that has some already ends with SourceChanged. Raises HttpError for a reply that ends
    it, ChecksumMismatch where the bytes are wrong twice, Locked where another process is at it, TransferError for what
    is wrong with the target, and the last error of the connection when the policy's retries is over.
    """
    if slices is not None and slices < 1:
        raise ValueError(f"`slices` must be at least 1 or None (by the size), got {slices!r}")
    if isinstance(source, Url):
        source.check_object("source")
    if isinstance(target, io.TextIOBase):
        raise TypeError(f"`target` must be a path or a binary stream, such as sys.stdout.buffer, got {target!r}")
    terms = Terms(no_clobber, slices, decode, root)
    return await _Download(storage, source, target, terms, state).run()


class _Download:
    """One download; `run` it once."""

    def __init__(
        self,
        storage: Storage,
        source: Url | Object,
        target: StrPath | BinaryIO,
        terms: Terms,
        directory: StrPath | None,
    ) -> None:
        self._storage = storage
        self._url = source if isinstance(source, Url) else Url(source.bucket, source.name)
        self._version = source if isinstance(source, Object) and source.crc32c is not None else None
        self._target = target
        self._terms = terms
        self._directory = directory
        self._key = (storage.endpoint, str(self._url))

    async def run(self) -> Object:
        """Go on until it is done; a version that is gone gives way to the one that is there."""
        retries = Retries(self._storage.policy, f"download {self._url}")
        while True:
            try:
                version, decoded = await self._once()
            except Gone as gone:
                await retries.after(await self._replaced(gone.error), TRANSIENT)
            else:
                retries.progressed()
                return replace(version, crc32c=None) if decoded else version

    async def _replaced(self, error: HttpError | Contradiction) -> Exception:
        """Find the version that is there in place of the one that is not; raises `error` if there is none to take."""
        before, self._version = self._version, None
        if self._url.generation is None or isinstance(error, Contradiction):
            self._version = await self._storage.stat(self._url)
        if self._version is None:
            raise error
        if before is not None and before.generation == self._version.generation:
            return error
        return SourceChanged(f"{self._url} was replaced while it was read")

    async def _once(self) -> tuple[Object, bool]:
        """Download one version; whether the server decoded it on the way."""
        target = self._target
        if not isinstance(target, str | os.PathLike):
            return await self._to_stream(target, str(getattr(target, "name", "the stream")))
        with Place.of(target, no_clobber=self._terms.no_clobber, root=self._terms.root) as place:
            return await self._to_place(place)

    async def _to_place(self, place: Place) -> tuple[Object, bool]:
        if place.special:
            with await asyncio.to_thread(place.opened) as stream:
                return await self._to_stream(stream, place.path)
        begun = place.has_part(*self._key)
        if begun and self._version is None:
            self._version = await self._storage.stat(self._url)
        async with AsyncExitStack() as stack:
            fetch, reply = await self._begun(stack)
            if begun or fetch.version.size > SMALL:
                return fetch.version, await self._large(fetch, place, reply)
            return fetch.version, await self._small(fetch, place, reply)

    async def _small(self, fetch: Fetch, place: Place, reply: Response | None) -> bool:
        with Part.fresh(place) as part:
            sink = FileSink(part.descriptor, place.path, fetch.version.size, truncate=True)
            await fill_checked(fetch, sink, partial(fetch.fill, sink), reply, restarts=1)
            await land(part, place, fetch.version, self._terms, decoded=sink.decoded)
            return sink.decoded

    async def _large(self, fetch: Fetch, place: Place, reply: Response | None) -> bool:
        with (
            State(self._directory, "download", *self._key, place.absolute, warn=warner()) as state,
            Part.kept(place, *self._key) as part,
        ):
            return await Large(fetch, place, part, state, self._terms).run(reply, self._storage.connections)

    async def _to_stream(self, stream: BinaryIO, name: str) -> tuple[Object, bool]:
        async with AsyncExitStack() as stack:
            fetch, reply = await self._begun(stack)
            version = fetch.version
            decoder = Gunzip(str(version.url)) if self._terms.decode and version.content_encoding == GZIP else None
            sink = StreamSink(stream, name, version.size, decoder)
            try:
                await fill_checked(fetch, sink, partial(fetch.fill, sink), reply, restarts=0)
            except Gone as gone:
                if sink.out:
                    raise SourceChanged(
                        f"{version.url} was replaced or deleted while it was read, after {sink.out} bytes were written",
                        "start again",
                    ) from gone.error
                raise
            await sink.finish()
        return version, sink.decoded

    async def _begun(self, stack: AsyncExitStack) -> tuple[Fetch, Response | None]:
        """What fetches the version that is known; if none is, the reply to a first request, which says which."""
        reply = None
        if self._version is None:
            reply, self._version = await self._first(stack)
        current_progress.get().sized(self._version.size)
        return Fetch(self._storage, self._version, decode=self._terms.decode), reply

    async def _first(self, stack: AsyncExitStack) -> tuple[Response | None, Object]:
        storage, what = self._storage, f"download {self._url}"
        url = storage.url(self._url.path, {"alt": "media", "generation": self._url.generation})
        retries = Retries(storage.policy, what)
        while True:
            try:
                response = await stack.enter_async_context(storage.stream("GET", url, {"Accept-Encoding": GZIP}))
                if response.status != 200:
                    raise await storage.error_for(what, response)
            except FAILURES as error:
                await stack.aclose()
                await retries.after(error, storage.verdict(error))
                continue
            retries.progressed()
            version = described(self._url, response.headers)
            if version is not None and not is_unlabelled(version, response.headers):
                return response, version
            await stack.aclose()  # for a server that serves one request at a time
            found = await storage.stat(self._url)
            if found is None or found.crc32c is None:
                raise WrongResponse(f"{what}: the server tells no CRC32C of it, so that it cannot be checked")
            return None, found
