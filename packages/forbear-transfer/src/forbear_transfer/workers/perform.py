"""Transfer one item, whatever its action is, and manage the local folders that it needs."""

import errno
import os
import sys
import time
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from forbear import report
from forbear.adapters import current_runtime
from forbear_transfer.downloads.download import download
from forbear_transfer.encryption import DEFAULT_ENCRYPTION, NewObjectOptions
from forbear_transfer.errors import (
    HttpError,
    StrPath,
    TargetChanged,
    TargetExists,
    TransferError,
    describe,
    hint_of,
    is_out_of_files,
    unwritable,
    why_not,
)
from forbear_transfer.files import FileIdentity, OpenFolder, check_listed, folder_below, real_below
from forbear_transfer.items import STREAM, Action, Item, Outcome, Status
from forbear_transfer.metadata import MetadataOptions
from forbear_transfer.objects import Object, Url
from forbear_transfer.progress import Progress
from forbear_transfer.rewrite import copy
from forbear_transfer.storage.client import Storage
from forbear_transfer.threads import in_thread
from forbear_transfer.uploads.sources import is_pipe
from forbear_transfer.uploads.upload import upload
from forbear_transfer.workers.versions import (
    delete_version,
    expect_unchanged,
    explain_absence,
    move_version,
    touch_version,
    update_version,
)

_JSON = {"Content-Type": "application/json"}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_RUN_AGAIN = "another program made it: run it again"


