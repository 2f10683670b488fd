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
from dataclasses import dataclass, replace
from typing import TypeVar

from forbear_transfer.errors import TransferError
from forbear_transfer.items import Action, Item, ItemOptions
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.cp import LISTING_FAILURES
from forbear_transfer.plans.filters import Filter
from forbear_transfer.plans.side_by_side import side_by_side
from forbear_transfer.plans.targets import Clashes, CopyTarget
from forbear_transfer.plans.trees import Entry, read_batches, walk
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.sources import FileSource

FileOrObject = Entry | Object

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncRules:
    """The options of rsync that say what is compared, copied and deleted; the docstring of `rsync` describes them."""

    recursive: bool = False
    delete: bool = False
    checksum: bool = False
    size_only: bool = False
    update: bool = False
    max_delete: int | None = None


class RsyncPlan:
    """The items of one rsync. The caller takes `copies` first and then, if all of them succeeded, `deletions`."""

    def __init__(
        self,
        storage: Storage,
        *,
        source: Url | str,
        target: Url | str,
        rules: RsyncRules,
        names: Filter,
        each: ItemOptions,
    ) -> None:
        self.rules = rules
        self._storage = storage
        self._names = names
        self._each = each
        self._source = source
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
            async for name, source, target in side_by_side(self._list_sources(), self._list_targets()):
                empty = empty and source is None
                if self._names.leaves_out(name):
                    continue
                if source is None:
                    self._note_extra(name, target)
                    continue
                item = await self._compare(name, source, target)
                if item is not None:
                    yield item
        except LISTING_FAILURES as error:
            yield Item(self._source, self._target.at).refuse(error)
            return
        for name, count in self._kept.items():
            yield self._refuse_deletions(self._unseen[name], count)
        if empty and self._extras:
            text = f"there is nothing in {self._source}, so everything in {self._target.at} would be deleted"
            cure = "check the name of the source, or delete everything by other means"
            yield Item(self._source, self._target.at).refuse(TransferError(text, cure))
        elif empty and isinstance(self._source, Url) and self._source.name:
            text = f"there is nothing below {self._source}"
            yield Item(self._source, self._target.at).refuse(TransferError(text, "check the name of the source"))

    async def deletions(self, *, allowed: bool) -> AsyncGenerator[Item]:
        """Yield an item that deletes the target's version of each name that `copies` has found only there.

        Nothing comes without the option `delete`. If deletions are not `allowed`, as something has failed before, or
        are more than `max_delete`, one item that is skipped or refused says how many there are.
        """
        count, most, at = len(self._extras), self.rules.max_delete, self._target.at
        if count and not allowed:
            note = f"nothing is deleted before all else has gone well; there are {count} to delete"
            yield Item(at, at, size=0).skip(note)
            return
        if most is not None and count > most:
            text = f"{count} would be deleted, more than {most}, so nothing is deleted"
            cure = "look at what would be deleted (`dry_run`), then raise `max_delete`"
            yield Item(at, at, size=0).refuse(TransferError(text, cure))
            return
        for name, generation in self._extras:
            if isinstance(self._target.at, Url):
                target: Url | str = Url(self._target.at.bucket, f"{self._target.at.prefix}{name}")
                yield Item(target, target, Action.DELETE, size=0, generation=generation)
            else:
                target = os.path.join(self._target.at, name.replace("/", os.sep))
                yield Item(target, target, Action.DELETE, size=0, root=self._target.at)

    def _list_sources(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._source, Url):
            return self._list_objects(self._source, folders=isinstance(self._target.at, Url))
        return self._list_files(self._source, follow=True)

    def _list_targets(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._target.at, Url):
            return self._list_objects(self._target.at, folders=isinstance(self._source, Url))
        if os.path.lexists(self._target.at):
            return self._list_files(self._target.at, follow=False)  # nothing is deleted where a link leads
        return _list_nothing()

    async def _list_objects(self, folder: Url, *, folders: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        """Yield the objects of a folder by name, each with its name below the folder.

        Objects that stand for folders (their names end with a slash) come only if `folders` is set. Without
        `recursive`, only the objects directly in the folder come.
        """
        start = folder.prefix
        delimiter = None if self.rules.recursive else "/"
        async for listed in self._storage.objects(folder.bucket, start, delimiter=delimiter):
            if isinstance(listed, Object) and listed.name != start and (folders or not listed.name.endswith("/")):
                yield listed.name[len(start) :], listed

    async def _list_files(self, folder: str, *, follow: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        async for entry in read_batches(walk(folder, follow=follow, recursive=self.rules.recursive)):
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
        if not self.rules.delete or (isinstance(target, Entry) and target.note):
            return
        unseen = _find_above(name, self._unseen)
        if unseen is not None:
            self._kept[unseen.name] += 1
        else:
            self._extras.append((name, target.generation if isinstance(target, Object) else None))

    def _refuse_deletions(self, unseen: Entry, count: int) -> Item:
        """Return the refused item that reports deletions left out below a source path that is no folder any more.

        Such a path is a link to nothing, a pipe or the like. `count` is the number of these deletions.
        """
        below = self._target.with_target(Item(unseen.path, self._target.at), unseen.name)
        text = f"it is {unseen.note} now; {count} at the target, below {below.target}, would be deleted"
        return replace(below.refuse(text), hint="restore what was there, or exclude it, or delete these yourself")

    async def _compare(self, name: str, source: FileOrObject, target: FileOrObject | None) -> Item | None:
        if isinstance(source, Entry):
            item = Item(source.path, self._target.at, size=source.size)
            if source.note:
                return item.skip(source.note)
        else:
            item = Item(Url(source.bucket, source.name), self._target.at, size=source.size, object=source)
        item = self._each.apply_to(self._target.with_target(item, name))
        if self._clashes is not None:
            item = self._clashes.checked(item, name)
        if isinstance(item.target, Url):
            item = replace(item, generation=target.generation if isinstance(target, Object) else 0)
        if item.action is Action.COPY and target is not None:
            if self.rules.update and _find_time(target) > _find_time(source):
                return None
            same = await self._find_difference(item, source, target)
            if same is None:
                return None
            item = same
        link = self._find_link(name, target)
        return item if link is None else item.refuse(f"{link} is a link or a device, which is not written through")

    def _find_link(self, name: str, target: FileOrObject | None) -> str | None:
        """Return the path of a link or device at the target through which a copy would write, None if there is none.

        That is a symbolic link with this name, or anything but a folder or plain file that the name lies below.
        """
        if isinstance(target, Entry) and os.path.islink(target.path):
            return target.path
        link = _find_above(name, self._links)
        return None if link is None else link.path

    async def _find_difference(self, item: Item, source: FileOrObject, target: FileOrObject) -> Item | None:
        """Return `item`, or one that only sets the modification time, or None if source and target are the same."""
        if self.rules.size_only and source.size == target.size and _is_plain(source) and _is_plain(target):
            return None
        if isinstance(source, Object) and isinstance(target, Object):
            if source.size == target.size:
                source, target = await self._complete(source), await self._complete(target)
            same = source.size == target.size and source.crc32c is not None and source.crc32c == target.crc32c
            return None if same else item
        if isinstance(source, Object):
            decoded = source.content_encoding == "gzip" and not self._each.packed
            return await self._compare_file(item, target, source, decoded=decoded)
        if not isinstance(target, Object):
            return item
        decoded = target.content_encoding == "gzip" and self._each.gzip
        return await self._compare_file(item, source, target, decoded=decoded)

    async def _complete(self, listed: Object) -> Object:
        return await self._storage.completed(listed, self._each.encryption.keys)

    async def _compare_file(self, item: Item, file: FileOrObject, there: Object, *, decoded: bool) -> Item | None:
        """Return `item` if a file and the object `there` differ, and None if they are the same.

        If only the time differs, return an item that sets it. If the file is `decoded`, it has another size and
        checksum than the object, so only the times are compared; with the option `checksum`, it then counts as
        different.
        """
        if not isinstance(file, Entry) or file.note or (file.size != there.size and not decoded):
            return item
        same_time = there.mtime is not None and int(file.mtime) == int(there.mtime)
        if same_time and not self.rules.checksum:
            return None
        there = there if decoded else await self._complete(there)
        if decoded or there.crc32c is None or await _hash_file(file.path) != there.crc32c:
            return item
        if same_time or there.mtime is None:
            return None
        mtime = there.mtime if isinstance(item.source, Url) else file.mtime
        return replace(item, action=Action.TOUCH, size=0, object=there, mtime=mtime)


def _find_time(version: FileOrObject) -> float:
    """Return the modification time of a file, or of the file that an object was made from, in whole epoch seconds.

    For an object without it, return when the object was written.
    """
    seconds = version.mtime if version.mtime is not None else getattr(version, "updated", None)
    return float(int(seconds or 0))


def _is_plain(version: FileOrObject) -> bool:
    """Return whether the size of a version is that of its contents: it is no link or device, and not compressed."""
    return version.content_encoding != "gzip" if isinstance(version, Object) else not version.note


def _find_above(name: str, places: Mapping[str, _T]) -> _T | None:
    """Return the value in `places` of the uppermost folder above a name (not the name itself); None without one."""
    end = name.find("/") if places else -1
    while end >= 0:
        if (place := places.get(name[:end])) is not None:
            return place
        end = name.find("/", end + 1)
    return None


async def _list_nothing() -> AsyncIterator[tuple[str, FileOrObject]]:
    for one in list[tuple[str, FileOrObject]]():
        yield one


async def _hash_file(path: str) -> str | None:
    """Return the CRC32C of a file in base64, None if it cannot be read. The copy that follows reports the error."""
    try:
        with FileSource(path) as file:
            return await file.crc32c()
    except TransferError:
        return None
