"""Transfer one item, whatever its action is."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import BinaryIO

from forbear import report
from forbear.adapters import current_runtime
from forbear_transfer.encryption import DEFAULT_ENCRYPTION, NewObjectOptions
from forbear_transfer.errors import (
    HttpError,
    StrPath,
    TargetExists,
    TransferError,
    describe,
    hint_of,
    is_out_of_files,
)
from forbear_transfer.items import STREAM, Action, Item, Outcome, Status
from forbear_transfer.metadata import NO_METADATA
from forbear_transfer.objects import Object, Url
from forbear_transfer.progress import Progress
from forbear_transfer.storage.client import Storage
from forbear_transfer.threads import in_thread
from forbear_transfer.uploads.sources import is_pipe
from forbear_transfer.workers.local import Folders, remove, touch
from forbear_transfer.workers.versions import (
    delete_version,
    expect_unchanged,
    explain_absence,
    move_version,
    touch_version,
    update_version,
)

_RUN_AGAIN = "another program made it: run it again"


async def perform(
    storage: Storage,
    item: Item,
    progress: Progress,
    folders: Folders,
    *,
    state: StrPath | None = None,
    crowded: bool = False,
) -> Outcome | None:
    """Perform an item's action and return its outcome, also if it fails. `progress` is the current one of this task.

    Items to skip or refuse get their outcome at once. Returns None if no more files can be opened and `crowded` says
    that other items hold some: try the item later.
    """
    if item.action is Action.SKIP:
        return Outcome(item, Status.SKIPPED, error=item.note, hint=item.hint)
    if item.action is Action.REFUSE:
        return Outcome(item, Status.FAILED, error=item.note, hint=item.hint)
    progress.start(item)
    runtime = current_runtime()
    began, start = runtime.now(), runtime.monotonic()
    try:
        made = await _ACTIONS[item.action](storage, item, folders, state)
    except Exception as error:
        if is_out_of_files(error):
            progress.throttled()
            if crowded:
                return None
        exists = isinstance(error, TargetExists)
        return Outcome(
            item,
            Status.SKIPPED if exists and item.no_clobber else Status.FAILED,
            seconds=runtime.monotonic() - start,
            retries=progress.retries,
            error=describe(error),
            hint=_RUN_AGAIN if exists and not (item.no_clobber or item.is_required) else hint_of(error),
            report=report(error),
            began=began,
        )
    size, generation, crc32c = (0, None, None) if made is None else (made.size, made.generation, made.crc32c)
    seconds = runtime.monotonic() - start
    return Outcome(item, Status.DONE, size, seconds, progress.retries, generation, crc32c, began=began)


async def _copy(storage: Storage, item: Item, folders: Folders, state: StrPath | None) -> Object:
    source = item.source
    if not isinstance(source, Url):
        return await _upload(storage, item, source, state)
    try:
        return await _copy_object(storage, item, source, folders, state)
    except TransferError as error:
        is_gone = isinstance(error, HttpError) and error.status == 404
        is_in_the_way = isinstance(item.target, str) and os.path.isdir(item.target)  # noqa: ASYNC240
        if not (is_gone or is_in_the_way) or item.object is not None or source.generation:
            raise
        if not await storage.is_folder(source) or await storage.stat(source) is not None:
            raise
        raise await explain_absence(storage, source) from error


async def _upload(storage: Storage, item: Item, source: str, state: StrPath | None) -> Object:
    target = item.target
    if not isinstance(target, Url):
        raise TransferError(f"{source} and {target} are both local", "use the cp of the system")
    if item.size is None and source != STREAM and is_pipe(source):  # a user has named it
        with await in_thread(_open_pipe, source) as pipe:  # which waits for its writer
            return await _send(storage, item, pipe, target, state)
    return await _send(storage, item, sys.stdin.buffer if source == STREAM else source, target, state)


def _send(
    storage: Storage, item: Item, source: BinaryIO | str, target: Url, state: StrPath | None
) -> Awaitable[Object]:
    from forbear_transfer.uploads.upload import send  # here, as it takes a while to load

    return send(
        storage, source, target, 0 if item.no_clobber else item.generation, item.metadata or NO_METADATA,
        item.encryption or DEFAULT_ENCRYPTION, state=state, gzip=item.gzip, verify_source=item.verify_source,
        preserve_posix=item.preserve_posix,
    )  # fmt: skip


async def _copy_object(storage: Storage, item: Item, source: Url, folders: Folders, state: StrPath | None) -> Object:
    """Download or copy, and import only what does it."""
    target, generation = item.target, 0 if item.no_clobber else item.generation
    encryption = item.encryption or DEFAULT_ENCRYPTION
    keys, version = encryption.decryption_keys, source if source.generation is not None else item.object or source
    if isinstance(target, Url):
        from forbear_transfer.rewrite import copy

        equal = generation == 0 and not (item.no_clobber or item.is_required)
        options: NewObjectOptions = {**(item.metadata or NO_METADATA).options(), **encryption.options()}
        return await copy(
            storage,
            version,
            target,
            generation=generation,
            state=state,
            accept_equal=equal,
            decryption_keys=keys,
            **options,
        )
    from forbear_transfer.downloads.download import Download
    from forbear_transfer.downloads.target import DownloadOptions

    chosen = DownloadOptions(
        no_clobber=item.no_clobber, decode=item.decode, root=item.root, state=state, listed=item.listed,
        preserve_posix=item.preserve_posix,
    )  # fmt: skip
    if target == STREAM:
        made = await Download(storage, version, sys.stdout.buffer, chosen, keys).run()
        sys.stdout.buffer.flush()  # an error here is a failure of this item
        return made
    chosen.resumable = folders.prepare(target, item.root)
    if isinstance(version, Url) and version.generation is None:
        version = await storage.stat(version, keys) or version  # for the modification time, which a listing has too
    return await Download(storage, version, target, chosen, keys).run()


def _open_pipe(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


async def _delete(storage: Storage, item: Item, *_: object) -> None:
    """Delete the target; it is no error if that is gone already, unless the item has an `object`."""
    if not isinstance(item.target, Url):
        remove(item.target, item.root, item.listed)
        return
    if item.object is not None:
        await delete_version(storage, item.target, item.object.generation)
        return
    with expect_unchanged(f"{item.target} was written meanwhile, and is not deleted"):
        await storage.delete(item.target, {"ifGenerationMatch": item.generation})


async def _touch(storage: Storage, item: Item, *_: object) -> None:
    if isinstance(item.target, Url):
        await touch_version(storage, item)
    else:
        touch(item.target, item.root, item.mtime, item.listed, mode=item.mode)


_ACTIONS: Mapping[Action, Callable[[Storage, Item, Folders, StrPath | None], Awaitable[Object | None]]] = {
    Action.COPY: _copy,
    Action.MOVE: move_version,
    Action.UPDATE: update_version,
    Action.DELETE: _delete,
    Action.TOUCH: _touch,
}
"""The function for each action; those of a copy and a move return the object that was written or read."""
