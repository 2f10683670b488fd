"""Download an object to a file, which is replaced as a whole or not at all, or to a stream. Its bytes are verified."""

import asyncio
import io
import os
from contextlib import closing, nullcontext
from functools import partial
from typing import BinaryIO

from forbear.adapters import replace
from forbear.verdicts import TRANSIENT
from forbear_transfer.downloads.description import GZIP, Contradiction, is_unlabelled, object_from
from forbear_transfer.downloads.fetch import FAILURES, Fetch, Gone
from forbear_transfer.downloads.resume import ResumableDownload
from forbear_transfer.downloads.sinks import FileSink, GzipDecoder, StreamSink
from forbear_transfer.downloads.target import DownloadOptions, PartFile, TargetPath
from forbear_transfer.encryption import EncryptionKey, Keys, check_keys, key_of
from forbear_transfer.errors import HttpError, SourceChanged, StrPath, WrongResponse
from forbear_transfer.files import FileIdentity
from forbear_transfer.objects import Object, Url
from forbear_transfer.progress import current_progress, warner
from forbear_transfer.state import SMALL, State
from forbear_transfer.storage.calls import Retries, Sent
from forbear_transfer.storage.client import Storage
from forbear_transfer.wire.response import Response


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
    listed: FileIdentity | None = None,
    preserve_posix: bool = False,
    decryption_keys: Keys | None = None,
) -> Object:
    """Download an object to a file or a binary stream; return the metadata of the version that was read.

    A file is replaced as a whole or not at all. The bytes go to a hidden file beside it, whose name ends in ".forbear";
    it is renamed once their CRC32C is right. The mode of a replaced file stays. The file gets the modification time of
    the file that was uploaded, if the object has it. Symbolic links are followed; devices and pipes are written to. If
    the download of an object of more than 8 MiB is interrupted, its bytes stay on disk, and the next one continues.

    - `target.write` of a stream must return how many bytes it took, as in Python: TransferError if it returns None.
    - `no_clobber` refuses to replace a file (TargetExists).
    - `slices` is the number of parts that arrive side by side: by default 4 from 150 MiB on, otherwise 1.
    - `decode` decodes the gzip of an object that is stored with "Content-Encoding: gzip". Some servers decode it
      themselves, though the stored bytes were requested; these cannot be verified, and the `crc32c` returned is None.
    - `state` is the folder for the state by which a later process continues; default: see `upload`.
    - `root` is a folder in which the file must lie: UnsafeName if a symbolic link leads out of it, even if the link is
      created during the download.
    - `listed` is the version of the file that may be replaced, () for none; otherwise TargetChanged. None is any one.
    - `preserve_posix` gives the file the permissions of the file that was uploaded, if the object has them.
    - `decryption_keys` are the customer-supplied keys that the object may have. The right one is found by its SHA-256.

    If the object is replaced meanwhile, the download starts again with the new version, unless `source` is a Url with a
    generation. Bytes of two versions never mix: if a stream has some already, SourceChanged is raised.

    Raises HttpError for a response that ends the download, and NoEncryptionKey without the object's key. Raises
    ChecksumMismatch if the bytes are wrong: for a stream at once, for a file if they are wrong again after a new start
    (a continued download starts anew twice). Raises Locked if another process downloads to the file, and TransferError
    for a target that cannot be used. When the policy allows no further attempt, the last connection error is raised.

    >>> import asyncio
    >>> async def main():
    ...     async with Storage() as storage:
    ...         return await download(storage, Url("my-bucket", "photos/1.jpg"), "1.jpg")
    >>> asyncio.run(main()).size
    7
    """
    if slices is not None and slices < 1:
        raise ValueError(f"`slices` must be at least 1 or None (by the size), got {slices!r}")
    if isinstance(source, Url):
        source.check_object("source")
    if isinstance(target, io.TextIOBase):
        raise TypeError(f"`target` must be a path or a binary stream, such as sys.stdout.buffer, got {target!r}")
    options = DownloadOptions(
        no_clobber=no_clobber, slices=slices, decode=decode, root=root, state=state, listed=listed,
        preserve_posix=preserve_posix,
    )  # fmt: skip
    return await Download(storage, source, target, options, check_keys(decryption_keys)).run()


