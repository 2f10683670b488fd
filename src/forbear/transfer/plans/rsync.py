"""The plan of an rsync: what differs between two folders, found by going through both of them by name, side by side.

Files are the same by their size and, where both sides have one, their CRC32C; a local file, whose CRC32C takes reading
it, by its modification time in whole seconds where the object has one, too, unless `checksum` is asked for. It lists,
and reads local files for their checksums, but writes nothing.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import TypeVar

from forbear.transfer.cloud.address import Url, is_cloud
from forbear.transfer.cloud.objects import Object
from forbear.transfer.cloud.storage import Storage
from forbear.transfer.errors import TransferError
from forbear.transfer.items import Action, Item
from forbear.transfer.plans.arguments import RsyncArguments
from forbear.transfer.plans.clashes import Clashes
from forbear.transfer.plans.cp import LISTING_FAILURES
from forbear.transfer.plans.goal import Goal
from forbear.transfer.plans.trees import Entry, batched, walk
from forbear.transfer.uploads.sources import File

Thing = Entry | Object
"""A file or an object."""

_A = TypeVar("_A")
_B = TypeVar("_B")


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
        self._links: dict[str, str] = {}

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
            if entry.note and not follow:
                self._links[f"{entry.name}/"] = entry.path
            yield entry.name, entry

    def _note_extra(self, name: str, target: Thing | None) -> None:
        """Note what only the target has."""
        if self._asked.delete and isinstance(target, Object):
            self._extras.append((name, target.generation))
        elif self._asked.delete and isinstance(target, Entry) and not target.note:
            self._extras.append((name, None))

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
        if item.action is Action.COPY and target is not None and await self._is_same(source, target):
            return None
        link = self._link(name, target)
        return item if link is None else item.refused(f"{link} is a link or a device, which is not written through")

    def _link(self, name: str, target: Thing | None) -> str | None:
        """The link at the target that a copy would write through, to a file that has another name, too."""
        if isinstance(target, Entry) and os.path.islink(target.path):
            return target.path
        return next((path for above, path in self._links.items() if name.startswith(above)), None)

    async def _is_same(self, source: Thing, target: Thing) -> bool:
        if isinstance(source, Object) and isinstance(target, Object):
            return source.size == target.size and source.crc32c is not None and source.crc32c == target.crc32c
        if isinstance(source, Object):
            return await self._is_file_of(target, source, decoded=source.content_encoding == "gzip")
        return isinstance(target, Object) and await self._is_file_of(source, target, decoded=False)

    async def _is_file_of(self, file: Thing, item: Object, *, decoded: bool) -> bool:
        """Whether a file has the contents of an object; a `decoded` one has another size and checksum."""
        if not isinstance(file, Entry) or file.note or (file.size != item.size and not decoded):
            return False
        if item.mtime is not None and not self._asked.checksum:
            return int(file.mtime) == int(item.mtime)
        return not decoded and item.crc32c is not None and await _crc32c(file.path) == item.crc32c


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
