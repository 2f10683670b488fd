"""Delete, move or change one known version of an object, and never a newer one that another client wrote meanwhile."""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from forbear import report
from forbear.adapters import attach_report, current_runtime
from forbear_transfer.encryption import DEFAULT_ENCRYPTION
from forbear_transfer.errors import HttpError, SourceChanged, StrPath, TargetChanged, TransferError, maybe_done
from forbear_transfer.items import Item
from forbear_transfer.metadata import ObjectMetadata
from forbear_transfer.objects import MODE, MTIME, Object, Url, format_mode
from forbear_transfer.storage.client import Storage

_JSON = {"Content-Type": "application/json"}


async def explain_absence(storage: Storage, url: Url, cure: str = "use `recursive`") -> TransferError:
    """Return the error for an object that does not exist; `cure` is for the case that there are objects below it."""
    if url.generation is not None:
        literal = f"{Url(url.bucket, url.name)}[#]{url.generation}"
        hint = f"check the number; for an object with # in its name write {literal}"
    elif await storage.is_folder(url):
        hint = f"there are objects below it: {cure}"
    else:
        hint = "check the name"
    return TransferError(f"{url} does not exist", hint)


async def delete_version(storage: Storage, url: Url, generation: int) -> None:
    """Delete the object at `url` while `generation` is its live version.

    A bucket with versions keeps it as a noncurrent one. If `url` has a generation itself, delete that one for good.

    If a response was lost and a repeated request finds nothing, the earlier request has deleted the object: that is a
    success. Otherwise HttpError (404) if nothing is there. TargetChanged if another version is live by now: it stays.
    """
    name = Url(url.bucket, url.name, generation)
    query = {"generation": url.generation, "ifGenerationMatch": generation if url.generation is None else None}
    try:
        await storage.call(f"delete {name}", "DELETE", url.path, query)
    except HttpError as error:
        if error.status not in (404, 412):
            raise
        there = await storage.stat(url) if error.status == 412 else None
        if there is not None:
            raise TargetChanged(
                f"{url} was written meanwhile: its version {there.generation} is not deleted",
                "look at it, then run it again",
            ) from error
        if not maybe_done(error):
            gone = HttpError(f"delete {name}", 404, "it is gone already", error.headers)
            gone.hint = None  # nothing is to do, and the names are right
            raise gone from error


async def move_version(storage: Storage, item: Item, _: object, state: StrPath | None) -> Object:
    """Copy the item's source, an object, to its target in the cloud, and delete the version that was copied.

    A source that cannot be deleted, by its hold or retention, is not copied. A copy that an earlier run has left is not
    made again. If another client writes the source meanwhile, the new version is neither copied nor deleted, and
    SourceChanged or TargetChanged is raised.
    """
    source, target = item.source, item.target
    if not isinstance(source, Url) or not isinstance(target, Url):
        raise TransferError(
            f"cannot move {source} to {target}: both must be objects", "copy it, then delete the source"
        )
    version = item.object or await storage.stat(source)
    if version is None:
        raise await explain_absence(storage, source)
    _check_deletable(source, version)
    from forbear_transfer.rewrite import copy  # few commands need it

    try:
        keys = item.encryption or DEFAULT_ENCRYPTION
        made = await copy(
            storage,
            version.url,
            target,
            generation=0 if item.no_clobber else item.generation,
            state=state,
            accept_equal=not item.no_clobber,
            decryption_keys=keys.decryption_keys,
            **keys.options(),
        )
    except HttpError as error:
        if error.status != 404 or await storage.stat(version.url) is not None:
            raise
        raise SourceChanged(f"{source} was written or deleted meanwhile, and is not moved") from error
    try:
        await delete_version(storage, source, version.generation)
    except TransferError as error:
        kind = TargetChanged if isinstance(error, TargetChanged) else TransferError
        failure = kind(f"{error}; version {version.generation} was copied to {target}", error.hint)
        if (tried := report(error)) is not None:
            attach_report(failure, tried)
        raise failure from error
    return made


async def touch_version(storage: Storage, item: Item) -> None:
    """Set time and mode of a file in the metadata of an object."""
    target, listed, mtime, mode = item.target, item.object, item.mtime, item.mode
    assert isinstance(target, Url) and listed is not None  # noqa: S101, PT018
    times = {} if mtime is None else {MTIME: str(int(mtime))}
    metadata = times if mode is None else {**times, MODE: format_mode(mode)}
    chosen = ObjectMetadata(metadata=metadata)
    await _patch(storage, target, listed, chosen.over({}), chosen.is_of, "time" if mode is None else "mode")


async def update_version(storage: Storage, item: Item, *_: object) -> None:
    """Set the metadata of the item's target. TargetChanged if the object was changed since it was listed."""
    target, listed, chosen = item.target, item.object, item.metadata
    assert isinstance(target, Url) and listed is not None and chosen is not None  # noqa: S101, PT018
    await _patch(storage, target, listed, chosen.over({}), chosen.is_of, "metadata")


async def _patch(
    storage: Storage,
    target: Url,
    listed: Object,
    resource: Mapping[str, object],
    is_done: Callable[[Object], bool],
    what: str,
) -> None:
    """Change metadata of the version that was `listed`; after a lost response, `is_done` says whether that was done."""
    query = {"ifGenerationMatch": listed.generation, "ifMetagenerationMatch": listed.metageneration}
    try:
        with expect_unchanged(f"{target} was written meanwhile; its {what} is not set"):
            body = json.dumps(resource).encode()
            await storage.call(f"set the {what} of {target}", "PATCH", target.path, query, headers=_JSON, body=body)
    except TransferError as error:
        if not maybe_done(error):
            raise
        there = await storage.stat(target)  # the change may be done, and only its response lost
        if there is None or there.generation != listed.generation or not is_done(there):
            raise


@contextmanager
def expect_unchanged(otherwise: str) -> Generator[None]:
    """Replace a failed precondition (412) in the block by TargetChanged, with the text `otherwise`."""
    try:
        yield
    except HttpError as error:
        if error.status == 412:
            changed = TargetChanged(otherwise, "run it again")
            if (tried := report(error)) is not None:
                attach_report(changed, tried)
            raise changed from error
        raise


def _check_deletable(source: Url, version: Object) -> None:
    expires, reason = version.retention_expires, None
    if version.temporary_hold or version.event_based_hold:
        reason = f"it is under {'a temporary' if version.temporary_hold else 'an event-based'} hold"
    elif expires is not None and expires > current_runtime().now():
        reason = f"it is retained until {datetime.fromtimestamp(expires, UTC).isoformat(timespec='seconds')}"
    if reason is not None:
        raise TransferError(f"{source} is not moved, since it cannot be deleted: {reason}", "copy it with `cp`")
