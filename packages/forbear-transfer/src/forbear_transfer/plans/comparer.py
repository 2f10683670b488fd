"""Comparisons of a source and a target of rsync: whether they are the same, and what makes them so.

Two objects are the same if their sizes and CRC32Cs are. A local file is the same as an object if their sizes and their
modification times in whole seconds agree. If the times differ, or with `checksum`, the file is read for its CRC32C. If
only the time differs, the target gets the time of the source, and the contents are not sent again. An object without a
time needs none: the same contents suffice. With `preserve_posix`, modes are compared in the same way. An object whose
CRC32C the service does not state, because its customer-supplied key was not named, counts as different. An object that
is stored as gzip is the same as the file that it unpacks to, which its last bytes say.
"""

import asyncio
import io
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import BinaryIO, TypeVar, cast

from forbear.adapters import dataclass, replace
from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear_transfer.downloads.sinks import RangeSink
from forbear_transfer.encryption import EncryptionKey
from forbear_transfer.errors import TransferError
from forbear_transfer.files import PIECE
from forbear_transfer.items import Action, Item, ItemOptions
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.trees import Entry, is_kept_as
from forbear_transfer.storage.client import Storage
from forbear_transfer.threads import run_steps
from forbear_transfer.uploads.sources import FileSource

FileOrObject = Entry | Object

_A = TypeVar("_A")
_B = TypeVar("_B")
_TRAILER, _SMALLEST = 8, 18
_MODULUS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncRules:
    """The options of rsync that say what is compared, copied and deleted; the docstring of `rsync` describes them."""

    recursive: bool = False
    delete: bool = False
    checksum: bool = False
    size_only: bool = False
    update: bool = False
    max_delete: int | None = None


class Comparer:
    """Compares files and objects by the rules of one rsync."""

    def __init__(self, storage: Storage, rules: RsyncRules, each: ItemOptions) -> None:
        self._storage = storage
        self._rules = rules
        self._each = each

    async def find_difference(self, item: Item, source: FileOrObject, target: FileOrObject) -> Item | None:
        """Return `item`, or one that only sets time and mode, or None if source and target are the same."""
        if self._rules.size_only and source.size == target.size and _is_plain(source) and _is_plain(target):
            return None
        if isinstance(source, Object) and isinstance(target, Object):
            if source.size == target.size:
                source, target = await self._complete(source), await self._complete(target)
            same = source.size == target.size and source.crc32c is not None and source.crc32c == target.crc32c
            return None if same else item
        unpacks = self.unpacks(source, target)
        file, there = (target, source) if isinstance(source, Object) else (source, target)
        if not isinstance(there, Object):
            return item
        found = await self._compare_file(item, file, there, unpacks=unpacks)
        if self._each.preserve_posix and isinstance(file, Entry) and (found is None or found.action is Action.TOUCH):
            mode, now = (there.mode, file.mode) if isinstance(source, Object) else (file.mode, there.mode)
            if mode not in (None, now):
                return replace(found or item, action=Action.TOUCH, size=0, object=there, mode=mode)
        return found

    def unpacks(self, source: FileOrObject, target: FileOrObject) -> bool:
        """Return whether a file should be what an object that is stored as gzip unpacks to; that takes a request."""
        if isinstance(source, Object):
            return isinstance(target, Entry) and source.content_encoding == "gzip" and not self._each.packed
        return isinstance(target, Object) and target.content_encoding == "gzip" and self._each.gzip

    async def _complete(self, listed: Object) -> Object:
        return await self._storage.completed(listed, self._each.encryption.keys)

    async def _compare_file(self, item: Item, file: FileOrObject, there: Object, *, unpacks: bool) -> Item | None:
        """Return `item` if a file and the object `there` differ, one that sets the time, or None."""
        if not isinstance(file, Entry) or file.note or (file.size != there.size and not unpacks):
            return item
        same_time = there.mtime is not None and int(file.mtime) == int(there.mtime)
        by_time = same_time and not self._rules.checksum
        if by_time and not unpacks:
            return None
        is_same, keys = False, self._each.encryption.keys
        if there.size == file.size:
            crc32c = (await self._complete(there)).crc32c
            is_same = crc32c is not None and await _hash_file(file.path) == crc32c
        if unpacks and not is_same:
            is_same = await _is_unpacked(self._storage, file, there, keys, by_size=by_time)
        if not is_same:
            return item
        downloads = isinstance(item.source, Url)
        if same_time or there.mtime is None or (downloads and await asyncio.to_thread(is_kept_as, file, there.mtime)):
            return None
        mtime = there.mtime if downloads else file.mtime
        return replace(item, action=Action.TOUCH, size=0, object=there, mtime=mtime)


