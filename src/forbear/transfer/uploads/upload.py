"""Upload: a file or a stream becomes exactly one new version of an object, whatever fails on the way, or none."""

import mimetypes
import os
from collections.abc import AsyncIterable, Mapping
from typing import Any, BinaryIO

from forbear.transfer.errors import StrPath
from forbear.transfer.objects import MTIME, Object, Url
from forbear.transfer.precondition import Precondition
from forbear.transfer.progress import current_progress, warner
from forbear.transfer.state import SMALL, State
from forbear.transfer.storage.client import Storage
from forbear.transfer.uploads.insert import insert
from forbear.transfer.uploads.resumable import Resumable, cancel, is_over
from forbear.transfer.uploads.session import GRAIN, LAST
from forbear.transfer.uploads.sources import File
from forbear.transfer.uploads.streams import iterated, opened

CHUNK_SIZE = 64 * 1024 * 1024
_COMPRESSED = {
    "br": "application/x-brotli",
    "bzip2": "application/x-bzip2",
    "compress": "application/x-compress",
    "gzip": "application/gzip",
    "xz": "application/x-xz",
}
_UNKNOWN = "application/octet-stream"


async def upload(
    storage: Storage,
    source: StrPath | AsyncIterable[bytes] | BinaryIO,
    target: Url,
    *,
    generation: int | None = None,
    content_type: str | None = None,
    metadata: Mapping[str, str] | None = None,
    chunk_size: int = CHUNK_SIZE,
    state: StrPath | None = None,
) -> Object:
    """Upload a file, or all that a stream yields, and return the object that was made.

    `generation` is the version of the target that may be replaced: 0 for none at all (else TargetExists), any other for
    just that (else TargetChanged), None for whatever is there. `content_type` is guessed by the name where it is not
    given; `metadata` comes besides the modification time of the file.

    What is longer than a chunk, or than 8 MiB, goes in chunks of `chunk_size` bytes (64 MiB; a multiple of 256 KiB), of
    a stream in such of at most 8 MiB, which are kept in memory until the server has them. The upload of a file goes on
    where it was when its process died, by what lies in the folder `state` ($FORBEAR_STATE_DIR, or forbear/transfers
    among the user's states). Raises TransferError, or what the last attempt raised when patience ran out.
    """
    if chunk_size <= 0 or chunk_size % GRAIN:
        raise ValueError(f"`chunk_size` must be a multiple of {GRAIN} (256 KiB), got {chunk_size!r}")
    condition = Precondition(storage, target, generation)
    if isinstance(source, str | os.PathLike):
        with File(source) as file:
            own = {MTIME: str(file.mtime), **(metadata or {})}
            resource = _resource(content_type, file.name, own)
            if file.stat.st_size <= min(SMALL, chunk_size):
                return await insert(storage, file, file.stat.st_size, condition, resource)
            return await _kept(storage, file, condition, resource, chunk_size, state)
    stream = iterated(source) if isinstance(source, AsyncIterable) else opened(source)
    resource = _resource(content_type, target.name, metadata or {})
    chunk_size = min(chunk_size, LAST)
    await stream.ready(0, chunk_size)
    if stream.size is not None:
        current_progress.get().sized(stream.size)
        return await insert(storage, stream, stream.size, condition, resource)
    return await Resumable(storage, stream, condition, resource, chunk_size).run()


async def _kept(
    storage: Storage,
    file: File,
    condition: Precondition,
    resource: Mapping[str, Any],
    chunk_size: int,
    directory: StrPath | None,
) -> Object:
    """Upload a large file, and keep its session on disk until it is over."""
    with State(directory, "upload", storage.endpoint, str(condition.target), file.path, warn=warner()) as kept:
        this = {"source": file.stamp, "resource": resource, "asked": condition.asked}

        def keep(session: str) -> bool:
            kept.save({**this, "session": session, "generation": condition.generation})
            return kept.kept

        work = Resumable(storage, file, condition, resource, chunk_size, keep)
        earlier = kept.load()
        session, generation = earlier.pop("session", None), earlier.pop("generation", None)
        if isinstance(session, str) and isinstance(generation, int) and storage.is_trusted(session):
            if earlier == this:
                condition.restore(generation)
                work.resume(session)
            else:
                await cancel(storage, session)
        try:
            made = await work.run()
            if not work.began and not await _is_there(storage, made):
                kept.forget()  # another process was done with it, but died before it could say so
                current_progress.get().moved(-made.size)
                condition = Precondition(storage, condition.target, condition.asked)
                made = await Resumable(storage, file, condition, resource, chunk_size, keep).run()
        except Exception as error:
            if is_over(storage, error):
                kept.forget()
            raise
        kept.forget()
        return made


async def _is_there(storage: Storage, made: Object) -> bool:
    """Whether it is still what is there: a session tells for days what it has made, whatever became of that since."""
    found = await storage.stat(Url(made.bucket, made.name))
    return found is not None and found.generation == made.generation


def _resource(content_type: str | None, name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    return {"contentType": content_type or guessed(name), "metadata": dict(metadata)}


def guessed(name: str) -> str:
    """The content type by the end of a name; of what is compressed, that of its compression."""
    kind, encoding = mimetypes.guess_type("/" + name.rpartition("/")[2])
    return kind or _UNKNOWN if encoding is None else _COMPRESSED.get(encoding, _UNKNOWN)
