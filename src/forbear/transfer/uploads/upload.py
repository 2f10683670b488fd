"""Upload: a file or a stream becomes exactly one new version of an object, whatever fails on the way, or none."""

import json
import mimetypes
import os
import secrets
from collections.abc import AsyncIterable, Mapping
from typing import Any, BinaryIO

from forbear.transfer.checksum import crc32c_of
from forbear.transfer.errors import HttpError, Stalled, StrPath, maybe_done
from forbear.transfer.files import PIECE
from forbear.transfer.objects import FIELDS, MTIME, Object, Url
from forbear.transfer.precondition import Precondition, is_refusal, mismatch, verified
from forbear.transfer.progress import current_progress, warner
from forbear.transfer.state import SMALL, State
from forbear.transfer.storage.bodies import RequestBody
from forbear.transfer.storage.client import Storage
from forbear.transfer.uploads.resumable import Resumable, cancel, is_over
from forbear.transfer.uploads.session import GRAIN, LAST
from forbear.transfer.uploads.sources import File, Source, iterated, opened
from forbear.transfer.wire.response import WireError

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
    among the user's states). Raises TransferError, or what the last attempt raised when retries ran out.
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


_TRIES = 3
_BOUNDARY = secrets.token_hex(16)  # nobody else knows it, so it does not occur in any data
_KIND = {"Content-Type": f"multipart/related; boundary={_BOUNDARY}"}


async def insert(
    storage: Storage, source: Source, size: int, condition: Precondition, resource: Mapping[str, Any]
) -> Object:
    """Upload a source of `size` bytes; `resource` is what else the object is to have."""
    moved = current_progress.get().moved
    await condition.look()
    data = source.read() if isinstance(source, File) and size <= PIECE else None
    if data is None:
        crc = await source.crc32c()
    else:
        size, crc = len(data), crc32c_of(data)
    opening, ending = _around({**resource, "crc32c": crc})
    body: bytes | RequestBody
    if data is not None:
        body = b"".join((opening, data, ending))
    else:
        body = RequestBody(lambda: source.pieces(0, size), size, moved, opening, ending)
    refused, in_doubt = 0, False
    while True:
        query = {"uploadType": "multipart", **condition.query, "fields": FIELDS}
        try:
            reply = await storage.call(
                f"upload {source.name}", "POST", condition.target.upload_path, query, headers=_KIND, body=body
            )
        except HttpError as error:
            in_doubt = in_doubt or maybe_done(error)  # once it may be there, it may be there in every later round
            if error.status == 412:
                found = await condition.refused(error, resource, (size, crc) if in_doubt else None)
                if found is None:
                    continue
            elif is_refusal(error):
                source.check()
                refused += 1
                if refused == _TRIES:
                    raise mismatch(source.name, condition.target) from error
                continue
            else:
                raise
        except (WireError, Stalled) as error:
            found = await storage.stat(condition.target) if maybe_done(error) else None
            if found is None or not condition.is_new(found) or (found.size, found.crc32c) != (size, crc):
                raise  # else it was answered, and is there, but the answer broke off
        else:
            condition.guessed_right()
            found = await verified(storage, condition, Object.of(reply.json()), (size, crc), source.name)
        moved(size - (body.moved_bytes if isinstance(body, RequestBody) else 0))
        return found


def _around(resource: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """What stands before and after the data."""
    opening = (
        f"--{_BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(resource)}\r\n"
        f"--{_BOUNDARY}\r\nContent-Type: {resource['contentType']}\r\n\r\n"
    )
    return opening.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode()
