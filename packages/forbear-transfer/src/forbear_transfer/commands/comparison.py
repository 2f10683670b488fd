"""`check`: compare two folders by the names, sizes and CRC32Cs of what they hold; at least one is in the cloud."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from enum import Enum

from forbear.adapters import dataclass
from forbear_transfer.encryption import EncryptionKey, Keys, check_keys
from forbear_transfer.errors import StrPath, TransferError
from forbear_transfer.objects import Object, Url, check_scheme, is_cloud
from forbear_transfer.plans.comparer import FileOrObject, side_by_side
from forbear_transfer.plans.filters import Filter
from forbear_transfer.plans.trees import Entry, read_batches, walk
from forbear_transfer.runs import run_blocking
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.uploads.sources import FileSource


class CheckStatus(Enum):
    """The result for one name: the same on both sides, different, on one side only, or not comparable.

    Example: see `check`.
    """

    SAME = "same"
    DIFFERENT = "different"
    ONLY_LEFT = "only_left"
    ONLY_RIGHT = "only_right"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The comparison of one name below both folders; the sizes are in bytes, None where there is nothing.

    `note` says what differs, or why the two cannot be compared. Example: see `check`.
    """

    name: str
    status: CheckStatus
    left_size: int | None = None
    right_size: int | None = None
    note: str = ""


def check(
    left: StrPath,
    right: StrPath,
    *,
    exclude: str | Sequence[str] | None = None,
    include: str | Sequence[str] | None = None,
    decryption_keys: Keys | None = None,
    settings: Settings | None = None,
) -> list[CheckResult]:
    """Return a CheckResult for each name in which the folders `left` and `right` are not the same, in order of name.

    Everything below the folders counts. Two files are the same if their sizes and CRC32Cs are; a local file is read for
    that. An object that is stored as gzip is compared as it is stored. `exclude` and `include` are regular expressions
    for the beginnings of names, as in `rsync`. `decryption_keys` are the customer-supplied keys that objects may have;
    an object with another one is not comparable. Objects that stand for folders (their names end with a slash) are left
    out, too.

    TransferError if a folder cannot be listed or does not exist. ValueError if the arguments make no sense.
    RuntimeError inside a running event loop, since it blocks.

    >>> from pathlib import Path
    >>> size = Path("photos/2.jpg").write_bytes(b"photo 2")
    >>> [(result.name, result.status.value) for result in check("photos", "gs://my-bucket/photos")]
    [('2.jpg', 'only_left')]
    """
    check_arguments(left, right, exclude, include)
    keys = check_keys(decryption_keys)

    async def collect(storage: Storage) -> list[CheckResult]:
        every = acheck(storage, left, right, exclude=exclude, include=include, decryption_keys=keys)
        return [one async for one in every if one.status is not CheckStatus.SAME]

    return run_blocking(settings, collect, "acheck")


async def acheck(
    storage: Storage,
    left: StrPath,
    right: StrPath,
    *,
    exclude: str | Sequence[str] | None = None,
    include: str | Sequence[str] | None = None,
    decryption_keys: Keys | None = None,
) -> AsyncGenerator[CheckResult]:
    """Yield over an open Storage a CheckResult for each name, also for those that are the same on both sides.

    Example: see `check`.
    """
    one, other, names = check_arguments(left, right, exclude, include)
    keys = check_keys(decryption_keys)
    async for name, here, there in side_by_side(_list_entries(storage, one), _list_entries(storage, other)):
        if not names.leaves_out(name):
            yield await _compare(storage, name, here, there, keys)


def check_arguments(
    left: StrPath, right: StrPath, exclude: str | Sequence[str] | None, include: str | Sequence[str] | None
) -> tuple[Url | str, Url | str, Filter]:
    """Return both folders, and the filter of names; ValueError, which names the parameter, if wrong."""
    folders = _parse_folder(left, "left"), _parse_folder(right, "right")
    if not any(isinstance(folder, Url) for folder in folders):
        raise ValueError(f"`left` or `right` must begin with gs://; to compare {left} and {right}, use diff -r")
    return *folders, Filter.of(exclude, include)


def _parse_folder(folder: StrPath, parameter: str) -> Url | str:
    name = os.fspath(folder)
    if not name:
        raise ValueError(f"`{parameter}` must name a folder, got nothing; for this folder write .")
    check_scheme(parameter, name)
    if not is_cloud(name):
        return name
    return Url.parse(name, versions=False)


async def _list_entries(storage: Storage, folder: Url | str) -> AsyncIterator[tuple[str, FileOrObject]]:
    if not isinstance(folder, Url):
        async for entry in read_batches(walk(folder)):
            if entry.problem and not entry.name:
                raise TransferError(f"cannot read the folder {entry.path}: {entry.problem}", "check the path")
            yield entry.name, entry
        return
    start, nothing = folder.prefix, True
    async for listed in storage.objects(folder.bucket, start):
        nothing = False
        if isinstance(listed, Object) and not listed.name.endswith("/"):
            yield listed.name[len(start) :], listed
    if nothing and folder.name:
        raise TransferError(f"there is nothing below {folder}", "check the name")


async def _compare(
    storage: Storage,
    name: str,
    left: FileOrObject | None,
    right: FileOrObject | None,
    keys: Sequence[EncryptionKey],
) -> CheckResult:
    sizes = (None if left is None else left.size, None if right is None else right.size)
    for entry in (left, right):
        if isinstance(entry, Entry) and (entry.problem or entry.note):
            return CheckResult(name, CheckStatus.UNREADABLE, *sizes, entry.problem or entry.note)
    if left is None or right is None:
        return CheckResult(name, CheckStatus.ONLY_RIGHT if left is None else CheckStatus.ONLY_LEFT, *sizes)
    if left.size != right.size:
        return CheckResult(name, CheckStatus.DIFFERENT, *sizes, "their sizes differ")
    try:
        one, other = await _find_crc32c(storage, left, keys), await _find_crc32c(storage, right, keys)
    except TransferError as error:
        return CheckResult(name, CheckStatus.UNREADABLE, *sizes, str(error))
    if one is None or other is None:
        has_key = any(isinstance(entry, Object) and entry.key_sha256 for entry in (left, right))
        why = "the service states no CRC32C" + (" without the object's key" if has_key else "")
        return CheckResult(name, CheckStatus.UNREADABLE, *sizes, why)
    if one != other:
        return CheckResult(name, CheckStatus.DIFFERENT, *sizes, "their CRC32Cs differ")
    return CheckResult(name, CheckStatus.SAME, *sizes)


async def _find_crc32c(storage: Storage, entry: FileOrObject, keys: Sequence[EncryptionKey]) -> str | None:
    if isinstance(entry, Object):
        return (await storage.completed(entry, keys)).crc32c
    with FileSource(entry.path) as file:
        crc32c = await file.crc32c()
        file.check()
        return crc32c
