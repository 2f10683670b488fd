"""Upload a file or a stream, so that exactly one new version of the object results, or none.

A small source goes in one request. A large one goes through a resumable session; that of a file is kept on disk, so
that another process can continue.
"""

import json
import os
from collections.abc import AsyncIterable, Mapping
from functools import partial
from typing import Any, BinaryIO, Unpack

from forbear.adapters import replace
from forbear_transfer.encryption import NewObjectOptions, ObjectEncryption
from forbear_transfer.errors import HttpError, Stalled, StrPath, maybe_done
from forbear_transfer.files import PIECE
from forbear_transfer.metadata import NO_METADATA, ObjectMetadata, check_keywords, with_keywords
from forbear_transfer.objects import MODE, MTIME, Object, Url, format_mode
from forbear_transfer.precondition import Precondition, make_key_error, mismatch, refuses_checksum
from forbear_transfer.progress import current_progress, warner
from forbear_transfer.state import SMALL, State
from forbear_transfer.storage.bodies import RequestBody
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.content import COMPRESSION, guess_content_type, gzip_source
from forbear_transfer.uploads.resumable import ResumableUpload, cancel, ends_session
from forbear_transfer.uploads.session import GRAIN, LAST
from forbear_transfer.uploads.sources import FileSource, Source, StreamSource, stream_source
from forbear_transfer.wire.response import WireError

CHUNK_SIZE = 64 * 1024 * 1024
"""The default size of chunks in bytes."""

_BOUNDARY = os.urandom(16).hex()  # a secret, so it does not occur in any data
_MULTIPART = {"Content-Type": f"multipart/related; boundary={_BOUNDARY}"}
_ENDING = f"\r\n--{_BOUNDARY}--\r\n".encode()
_MAX_REFUSALS = 3
_encode = json.JSONEncoder().encode


@with_keywords(NewObjectOptions)
async def upload(
    storage: Storage,
    source: StrPath | AsyncIterable[bytes] | BinaryIO,
    target: Url,
    *,
    generation: int | None = None,
    gzip: bool = False,
    chunk_size: int = CHUNK_SIZE,
    state: StrPath | None = None,
    verify_source: bool = False,
    preserve_posix: bool = False,
    **options: Unpack[NewObjectOptions],
) -> Object:
    """Upload a file, or all bytes of a stream, and return the metadata of the object that was made.

    - `generation` is the version of the target that may be replaced: 0 for none (else TargetExists), a number for that
      version (else TargetChanged), None for any.
    - `gzip` compresses the data on the way, and sets the content encoding. To continue, a later process compresses the
      file again from its beginning, and sends only the rest.
    - `chunk_size` is the size in bytes of the chunks of a large upload (64 MiB; a multiple of 256 KiB). Uploads of more
      than a chunk or 8 MiB are large. Chunks of a stream have at most 8 MiB, and stay in memory until the server has
      them.
    - `state` is the folder for the state by which the upload of a large file continues after its process died. Default:
      $FORBEAR_STATE_DIR, or forbear/transfers in the user's state folder.
    - `verify_source` reads a file a second time before its last byte is sent, and raises SourceChanged if its CRC32C
      differs: a file that is written through a mapping may change without any trace in its times.
    - `preserve_posix` adds the permissions of the file to the metadata, as gsutil and gcloud do.
    - `content_type` is guessed from the extension by default. `metadata` is added to the modification time of the file.
      The other options for metadata, and the keys (`encryption_key`, `kms_key`), are those of `cp`. A state keeps only
      the SHA-256 of a key: another key cannot continue the upload (TransferError).

    Raises TransferError, or the error of the last attempt when the policy allows no further one.

    >>> import asyncio
    >>> async def main():
    ...     async with Storage() as storage:
    ...         made = await upload(storage, "photos/1.jpg", Url("my-bucket", "new.jpg"), generation=0)
    ...         return await copy(storage, made, Url("my-bucket", "copy.jpg"))
    >>> asyncio.run(main()).size
    7
    """
    if chunk_size <= 0 or chunk_size % GRAIN:
        raise ValueError(f"`chunk_size` must be a multiple of {GRAIN} (256 KiB), got {chunk_size!r}")
    check_keywords("upload", NewObjectOptions, options)
    return await send(
        storage, source, target, generation, ObjectMetadata.of(options), ObjectEncryption.of(options), gzip=gzip,
        chunk_size=chunk_size, state=state, verify_source=verify_source, preserve_posix=preserve_posix,
    )  # fmt: skip


