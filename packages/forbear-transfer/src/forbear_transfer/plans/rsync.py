"""The plan of an rsync: the differences between two folders, found by reading both listings in order of name.

The module `comparer` says what counts as a difference.
"""

import asyncio
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TypeVar

from forbear.adapters import replace
from forbear_transfer.errors import StrPath, TransferError
from forbear_transfer.files import FileIdentity
from forbear_transfer.items import Action, Item, ItemOptions, yield_each
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.comparer import Comparer, FileOrObject, RsyncRules, side_by_side
from forbear_transfer.plans.cp import LISTING_FAILURES
from forbear_transfer.plans.filters import LEFT_OUT, Filter, LinkRule, Links
from forbear_transfer.plans.targets import Clashes, CopyTarget, Nesting
from forbear_transfer.plans.trees import EMPTY_FOLDER, SUBFOLDER, Entry, read_batches, walk
from forbear_transfer.storage.client import Storage

_T = TypeVar("_T")

_AHEAD = 32
"""The number of comparisons that wait for a response at the same time."""


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
        links: LinkRule | None,
        state: StrPath | None = None,
    ) -> None:
        self.rules = rules
        self._storage = storage
        self._comparer = Comparer(storage, rules, each)
        self._names = names
        self._each = each
        self._source = source
        self._target = CopyTarget(target, folder=True)
        self._clashes = None if isinstance(target, Url) else Clashes(target)
        self._extras: list[tuple[str, int | FileIdentity | None]] = []
        self._blocked: list[Item] = []
        self._extra_files = Nesting()
        self._empty_folder: tuple[str, FileOrObject | None] | None = None
        self._rule: LinkRule | None = links
        self._state = state
        self._links: dict[str, Entry] = {}
        self._unseen: dict[str, Entry] = {}
        self._kept: Counter[str] = Counter()
        self._subfolders, self._first = 0, ""

    async def copies(self) -> AsyncGenerator[Item]:
        """Yield an item for each file or object of the source that the target lacks or has in another version.

        If only the modification time differs, the item sets it. A source that cannot be copied is a skipped or refused
        item. Names that `exclude` matches are left out. If a listing fails, yield a refused item and end. Yield one
        also if the source is empty, so that all would be deleted or the name is probably wrong.
        """
        empty = True
        ahead: deque[asyncio.Task[Item | None] | Item | None] = deque()
        try:
            async for name, source, target in side_by_side(self._list_sources(), self._list_targets()):
                if self._names.leaves_out(name):
                    continue
                if self._clashes is not None and name.endswith("/"):  # a folder here, or an object that stands for one
                    self._note_empty_folder()
                    self._empty_folder = (name, target) if source is None else None
                    continue
                if source is not None and self._empty_folder is not None and name.startswith(self._empty_folder[0]):
                    self._empty_folder = None  # this copy goes into it
                self._note_empty_folder()
                empty = empty and not _is_file(source)
                if source is None:
                    self._note_extra(name, target)
                    continue
                item = self._make_item(name, source, target)
                if self._is_blocked(item, name, target):
                    self._blocked.append(item)
                    continue
                if target is not None and self._comparer.unpacks(source, target):
                    ahead.append(asyncio.create_task(self._compare(item, source, target)))
                else:
                    ahead.append(await self._compare(item, source, target))
                while ahead and (len(ahead) > _AHEAD or not isinstance(ahead[0], asyncio.Task)):
                    if (item_or_none := await _take(ahead.popleft())) is not None:
                        yield item_or_none
            while ahead:
                if (item_or_none := await _take(ahead.popleft())) is not None:
                    yield item_or_none
        except LISTING_FAILURES as error:
            yield Item(self._source, self._target.at).refuse(error)
            return
        finally:
            for task in ahead:
                if isinstance(task, asyncio.Task):
                    task.cancel()
        self._note_empty_folder()
        for name, count in self._kept.items():
            yield self._report_kept(self._unseen[name], count)
        if self._subfolders:
            yield self._skip_subfolders()
        if empty and self._extras:
            text = f"there is nothing to copy in {self._source}, so everything in {self._target.at} would be deleted"
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
        for name, version in self._extras:
            if isinstance(at, Url):
                target: Url | str = Url(at.bucket, f"{at.prefix}{name}")
                yield Item(
                    target, target, Action.DELETE, size=0, generation=version if isinstance(version, int) else None
                )
            else:
                target = os.path.join(at, name.replace("/", os.sep))
                listed = version if isinstance(version, tuple) else None
                yield Item(target, target, Action.DELETE, size=0, root=at, listed=listed)

    async def list_blocked(self, *, allowed: bool) -> AsyncGenerator[Item]:
        """Yield the copies to places that `deletions` have made free; skipped if these were not `allowed`."""
        for item in self._blocked:
            yield item if allowed else item.skip(f"{item.target} is blocked by what only the target has")

    def _is_blocked(self, item: Item, name: str, target: FileOrObject | None) -> bool:
        """Return whether deletions must come before a copy: a local file is to become a folder, or a folder a file."""
        if self._clashes is None or not self.rules.delete or item.action is not Action.COPY:
            return False
        if self._extra_files.parent(name, keeps=False) is not None:
            return True
        return target is None and os.path.isdir(str(item.target)) and not os.path.islink(str(item.target))

    def _list_sources(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._source, Url):
            return self._list_objects(self._source, folders=isinstance(self._target.at, Url) or self.rules.delete)
        return self._list_files(self._source, follow=True)

    def _list_targets(self) -> AsyncIterator[tuple[str, FileOrObject]]:
        if isinstance(self._target.at, Url):
            return self._list_objects(self._target.at, folders=isinstance(self._source, Url))
        if os.path.lexists(self._target.at):
            return self._list_files(self._target.at, follow=False)  # nothing is deleted where a link leads
        return yield_each(())

    async def _list_objects(self, folder: Url, *, folders: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        """Yield objects by their names below the folder; those that stand for folders only with `folders`."""
        start = folder.prefix
        delimiter = None if self.rules.recursive else "/"
        async for listed in self._storage.objects(folder.bucket, start, delimiter=delimiter):
            if isinstance(listed, Url) and folder is self._source:
                self._note_subfolder(listed.name[len(start) :])
            if isinstance(listed, Object) and listed.name != start and (folders or not listed.name.endswith("/")):
                yield listed.name[len(start) :], listed

    async def _list_files(self, folder: str, *, follow: bool) -> AsyncIterator[tuple[str, FileOrObject]]:
        empty = self.rules.delete and not follow
        links, recursive = Links.of(self._rule, self._state), self.rules.recursive
        async for entry in read_batches(walk(folder, follow=follow, recursive=recursive, empty=empty, links=links)):
            if entry.problem:
                raise TransferError(
                    f"cannot read the folder {entry.path}: {entry.problem}",
                    "check the path, and whether it may be read",
                )
            if entry.note == SUBFOLDER:
                if follow:
                    self._note_subfolder(f"{entry.name}/")
                continue
            if entry.note and entry.note != EMPTY_FOLDER:
                (self._unseen if follow else self._links)[entry.name] = entry
            yield entry.name, entry

    def _note_subfolder(self, name: str) -> None:
        if not any(pattern.match(name) for pattern in self._names.exclude):
            self._subfolders, self._first = self._subfolders + 1, self._first or name

    def _skip_subfolders(self) -> Item:
        many = self._subfolders > 1
        which = f"{self._subfolders} subfolders, such as {self._first}" if many else f"subfolder {self._first}"
        return Item(self._source, self._target.at, size=0).skip(f"its {which}: include them with `recursive`")

    def _note_empty_folder(self) -> None:
        if self._empty_folder is not None:
            self._note_extra(*self._empty_folder)
            self._empty_folder = None

    def _note_extra(self, name: str, target: FileOrObject | None) -> None:
        """Record that `name`, which the source lacks, must be deleted, if the option `delete` is set.

        A local `target` that is a device, an unfinished download, or a link to no file is kept. A name below a source
        path that is a dangling link, a pipe or the like is not deleted either, but counted.
        """
        if not self.rules.delete or (isinstance(target, Entry) and target.note not in ("", EMPTY_FOLDER)):
            return
        unseen = _find_above(name, self._unseen)
        if unseen is not None:
            self._kept[unseen.name] += 1
        else:
            version = target.generation if isinstance(target, Object) else None if target is None else target.identity
            self._extras.append((name, version))
            if self._clashes is not None and not name.endswith("/"):
                self._extra_files.parent(name)

    def _report_kept(self, unseen: Entry, count: int) -> Item:
        """Return the item for `count` deletions left out below a pipe or link: skipped if the user leaves links out."""
        below = self._target.with_target(Item(unseen.path, self._target.at, size=0), unseen.name)
        if unseen.note == LEFT_OUT:
            text = f"it is {unseen.note}, which is left out; {count} at the target, below {below.target}, are kept"
            return replace(below.skip(text), hint="delete these yourself if nobody needs them")
        text = f"it is {unseen.note} now; {count} at the target, below {below.target}, would be deleted"
        return replace(below.refuse(text), hint="restore what was there, or exclude it, or delete these yourself")

    def _make_item(self, name: str, source: FileOrObject, target: FileOrObject | None) -> Item:
        if isinstance(source, Entry):
            item = Item(source.path, self._target.at, size=source.size)
            if source.note:
                return item.skip(source.note)
        else:
            item = Item(Url(source.bucket, source.name), self._target.at, size=source.size, object=source)
        item = self._each.apply_to(self._target.with_target(item, name))
        if self._clashes is not None:
            item = self._clashes.check(item, name)
        link = self._find_link(name, target)
        if link is not None:
            return item.refuse(f"{link} is a link or a device, which is not written through")
        if isinstance(item.target, Url):
            item.generation = target.generation if isinstance(target, Object) else 0
        else:
            item.listed = target.identity if isinstance(target, Entry) else ()
        return item

    async def _compare(self, item: Item, source: FileOrObject, target: FileOrObject | None) -> Item | None:
        if item.action is not Action.COPY or target is None:
            return item
        if self.rules.update and _find_time(target) > _find_time(source):
            return None
        return await self._comparer.find_difference(item, source, target)

    def _find_link(self, name: str, target: FileOrObject | None) -> str | None:
        """Return the path of a link or device at the target through which a copy would write, or None."""
        if isinstance(target, Entry) and os.path.islink(target.path):
            return target.path
        link = _find_above(name, self._links)
        return None if link is None else link.path


def _is_file(version: FileOrObject | None) -> bool:
    """Return whether a source is there and can be copied: a link that is left out, or a pipe, copies nothing."""
    return version is not None and not (isinstance(version, Entry) and version.note)


def _find_time(version: FileOrObject) -> float:
    """Return the modification time in whole epoch seconds; of an object without it, when it was written."""
    seconds = version.mtime if version.mtime is not None else getattr(version, "updated", None)
    return float(int(seconds or 0))


def _find_above(name: str, places: Mapping[str, _T]) -> _T | None:
    """Return the value in `places` of the uppermost folder above a name (not the name itself); None without one."""
    end = name.find("/") if places else -1
    while end >= 0:
        if (place := places.get(name[:end])) is not None:
            return place
        end = name.find("/", end + 1)
    return None


async def _take(ready: "asyncio.Task[Item | None] | Item | None") -> Item | None:
    return await ready if isinstance(ready, asyncio.Task) else ready
