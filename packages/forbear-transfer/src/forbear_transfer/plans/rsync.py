"""The plan of an rsync: the differences between two folders, found by reading both listings in order of name.

Two objects are the same if their sizes and CRC32Cs are. A local file is the same as an object if their sizes and their
modification times in whole seconds agree. If the times differ, or with `checksum`, the file is read for its CRC32C. If
only the time differs, the target gets the time of the source, and the contents are not sent again. An object without a
time needs none: the same contents suffice. An object whose CRC32C the service does not state, because its
customer-supplied key was not named, counts as different.
"""

import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import TypeVar

from forbear_transfer.errors import TransferError
from forbear_transfer.items import Action, Item
from forbear_transfer.objects import Object, Url, is_cloud
from forbear_transfer.plans.arguments import RsyncArguments
from forbear_transfer.plans.cp import LISTING_FAILURES
from forbear_transfer.plans.targets import Clashes, CopyTarget
from forbear_transfer.plans.trees import Entry, batched, walk
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.sources import FileSource

FileOrObject = Entry | Object

_A = TypeVar("_A")
_B = TypeVar("_B")
_T = TypeVar("_T")


class RsyncPlan:
    """The items of one rsync. The caller takes `copies` first and then, if all of them succeeded, `deletions`."""

    def __init__(self, storage: Storage, arguments: RsyncArguments) -> None:
        self._storage = storage
        self._arguments = arguments
        self._source: Url | str = Url.parse(arguments.source) if is_cloud(arguments.source) else arguments.source
        target: Url | str = Url.parse(arguments.target) if is_cloud(arguments.target) else arguments.target
        self._target = CopyTarget(target, folder=True)
        self._clashes = None if isinstance(target, Url) else Clashes(target)
        self._extras: list[tuple[str, int | None]] = []
        self._links: dict[str, Entry] = {}
        self._unseen: dict[str, Entry] = {}
        self._kept: Counter[str] = Counter()

    async def copies(self) -> AsyncGenerator[Item]:
        """Yield an item for each file or object of the source that the target lacks or has in another version.

        If only the modification time differs, the item sets it. A source that cannot be copied is a skipped or refused
        item. Names that `exclude` matches are left out. If a listing fails, yield a refused item and end. Yield one
        also if the source is empty, so that all would be deleted or the name is probably wrong.
        """
        empty = True
        try:
            async for name, source, target in side_by_side(self._sources(), self._targets()):
                empty = empty and source is None
                if self._arguments.excludes(name):
                    continue
                if source is None:
                    self._note_extra(name, target)
                    continue
                item = await self._compared(name, source, target)
                if item is not None:
                    yield item
        except LISTING_FAILURES as error:
            yield Item(self._source, self._target.at).refused(error)
            return
        for name, count in self._kept.items():
            yield self._refused_deletions(self._unseen[name], count)
        if empty and self._extras:
            text = f"there is nothing in {self._source}, so everything in {self._target.at} would be deleted"
            cure = "check the name of the source, or delete everything by other means"
            yield Item(self._source, self._target.at).refused(TransferError(text, cure))
        elif empty and isinstance(self._source, Url) and self._source.name:
            text = f"there is nothing below {self._source}"
            yield Item(self._source, self._target.at).refused(TransferError(text, "check the name of the source"))

    @property
    def extras(self) -> int:
        """The number of deletions, known once `copies` has ended; 0 without the option `delete`."""
        return len(self._extras)

    async def deletions(self) -> AsyncGenerator[Item]:
        """Yield an item that deletes the target's version of each name that `copies` has found only there.

        Nothing comes without the option `delete`.
        """
        for name, generation in self._extras:
            if isinstance(self._target.at, Url):
                target: Url | str = Url(self._target.at.bucket, f"{self._target.at.prefix}{name}")
                yield Item(target, target, Action.DELETE, size=0, generation=generation)
            else:
                target = os.path.join(self._target.at, name.replace("/", os.sep))
                yield Item(target, target, Action.DELETE, size=0, root=self._target.at)

    def _sources(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._source, Url):
            return self._objects(self._source, folders=isinstance(self._target.at, Url))
        return self._files(self._source, follow=True)

    def _targets(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._target.at, Url):
            return self._objects(self._target.at, folders=isinstance(self._source, Url))
        if os.path.lexists(self._target.at):
            return self._files(self._target.at, follow=False)  # nothing is deleted where a link leads
        return _nothing()

    async def _objects(self, folder: Url, *, folders: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        """Yield the objects of a folder by name, each with its name below the folder.

        Objects that stand for folders (their names end with a slash) come only if `folders` is set. Without
        `recursive`, only the objects directly in the folder come.
        """
        start = folder.prefix
        delimiter = None if self._arguments.recursive else "/"
        async for listed in self._storage.objects(folder.bucket, start, delimiter=delimiter):
            if isinstance(listed, Object) and listed.name != start and (folders or not listed.name.endswith("/")):
                yield listed.name[len(start) :], listed

    async def _files(self, folder: str, *, follow: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        async for entry in batched(walk(folder, follow=follow, recursive=self._arguments.recursive)):
            if entry.problem:
                raise TransferError(
                    f"cannot read the folder {entry.path}: {entry.problem}",
                    "check the path, and whether it may be read",
                )
            if entry.note:
                (self._unseen if follow else self._links)[entry.name] = entry
            yield entry.name, entry

    def _note_extra(self, name: str, target: FileOrObject | None) -> None:
        """Record that `name`, which the source lacks, must be deleted, if the option `delete` is set.

        A local `target` that is a link, a device or an unfinished download is kept. A name below a source path that is
        a dangling link, a pipe or the like is not deleted either, but counted.
        """
        if not self._arguments.delete or (isinstance(target, Entry) and target.note):
            return
        unseen = _above(name, self._unseen)
        if unseen is not None:
            self._kept[unseen.name] += 1
        else:
            self._extras.append((name, target.generation if isinstance(target, Object) else None))

    def _refused_deletions(self, unseen: Entry, count: int) -> Item:
        """Return the refused item that reports deletions left out below a source path that is no folder any more.

        Such a path is a link to nothing, a pipe or the like. `count` is the number of these deletions.
        """
        below = self._target.with_target(Item(unseen.path, self._target.at), unseen.name)
        text = f"it is {unseen.note} now; {count} at the target, below {below.target}, would be deleted"
        return replace(below.refused(text), hint="restore what was there, or exclude it, or delete these yourself")

    async def _compared(self, name: str, source: FileOrObject, target: FileOrObject | None) -> Item | None:
        if isinstance(source, Entry):
            item = Item(source.path, self._target.at, size=source.size)
            if source.note:
                return item.skipped(source.note)
        else:
            item = Item(Url(source.bucket, source.name), self._target.at, size=source.size, object=source)
        item = self._arguments.changed(self._target.with_target(item, name))
        if self._clashes is not None:
            item = self._clashes.checked(item, name)
        if isinstance(item.target, Url):
            item = replace(item, generation=target.generation if isinstance(target, Object) else 0)
        if item.action is Action.COPY and target is not None:
            if self._arguments.update and _time(target) > _time(source):
                return None
            same = await self._difference(item, source, target)
            if same is None:
                return None
            item = same
        link = self._link(name, target)
        return item if link is None else item.refused(f"{link} is a link or a device, which is not written through")

    def _link(self, name: str, target: FileOrObject | None) -> str | None:
        """Return the path of a link or device at the target through which a copy would write, None if there is none.

        That is a symbolic link with this name, or anything but a folder or plain file that the name lies below.
        """
        if isinstance(target, Entry) and os.path.islink(target.path):
            return target.path
        link = _above(name, self._links)
        return None if link is None else link.path

    async def _difference(self, item: Item, source: FileOrObject, target: FileOrObject) -> Item | None:
        """Return the item that makes the target like the source, or None if they are the same.

        It is `item`, or one that only sets the modification time.
        """
        if self._arguments.size_only and source.size == target.size and _is_plain(source) and _is_plain(target):
            return None
        if isinstance(source, Object) and isinstance(target, Object):
            if source.size == target.size:
                source, target = await self._completed(source), await self._completed(target)
            same = source.size == target.size and source.crc32c is not None and source.crc32c == target.crc32c
            return None if same else item
        if isinstance(source, Object):
            decoded = source.content_encoding == "gzip" and not self._arguments.packed
            return await self._file_difference(item, target, source, decoded=decoded)
        if not isinstance(target, Object):
            return item
        decoded = target.content_encoding == "gzip" and self._arguments.gzip
        return await self._file_difference(item, source, target, decoded=decoded)

    async def _completed(self, listed: Object) -> Object:
        return await self._storage.completed(listed, self._arguments.encryption.keys)

    async def _file_difference(self, item: Item, file: FileOrObject, there: Object, *, decoded: bool) -> Item | None:
        """Return `item` if a file and the object `there` differ, and None if they are the same.

        If only the time differs, return an item that sets it. If the file is `decoded`, it has another size and
        checksum than the object, so only the times are compared; with the option `checksum`, it then counts as
        different.
        """
        if not isinstance(file, Entry) or file.note or (file.size != there.size and not decoded):
            return item
        same_time = there.mtime is not None and int(file.mtime) == int(there.mtime)
        if same_time and not self._arguments.checksum:
            return None
        there = there if decoded else await self._completed(there)
        if decoded or there.crc32c is None or await _crc32c(file.path) != there.crc32c:
            return item
        if same_time or there.mtime is None:
            return None
        mtime = there.mtime if isinstance(item.source, Url) else file.mtime
        return replace(item, action=Action.TOUCH, size=0, object=there, mtime=mtime)


def _time(version: FileOrObject) -> float:
    """Return the modification time of a file, or of the file that an object was made from, in whole epoch seconds.

    For an object without it, return when the object was written.
    """
    seconds = version.mtime if version.mtime is not None else getattr(version, "updated", None)
    return float(int(seconds or 0))


def _is_plain(version: FileOrObject) -> bool:
    """Return whether the size of a version is that of its contents: it is no link or device, and not compressed."""
    return version.content_encoding != "gzip" if isinstance(version, Object) else not version.note


def _above(name: str, places: Mapping[str, _T]) -> _T | None:
    """Return the value in `places` of the uppermost folder above a name (not the name itself); None without one."""
    end = name.find("/") if places else -1
    while end >= 0:
        if (place := places.get(name[:end])) is not None:
            return place
        end = name.find("/", end + 1)
    return None


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
            one = await _following(left, one[0])
        elif one is None or other[0] < one[0]:
            yield other[0], None, other[1]
            other = await _following(right, other[0])
        else:
            yield one[0], one[1], other[1]
            one, other = await _following(left, one[0]), await _following(right, other[0])


async def _following(listing: AsyncIterator[tuple[str, _A]], before: str) -> tuple[str, _A] | None:
    entry = await anext(listing, None)
    if entry is not None and entry[0] <= before:
        raise TransferError(f"a listing is not in the order of names: {entry[0]!r} comes after {before!r}")
    return entry


async def _nothing() -> AsyncIterator[tuple[str, FileOrObject]]:
    nothing: tuple[tuple[str, FileOrObject], ...] = ()
    for one in nothing:
        yield one


async def _crc32c(path: str) -> str | None:
    """Return the CRC32C of a file in base64, None if it cannot be read. The copy that follows reports the error."""
    try:
        with FileSource(path) as file:
            return await file.crc32c()
    except TransferError:
        return None
