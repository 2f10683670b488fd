"""The plan of an rsync: what differs between two folders, found by going through both of them by name, side by side.

Objects are the same if their sizes and CRC32Cs are. A local file has the contents of an object if their sizes and their
modification times in whole seconds agree; where the times differ, or `checksum` is set, the file is read for its
CRC32C. Contents that are the same under another time get that time, and are not sent again. The plan writes nothing.
"""

import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import TypeVar

from forbear.transfer.errors import TransferError
from forbear.transfer.items import Action, Item
from forbear.transfer.objects import Object, Url, is_cloud
from forbear.transfer.plans.arguments import RsyncArguments
from forbear.transfer.plans.cp import LISTING_FAILURES
from forbear.transfer.plans.targets import Clashes, Goal
from forbear.transfer.plans.trees import Entry, batched, walk
from forbear.transfer.storage.client import Storage
from forbear.transfer.uploads.sources import File

Thing = Entry | Object
"""A file or an object."""

_A = TypeVar("_A")
_B = TypeVar("_B")
_T = TypeVar("_T")


class Sync:
    """What one rsync has to do: first `copies`, then, if all of them went well, `deletions`."""

    def __init__(self, storage: Storage, asked: RsyncArguments) -> None:
        self._storage = storage
        self._asked = asked
        self._source: Url | str = Url.parse(asked.source) if is_cloud(asked.source) else asked.source
        target: Url | str = Url.parse(asked.target) if is_cloud(asked.target) else asked.target
        self._goal = Goal(target, folder=True)
        self._clashes = None if isinstance(target, Url) else Clashes(target)
        self._extras: list[tuple[str, int | None]] = []
        self._links: dict[str, Entry] = {}
        self._unseen: dict[str, Entry] = {}
        self._kept: Counter[str] = Counter()

    async def copies(self) -> AsyncGenerator[Item]:
        """What the target lacks, or has otherwise; what cannot be read comes as refused items."""
        empty = True
        try:
            async for name, source, target in side_by_side(self._sources(), self._targets()):
                empty = empty and source is None
                if self._asked.leaves_out(name):
                    continue
                if source is None:
                    self._note_extra(name, target)
                    continue
                item = await self._compared(name, source, target)
                if item is not None:
                    yield item
        except LISTING_FAILURES as error:
            yield Item(self._source, self._goal.at).refused(error)
            return
        for name, count in self._kept.items():
            yield self._refused_deletions(self._unseen[name], count)
        if empty and self._extras:
            text = f"there is nothing in {self._source}, and so all in {self._goal.at} would be deleted"
            cure = "check the name of the source, or delete it all by other means"
            yield Item(self._source, self._goal.at).refused(TransferError(text, cure))
        elif empty and isinstance(self._source, Url) and self._source.name:
            text = f"there is nothing below {self._source}"
            yield Item(self._source, self._goal.at).refused(TransferError(text, "check the name of the source"))

    @property
    def extras(self) -> int:
        """How many deletions there are."""
        return len(self._extras)

    async def deletions(self) -> AsyncGenerator[Item]:
        """What the target has and the source has not."""
        for name, generation in self._extras:
            if isinstance(self._goal.at, Url):
                target: Url | str = Url(self._goal.at.bucket, f"{self._goal.at.prefix}{name}")
                yield Item(target, target, Action.DELETE, size=0, generation=generation)
            else:
                target = os.path.join(self._goal.at, name.replace("/", os.sep))
                yield Item(target, target, Action.DELETE, size=0, root=self._goal.at)

    def _sources(self) -> AsyncIterator[tuple[str, Thing]]:
        if isinstance(self._source, Url):
            return self._objects(self._source, folders=isinstance(self._goal.at, Url))
        return self._files(self._source, follow=True)

    def _targets(self) -> AsyncIterator[tuple[str, Thing]]:
        if isinstance(self._goal.at, Url):
            return self._objects(self._goal.at, folders=isinstance(self._source, Url))
        if os.path.lexists(self._goal.at):
            return self._files(self._goal.at, follow=False)  # nothing is deleted where a link leads
        return _nothing()

    async def _objects(self, folder: Url, *, folders: bool) -> AsyncIterator[tuple[str, Thing]]:
        """The objects of a folder; those that stand for folders themselves only where `folders`."""
        start = folder.prefix
        delimiter = None if self._asked.recursive else "/"
        async for found in self._storage.objects(folder.bucket, start, delimiter=delimiter):
            if isinstance(found, Object) and found.name != start and (folders or not found.name.endswith("/")):
                yield found.name[len(start) :], found

    async def _files(self, folder: str, *, follow: bool) -> AsyncIterator[tuple[str, Thing]]:
        async for entry in batched(walk(folder, follow=follow, recursive=self._asked.recursive)):
            if entry.problem:
                raise TransferError(
                    f"cannot read the folder {entry.path}: {entry.problem}",
                    "check the path, and whether it may be read",
                )
            if entry.note:
                (self._unseen if follow else self._links)[entry.name] = entry
            yield entry.name, entry

    def _note_extra(self, name: str, target: Thing | None) -> None:
        """Note a deletion, except below a place in the source that could not be looked into."""
        if not self._asked.delete or (isinstance(target, Entry) and target.note):
            return
        unseen = _above(name, self._unseen)
        if unseen is not None:
            self._kept[unseen.name] += 1
        else:
            self._extras.append((name, target.generation if isinstance(target, Object) else None))

    def _refused_deletions(self, unseen: Entry, count: int) -> Item:
        """Return the failure that keeps what the target has below a link to nothing, a pipe or the like."""
        below = self._goal.take(Item(unseen.path, self._goal.at), unseen.name)
        text = f"it is {unseen.note} now; {count} at the target, below {below.target}, would be deleted"
        return replace(below.refused(text), hint="bring back what was there, or exclude it, or delete these yourself")

    async def _compared(self, name: str, source: Thing, target: Thing | None) -> Item | None:
        if isinstance(source, Entry):
            item = Item(source.path, self._goal.at, size=source.size)
            if source.note:
                return item.skipped(source.note)
        else:
            item = Item(Url(source.bucket, source.name), self._goal.at, size=source.size, found=source)
        item = self._goal.take(item, name)
        if self._clashes is not None:
            item = self._clashes.checked(item, name)
        if isinstance(item.target, Url):
            item = replace(item, generation=target.generation if isinstance(target, Object) else 0)
        if item.action is Action.COPY and target is not None:
            same = await self._difference(item, source, target)
            if same is None:
                return None
            item = same
        link = self._link(name, target)
        return item if link is None else item.refused(f"{link} is a link or a device, which is not written through")

    def _link(self, name: str, target: Thing | None) -> str | None:
        """Return the link at the target that a copy would write through, to a file that has another name, too."""
        if isinstance(target, Entry) and os.path.islink(target.path):
            return target.path
        link = _above(name, self._links)
        return None if link is None else link.path

    async def _difference(self, item: Item, source: Thing, target: Thing) -> Item | None:
        """Return the item that makes the target like the source, or None where they are the same."""
        if isinstance(source, Object) and isinstance(target, Object):
            same = source.size == target.size and source.crc32c is not None and source.crc32c == target.crc32c
            return None if same else item
        if isinstance(source, Object):
            return await self._file_difference(item, target, source, decoded=source.content_encoding == "gzip")
        return await self._file_difference(item, source, target, decoded=False) if isinstance(target, Object) else item

    async def _file_difference(self, item: Item, file: Thing, there: Object, *, decoded: bool) -> Item | None:
        """Compare a file with an object; a `decoded` one has another size and checksum than its file."""
        if not isinstance(file, Entry) or file.note or (file.size != there.size and not decoded):
            return item
        same_time = there.mtime is not None and int(file.mtime) == int(there.mtime)
        if same_time and not self._asked.checksum:
            return None
        if decoded or there.crc32c is None or await _crc32c(file.path) != there.crc32c:
            return item
        if same_time or there.mtime is None:
            return None
        mtime = there.mtime if isinstance(item.source, Url) else file.mtime
        return replace(item, action=Action.TOUCH, size=0, found=there, mtime=mtime)


def _above(name: str, places: Mapping[str, _T]) -> _T | None:
    """Return the place that a name lies below."""
    end = name.find("/") if places else -1
    while end >= 0:
        if (place := places.get(name[:end])) is not None:
            return place
        end = name.find("/", end + 1)
    return None


async def side_by_side(
    left: AsyncIterator[tuple[str, _A]], right: AsyncIterator[tuple[str, _B]]
) -> AsyncGenerator[tuple[str, _A | None, _B | None]]:
    """Go through two listings by name; each name comes once, with what either side has by it.

    TransferError where one is not in the order of names: what seems missing might come later.
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
    found = await anext(listing, None)
    if found is not None and found[0] <= before:
        raise TransferError(f"a listing is not in the order of names: {found[0]!r} comes after {before!r}")
    return found


async def _nothing() -> AsyncIterator[tuple[str, Thing]]:
    nothing: tuple[tuple[str, Thing], ...] = ()
    for one in nothing:
        yield one


async def _crc32c(path: str) -> str | None:
    """The checksum of a file, None where it cannot be read: what copies it will say why."""
    try:
        with File(path) as file:
            return await file.crc32c()
    except TransferError:
        return None