def _is_plain(version: FileOrObject) -> bool:
    """Return whether the size of a version is that of its contents: it is no link or device, and not compressed."""
    return version.content_encoding != "gzip" if isinstance(version, Object) else not version.note


async def _hash_file(path: str) -> str | None:
    """Return the CRC32C of a file in base64, None if it cannot be read. The copy that follows reports the error."""
    try:
        with FileSource(path) as file:
            return await file.crc32c()
    except TransferError:
        return None


async def _is_unpacked(
    storage: Storage, file: Entry, there: Object, keys: Sequence[EncryptionKey], *, by_size: bool
) -> bool:
    """Return whether a file has what an object that is stored as gzip unpacks to; with `by_size` if the size is right.

    The last bytes of the stored ones, which are requested, state the size and CRC-32 of the contents. Those of several
    members state it of the last one: if the file may be longer for that reason, the object is read and unpacked. False
    if that cannot be known.
    """
    try:
        trailer = await _read_trailer(storage, there, keys)
        if trailer is None:
            return False
        crc32, size = trailer
        if size == file.size % _MODULUS:
            return by_size or await _hash_unpacked(file) == crc32
        if size > file.size:
            return False
        contents = _Hash()
        await download(storage, there, cast("BinaryIO", contents), decryption_keys=keys)
        return contents.size == file.size and (by_size or contents.crc32 == await _hash_unpacked(file))
    except (TransferError, Gone, Unsliceable, OSError):  # the copy that follows reports it
        return False


async def _read_trailer(storage: Storage, there: Object, keys: Sequence[EncryptionKey]) -> tuple[int, int] | None:
    """Return the CRC-32 and the size, modulo 2**32, in the last bytes of a gzip object; None if it is too short."""
    if there.size < _SMALLEST:
        return None
    stream = io.BytesIO()
    await Fetch(storage, there, decode=False, keys=keys).fill(
        RangeSink(stream, str(there.url), there.size - _TRAILER, there.size)
    )
    data = stream.getvalue()
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")


async def _hash_unpacked(file: Entry) -> int:
    contents = _Hash()
    await run_steps(contents.read_file(file.path))
    return contents.crc32


class _Hash(io.RawIOBase):
    def __init__(self) -> None:
        self.crc32 = 0
        self.size = 0

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.crc32 = zlib.crc32(data, self.crc32)
        self.size += len(data)
        return len(data)

    def read_file(self, path: str) -> Iterator[None]:
        with open(path, "rb", buffering=0) as file:
            while data := file.read(PIECE):
                self.write(data)
                yield


async def side_by_side(
    left: AsyncIterator[tuple[str, _A]], right: AsyncIterator[tuple[str, _B]]
) -> AsyncGenerator[tuple[str, _A | None, _B | None]]:
    """Join two listings by name: yield each name once, with the values of the left and the right listing.

    The value is None where a listing lacks the name. TransferError if a listing is not in order of name or has a name
    twice, since a name that seems missing might come later.
    """
    one, other = await anext(left, None), await anext(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None  # noqa: S101
            yield one[0], one[1], None
            one = await _take_next(left, one[0])
        elif one is None or other[0] < one[0]:
            yield other[0], None, other[1]
            other = await _take_next(right, other[0])
        else:
            yield one[0], one[1], other[1]
            one, other = await _take_next(left, one[0]), await _take_next(right, other[0])


async def _take_next(listing: AsyncIterator[tuple[str, _A]], before: str) -> tuple[str, _A] | None:
    entry = await anext(listing, None)
    if entry is not None and entry[0] <= before:
        raise TransferError(f"a listing is not in the order of names: {entry[0]!r} comes after {before!r}")
    return entry