class Folders:
    """Makes the local folders of files, and remembers them, so that each is made and checked once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], tuple[int, int]] = {}

    def prepare(self, path: str, root: str | None) -> None:
        """Make the folder of the file `path`, and the missing ones above it; UnsafeName if a link leads out of `root`.

        If `root` is None, no link is checked. A folder that is remembered, and has not been replaced since, is skipped.
        TransferError if it cannot be made.
        """
        folder = os.path.dirname(path)
        known = self._known.get((folder, root))
        if known is None or known != _identify(folder):  # a link may have replaced it
            if root is not None:
                _make(root)
                real_below(root, folder)
            _make(folder)
            self._known[folder, root] = _identify(folder)


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
        made = await _do(storage, item, folders, state)
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
    return Outcome(
        item,
        Status.DONE,
        bytes=0 if made is None else made.size,
        seconds=runtime.monotonic() - start,
        retries=progress.retries,
        generation=None if made is None else made.generation,
        crc32c=None if made is None else made.crc32c,
        began=began,
    )


async def _do(storage: Storage, item: Item, folders: Folders, state: StrPath | None) -> Object | None:
    """Copy, move, delete or touch, as the item's action says.

    Return the object that was written or read by a copy or a move, None after the other actions.
    """
    if item.action is Action.COPY:
        return await _copy(storage, item, folders, state)
    if item.action is Action.MOVE:
        return await move_version(storage, item, state)
    if item.action is Action.UPDATE:
        await update_version(storage, item)
        return None
    await (_delete(storage, item) if item.action is Action.DELETE else _touch(storage, item))
    return None


async def _copy(storage: Storage, item: Item, folders: Folders, state: StrPath | None) -> Object:
    try:
        return await _copy_any(storage, item, folders, state)
    except HttpError as error:
        source = item.source
        if error.status != 404 or item.object is not None or not isinstance(source, Url) or source.generation:
            raise
        if not await storage.is_folder(source) or await storage.stat(source) is not None:
            raise
        raise await explain_absence(storage, source) from error


async def _copy_any(storage: Storage, item: Item, folders: Folders, state: StrPath | None) -> Object:
    source, target = item.source, item.target
    generation = 0 if item.no_clobber else item.generation
    encryption = item.encryption or DEFAULT_ENCRYPTION
    metadata = item.metadata.options() if item.metadata is not None else MetadataOptions()
    options: NewObjectOptions = {**metadata, **encryption.options()}
    if not isinstance(source, Url):
        if not isinstance(target, Url):
            raise TransferError(f"{source} and {target} are both local", "copy them with cp")
        send = partial(
            upload,
            storage,
            target=target,
            generation=generation,
            gzip=item.gzip,
            state=state,
            verify_source=item.verify_source,
            **options,
        )
        if item.size is None and source != STREAM and is_pipe(source):  # a user has named it
            with await in_thread(_open_pipe, source) as pipe:  # which waits for its writer
                return await send(pipe)
        return await send(sys.stdin.buffer if source == STREAM else source)
    version, keys = _pick_version(source, item.object), encryption.decryption_keys
    if isinstance(target, Url):
        equal = generation == 0 and not (item.no_clobber or item.is_required)
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
    if target == STREAM:
        made = await download(storage, version, sys.stdout.buffer, decode=item.decode, decryption_keys=keys)
        sys.stdout.buffer.flush()  # an error here is a failure of this item
        return made
    folders.prepare(target, item.root)
    if isinstance(version, Url) and version.generation is None:
        version = await storage.stat(version, keys) or version  # for the modification time, which a listing has too
    return await download(
        storage,
        version,
        target,
        no_clobber=item.no_clobber,
        decode=item.decode,
        state=state,
        root=item.root,
        listed=item.listed,
        decryption_keys=keys,
    )


def _open_pipe(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


def _pick_version(source: Url, listed: Object | None) -> Url | Object:
    """Return `listed`, the object in the listing, or `source` if there is none or `source` names a generation.

    The copy then reads that version. The listed object saves a request.
    """
    return source if listed is None or source.generation is not None else listed


async def _delete(storage: Storage, item: Item) -> None:
    """Delete the target of the item. It is no error if the target is gone already, unless the item has an `object`.

    TargetChanged for an object that no longer has the item's generation.
    """
    if not isinstance(item.target, Url):
        remove(item.target, item.root, item.listed)
        return
    if item.object is not None:
        await delete_version(storage, item.target, item.object.generation)
        return
    with expect_unchanged(f"{item.target} was written meanwhile, and is not deleted"):
        await storage.delete(item.target, {"ifGenerationMatch": item.generation})


async def _touch(storage: Storage, item: Item) -> None:
    """Set the modification time of the item's target: of a file, or in the metadata of an object, in whole seconds.

    TargetChanged if it was changed since it was listed.
    """
    target, mtime = item.target, item.mtime
    assert mtime is not None  # noqa: S101
    if isinstance(target, Url):
        await touch_version(storage, item, int(mtime))
    else:
        touch(target, item.root, mtime, item.listed)


def remove(path: str, root: str | None, listed: FileIdentity | None = None) -> None:
    """Remove a file, and its folders below `root` that are empty then. It is no error if the file is gone already.

    A path that ends with a separator is that of an empty folder. If `root` is None, only the file is removed.
    UnsafeName if a symbolic link leads out of `root`. TargetChanged if the file is not the version that was `listed`
    (None: any), or the folder is not empty any more. TransferError if it cannot be deleted.
    """
    folder, name = os.path.split(path.rstrip(os.sep))
    try:
        with suppress(FileNotFoundError), OpenFolder(folder) if root is None else folder_below(root, folder) as opened:
            if path.endswith(os.sep):
                opened.rmdir(name)
            elif (status := opened.stat_listed(name)) is not None or listed is None:
                check_listed(path, status, listed, "deleted")
                opened.unlink(name)
    except OSError as error:
        if error.errno in _NOT_EMPTY:
            raise TargetChanged(f"{path} is not empty any more, and is not deleted", "run it again") from error
        raise unwritable(path, error, verb="delete") from error
    with suppress(OSError):  # stops at the first folder that is not empty
        while root is not None and len(folder) > len(root.rstrip(os.sep)):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def touch(path: str, root: str | None, mtime: float, listed: FileIdentity | None = None) -> None:
    """Set the modification time of a file, in epoch seconds, and its access time to now.

    A symbolic link is not followed. UnsafeName if the file's folder does not lie below `root` (None: anywhere is
    right), TargetChanged if the file is not the version that was `listed`, TransferError if the time cannot be set.
    """
    if root is not None:
        real_below(root, os.path.dirname(path))
    try:
        check_listed(path, os.stat(path), listed, "given another time")
        os.utime(path, (time.time(), mtime), follow_symlinks=False)
    except OSError as error:
        raise unwritable(path, error, verb="set the time of", named=False) from error


def _make(folder: str) -> None:
    try:
        os.makedirs(folder or os.curdir, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        why = why_not(os.path.join(folder, os.curdir), error)
        raise TransferError(
            f"cannot make the folder {folder}: {why}", "move what is in the way, or choose another target"
        ) from error
    except OSError as error:
        raise unwritable(folder, error, verb="make the folder") from error


def _identify(folder: str) -> tuple[int, int]:
    try:
        status = os.stat(folder or os.curdir)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