async def send(
    storage: Storage,
    source: StrPath | AsyncIterable[bytes] | BinaryIO,
    target: Url,
    generation: int | None,
    chosen: ObjectMetadata,
    encryption: ObjectEncryption,
    *,
    gzip: bool = False,
    chunk_size: int = CHUNK_SIZE,
    state: StrPath | None = None,
    verify_source: bool = False,
    preserve_posix: bool = False,
) -> Object:
    """Do what `upload` does, with `chosen` as the metadata and with the keys of `encryption`."""
    if gzip:
        if chosen.content_encoding not in (None, "gzip"):
            raise ValueError(f"`content_encoding` must be gzip or None with `gzip`, got {chosen.content_encoding!r}")
        chosen = replace(chosen, content_encoding="gzip")
    condition = Precondition(storage, target, generation, encryption)
    if isinstance(source, str | os.PathLike):
        with FileSource(source, verifies=verify_source) as file:
            kept = {MTIME: str(int(file.stat.st_mtime))}
            if preserve_posix:
                kept[MODE] = format_mode(file.stat.st_mode)
            resource = _make_resource(chosen, file.name, kept)
            if gzip:
                chunk_size, packed = min(chunk_size, LAST), gzip_source(file)
                if not await _fits(packed, chunk_size):
                    return await _upload_large(storage, file, packed, condition, resource, chunk_size, state)
                return await _insert(storage, packed, packed.size or 0, condition, resource)
            if file.stat.st_size <= min(SMALL, chunk_size):
                return await _insert(storage, file, file.stat.st_size, condition, resource)
            return await _upload_large(storage, file, file, condition, resource, chunk_size, state)
    stream = stream_source(source)
    resource = _make_resource(chosen, target.name, {})
    return await _upload_stream(storage, gzip_source(stream) if gzip else stream, condition, resource, chunk_size)


async def _upload_stream(
    storage: Storage, stream: StreamSource, condition: Precondition, resource: Mapping[str, Any], chunk_size: int
) -> Object:
    chunk_size = min(chunk_size, LAST)
    if await _fits(stream, chunk_size):
        return await _insert(storage, stream, stream.size or 0, condition, resource)
    return await ResumableUpload(storage, stream, condition, resource, chunk_size).run()


async def _fits(stream: StreamSource, chunk_size: int) -> bool:
    """Return whether a stream ends within the first chunk; its size is known then, and reported as progress."""
    await stream.ready(0, chunk_size)
    if stream.size is not None:
        current_progress.get().sized(stream.size)
    return stream.size is not None


async def _insert(
    storage: Storage, source: Source, size: int, condition: Precondition, resource: Mapping[str, Any]
) -> Object:
    """Upload a source of `size` bytes in one request, and return the object; `resource` has its metadata.

    If the response was lost, look at the target to find out whether the object was made. Raise ChecksumMismatch if the
    server has refused the checksum three times.
    """
    moved = current_progress.get().moved
    await condition.look_first()
    data = source.read() if isinstance(source, FileSource) and size <= PIECE else None
    size, crc32c = size if data is None else len(data), await source.crc32c()
    await source.verify()
    opening, ending = _make_multipart(resource, crc32c)
    body: bytes | RequestBody
    if data is None:
        body = RequestBody(partial(source.pieces, 0, size), size, moved, opening, ending)
    else:
        body = b"".join((opening, data, ending))
    refusals, in_doubt = 0, False
    what, path, headers = f"upload {source.name}", condition.target.upload_path, {**_MULTIPART, **condition.key_headers}
    made: Object | None = None
    while made is None:
        query = {"uploadType": "multipart", **condition.query}  # no `fields`: the response is short enough
        try:
            response = await storage.call(what, "POST", path, query, headers=headers, body=body)
        except HttpError as error:
            in_doubt = in_doubt or maybe_done(error)  # if one attempt may have made it, later ones may find it
            if error.status == 412:
                made = await condition.resolve_refusal(error, resource, (size, crc32c) if in_doubt else None)
            elif refuses_checksum(error):
                source.check()
                refusals += 1
                if refusals == _MAX_REFUSALS:
                    raise mismatch(source.name, condition.target) from error
            else:
                raise
        except (WireError, Stalled) as error:
            made = await condition.look() if maybe_done(error) else None
            if made is None or not condition.is_made(made, (size, crc32c)):
                raise  # otherwise the upload has succeeded, and only its response was lost
        else:
            condition.made_new()
            made = await condition.verify(Object.of(response.json()), (size, crc32c), source.name)
    moved(size - (body.moved_bytes if isinstance(body, RequestBody) else 0))
    return made