class Download:
    """One call of `download`, with its arguments. Call `run` once."""

    def __init__(
        self,
        storage: Storage,
        source: Url | Object,
        target: StrPath | BinaryIO,
        options: DownloadOptions,
        keys: tuple[EncryptionKey, ...],
    ) -> None:
        self._storage = storage
        self._keys = keys
        self._version: Object | None = None
        self._listed: Object | None = None
        if isinstance(source, Url):
            self._url = source
        else:
            key_of(source, keys)
            self._url, self._listed = Url(source.bucket, source.name), source
            self._version = None if source.crc32c is None else source
        self._target = target
        self._options = options
        self._key = (storage.endpoint, str(self._url))
        self._sent = Sent("GET", self._url)

    async def run(self) -> Object:
        """Download the object and return its version; if that is gone meanwhile, start again with the present one."""
        retries: Retries | None = None
        while True:
            try:
                version, decoded = await self._download_version()
            except Gone as gone:
                retries = retries or Retries(self._storage.policy, self._sent)
                await retries.after(await self._find_replacement(gone.error), TRANSIENT)
            else:
                return replace(version, crc32c=None) if decoded else version

    async def _find_replacement(self, error: HttpError | Contradiction) -> Exception:
        """Look up the object's present version for the next attempt; return the error to report for this attempt.

        That is `error` if the generation is still the same, otherwise SourceChanged. Raise `error` if the object does
        not exist any more, or if `source` is a Url with a generation that the server does not have (404).
        """
        before, self._version = self._version, None
        if self._url.generation is None or isinstance(error, Contradiction):
            self._version = await self._storage.stat(self._url, self._keys)
        if self._version is None:
            raise error
        if before is not None and before.generation == self._version.generation:
            return error
        return SourceChanged(f"{self._url} was replaced while it was read")

    async def _download_version(self) -> tuple[Object, bool]:
        """Download the version once; return it, and whether the server decoded its gzip. Raise Gone if it is gone."""
        target = self._target
        if not isinstance(target, str | os.PathLike):
            return await self._write_stream(target, str(getattr(target, "name", "the stream")))
        with TargetPath.of(target, no_clobber=self._options.no_clobber, root=self._options.root) as path:
            if not path.special:
                return await self._write_file(path)
            with await asyncio.to_thread(path.open_special) as stream:
                return await self._write_stream(stream, path.path)

    async def _write_file(self, target: TargetPath) -> tuple[Object, bool]:
        may_resume = self._options.resumable or target.path != self._target  # a link may lead to another folder
        resumes = may_resume and target.has_file(target.resumable_part_name(*self._key))
        if resumes and self._version is None:
            await self._look_up()
        fetch, response = await self._open()
        try:
            write = self._write_kept_part if resumes or fetch.version.size > SMALL else self._write_new_part
            return fetch.version, await write(fetch, target, response)
        finally:
            if response is not None:
                response.close()

    async def _write_new_part(self, fetch: Fetch, target: TargetPath, response: Response | None) -> bool:
        """Download a small object through a temporary file; return whether the server decoded its gzip."""
        with PartFile.temporary(target) as part:
            sink = FileSink(part.descriptor, target.path, fetch.version.size, truncate=True)
            await fetch.fill_verified(sink, partial(fetch.fill, sink), response, restarts=1)
            await part.publish(fetch.version, self._options, decoded=sink.decoded)
            return sink.decoded

    async def _write_kept_part(self, fetch: Fetch, target: TargetPath, response: Response | None) -> bool:
        """Download through a part file and a state that a later process can continue from; return the same."""
        with (
            State(self._options.state, "download", *self._key, target.absolute, warn=warner()) as state,
            PartFile.resumable(target, *self._key) as part,
        ):
            work = ResumableDownload(fetch, target.path, part, state, self._options)
            return await work.run(response, self._storage.connections)

    async def _write_stream(self, stream: BinaryIO, name: str) -> tuple[Object, bool]:
        fetch, response = await self._open()
        with nullcontext() if response is None else closing(response):
            version = fetch.version
            is_gzip = self._options.decode and version.content_encoding == GZIP
            sink = StreamSink(stream, name, version.size, GzipDecoder(str(version.url)) if is_gzip else None)
            try:
                await fetch.fill_verified(sink, partial(fetch.fill, sink), response, restarts=0)
            except Gone as gone:
                if sink.written:
                    raise SourceChanged(
                        f"{version.url} was replaced or deleted while it was read, after {sink.written} bytes were"
                        " written",
                        "start again",
                    ) from gone.error
                raise
            await sink.finish()
        return version, sink.decoded

    async def _open(self) -> tuple[Fetch, Response | None]:
        """Return a Fetch for the version, and the response to the first request or None.

        Nothing is requested if the version is known. The metadata are read first if they have to say which of the keys
        the object has, or its permissions. A response has all bytes of the object; the caller closes it.
        """
        response = None
        if self._version is None and (self._keys or self._options.preserve_posix):
            await self._look_up()
        if self._version is None:
            response, self._version = await self._request()
        current_progress.get().sized(self._version.size)
        return Fetch(self._storage, self._version, decode=self._options.decode, keys=self._keys), response

    async def _look_up(self) -> None:
        """Look up the version, with its checksum if the keys can read it: the listed one, else the present one."""
        listed, self._listed = self._listed, None
        if listed is not None:
            version = await self._storage.completed(listed, self._keys)
            self._version = version if version.crc32c is not None else None
        if self._version is None:
            self._version = await self._storage.stat(self._url, self._keys)

    async def _request(self) -> tuple[Response | None, Object]:
        """Request the whole object, with retries; return the response, and the version that its headers describe.

        If they do not describe the version completely, or lack the label of gzip, return None and the version in the
        object's metadata. Raise WrongResponse if there is no object or no CRC32C in them.
        """
        storage = self._storage
        url = storage.url(self._url.path, {"alt": "media", "generation": self._url.generation})
        retries = Retries(storage.policy, self._sent)
        while True:
            retries.begin()
            try:
                response = await storage.stream("GET", url, {"Accept-Encoding": GZIP})
                if response.status != 200:
                    raise await storage.error_for(str(self._sent), response)
            except FAILURES as error:
                await retries.after(error, storage.verdict(error))
                continue
            retries.progressed()
            version = object_from(self._url, response.headers)
            if version is not None and not is_unlabelled(version, response.headers):
                return response, version
            response.close()  # for a server that serves one request at a time
            item = await storage.stat(self._url)
            if item is None or item.crc32c is None:
                raise WrongResponse(f"{self._sent}: the server states no CRC32C, so the download cannot be verified")
            return None, item