async def _upload_large(
    storage: Storage,
    file: FileSource,
    source: Source,
    condition: Precondition,
    resource: Mapping[str, Any],
    chunk_size: int,
    directory: StrPath | None,
) -> Object:
    """Upload a file through a session whose URL is saved in `directory` until the upload is over; return the object.

    `source` is the file itself, or a stream of what it becomes by gzip.

    Continue a saved session if it is of the same file, metadata, precondition and keys; otherwise cancel it. But raise
    TransferError if only the key is another one. Upload again if the continued session was complete, and its object was
    replaced or deleted since.
    """
    with State(directory, "upload", storage.endpoint, str(condition.target), file.path, warn=warner()) as state:
        # States of earlier versions have these names, too.
        identity: dict[str, Any] = {"source": file.identity, "resource": resource, "asked": condition.required}
        if source is not file:
            identity["gzip"] = COMPRESSION
        keys = condition.encryption.identity

        def save(session: str) -> bool:
            state.save({**identity, **keys, "session": session, "generation": condition.generation})
            return state.kept

        saved, resumed = state.load(), None
        before = {name: saved.pop(name) for name in ("key_sha256", "kms_key") if name in saved}
        session, generation = saved.pop("session", None), saved.pop("generation", None)
        if isinstance(session, str) and isinstance(generation, int) and storage.is_trusted(session):
            if saved == identity and before == keys:
                condition.restore(generation)
                resumed = session
            elif saved == identity and "key_sha256" in before:
                raise make_key_error(f"upload {file.name}", before["key_sha256"], state.path)
            else:
                await cancel(storage, session)
        work = ResumableUpload(storage, source, condition, resource, chunk_size, save, resumed)
        try:
            made = await work.run()
            if not work.has_sent and not await _is_current(storage, made):
                state.forget()  # another process has finished the session, and died before it could forget it
                current_progress.get().moved(-made.size)
                condition = Precondition(storage, condition.target, condition.required, condition.encryption)
                made = await ResumableUpload(storage, source, condition, resource, chunk_size, save).run()
        except Exception as error:
            if ends_session(storage, error):
                state.forget()
            raise
        state.forget()
        return made


async def _is_current(storage: Storage, made: Object) -> bool:
    """Return whether `made` is still live: for days, a session reports what it made, even if that was replaced."""
    current = await storage.stat(Url(made.bucket, made.name))
    return current is not None and current.generation == made.generation


def _make_multipart(resource: Mapping[str, Any], crc32c: str) -> tuple[bytes, bytes]:
    """Return the bytes of a multipart body before the data (with the metadata and the checksum) and after it."""
    opening = (
        f"--{_BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
        f"{_encode({**resource, 'crc32c': crc32c})}\r\n"
        f"--{_BOUNDARY}\r\nContent-Type: {resource['contentType']}\r\n\r\n"
    )
    return opening.encode(), _ENDING


def _make_resource(chosen: ObjectMetadata, name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of an object, as the API has it; the default of the content type is guessed from `name`."""
    resource = {"contentType": guess_content_type(name), "metadata": metadata}
    return resource if chosen is NO_METADATA else chosen.over(resource)
