"""The plan of a copy: which item goes where, by the rules of cp. It lists, but neither reads nor writes any data.

A file goes into the target where that is a folder, and to the very name of the target otherwise. Folders are: a
bucket, an address that ends with a slash, a folder on disk, and for `recursive` or several sources also a name in the
cloud with objects below it. A pattern counts as several sources. A folder (`recursive`) keeps its name below a target
that is a folder already; otherwise its contents go below the target. What `**` matches goes right into the target.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH120, PTH121, PTH206 - paths as they were given, dots and all

import os
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

import aiohttp

from forbear.transfer.address import Url, is_cloud
from forbear.transfer.errors import TransferError, UnsafeName
from forbear.transfer.items import STREAM, Action, Item
from forbear.transfer.matches import Match, is_folder, matches
from forbear.transfer.names import Nesting, object_name, relative_path
from forbear.transfer.objects import Object
from forbear.transfer.storage import Storage
from forbear.transfer.trees import batched, walk
from forbear.transfer.wildcards import is_wild


@dataclass(frozen=True, slots=True)
class Place:
    """Where copies go: `at` is a Url, a path, or "-"; `folder` is whether they go below it."""

    at: Url | str
    folder: bool

    def below(self, name: str) -> "Place":
        """The folder of that name in this folder; the folder itself if it is empty."""
        if not name:
            return Place(self.at, folder=True)
        if isinstance(self.at, Url):
            return Place(Url(self.at.bucket, f"{_prefix(self.at)}{name}/"), folder=True)
        return Place(os.path.join(self.at, relative_path(name)), folder=True)


@dataclass(frozen=True, slots=True)
class Copies:
    """A copy as it was asked for; ValueError where it makes no sense."""

    sources: tuple[str, ...]
    target: str
    recursive: bool = False
    no_clobber: bool = False
    exclude: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if not self.sources or not all(self.sources):
            raise ValueError("`sources` must name at least one file, folder or object, and none may be empty")
        if not self.target:
            raise ValueError("`target` must name a file, a folder or an address in the cloud, got nothing")
        here = [source for source in self.sources if not is_cloud(source)]
        if here and not is_cloud(self.target):
            raise ValueError(f"either the source or the target must begin with gs://: copy {here[0]} with cp")
        for source in self.sources:
            if is_cloud(source):
                Url.parse(source)
        if is_cloud(self.target) and Url.parse(self.target).generation is not None:
            raise ValueError(f"`target` cannot name a generation, for each write makes a new one: {self.target}")
        if STREAM in self.sources and (len(self.sources) > 1 or _names_folder(self.target)):
            raise ValueError("standard input (-) must be the only source, and the target must name the object")
        if self.target == STREAM and (self.several or self.recursive):
            raise ValueError("standard output (-) takes one object")

    @property
    def several(self) -> bool:
        """Whether there may be more than one source."""
        return len(self.sources) > 1 or any(is_wild(source) for source in self.sources if not _exists(source))

    @property
    def depends(self) -> bool:
        """Whether what is at the target decides about names, so that a second run might choose other ones."""
        return self.recursive and not self.several and not _names_folder(self.target)


async def look(storage: Storage, asked: Copies) -> Place:
    """See what is at the target."""
    if is_cloud(asked.target):
        url = Url.parse(asked.target)
        folder = _names_folder(asked.target)
        if not folder and (asked.several or asked.recursive):
            folder = await is_folder(storage, url)
        place = Place(url, folder)
    else:
        place = Place(asked.target, asked.target != STREAM and _names_folder(asked.target))
    if asked.several and not place.folder:
        raise ValueError(f"`target` must be a folder for several sources: make it {asked.target.rstrip('/')}/")
    return place


async def plan_cp(storage: Storage, asked: Copies, place: Place) -> AsyncGenerator[Item]:
    """The items, while they are found; ValueError, before the first, where two would have the same target."""
    if asked.sources == (STREAM,):
        yield Item(STREAM, place.at, no_clobber=asked.no_clobber)
        return
    sure = len(asked.sources) == 1 and not _may_repeat(asked.sources[0])
    found = _found(storage, asked)
    if not sure:
        found = _all_different([match async for match in found], place)
    async for match in found:
        async for item in _items(storage, asked, match, place):
            yield replace(item, no_clobber=True) if asked.no_clobber else item


async def _found(storage: Storage, asked: Copies) -> AsyncGenerator[Match]:
    for source in asked.sources:
        try:
            async for match in matches(storage, source, recursive=asked.recursive):
                yield match
        except (TransferError, aiohttp.ClientError, OSError) as error:
            hint = error.hint if isinstance(error, TransferError) else None
            yield Match(source, source, problem=str(error) or type(error).__name__, hint=hint)


async def _all_different(found: list[Match], place: Place) -> AsyncGenerator[Match]:
    here = not isinstance(place.at, Url)
    fold = here and is_case_blind(str(place.at))
    seen: dict[tuple[str, bool], Match] = {}
    for match in found:
        if match.problem:
            continue
        if not match.name:
            raise ValueError(f"the contents of {match.source} must be copied by themselves, without other sources")
        key = (match.name.casefold() if fold else match.name, match.folder and not here)
        first = seen.setdefault(key, match)
        if first is not match:
            raise ValueError(
                f"two sources would have the same target {match.name!r}: {first.source} and {match.source}; copy them "
                "one by one, or the folders that they are in with -r"
            )
    for match in found:
        yield match


async def _items(storage: Storage, asked: Copies, match: Match, place: Place) -> AsyncGenerator[Item]:
    if match.problem:
        action = Action.SKIP if match.left_out else Action.REFUSE
        yield Item(match.source, place.at, action, note=match.problem, hint=match.hint)
    elif not match.folder:
        if asked.exclude is None or not asked.exclude.match(match.name):
            yield _one(match, place)
    else:
        try:
            home = place.below(match.name) if place.folder else Place(place.at, folder=True)
            contents = (
                _cloud_folder(storage, match.source, home)
                if isinstance(match.source, Url)
                else _local_folder(match.source, home)
            )
            async for name, item in contents:
                if asked.exclude is None or not asked.exclude.match(name):
                    yield item
        except (TransferError, aiohttp.ClientError, OSError) as error:
            hint = error.hint if isinstance(error, TransferError) else None
            yield Item(match.source, place.at, Action.REFUSE, note=str(error) or type(error).__name__, hint=hint)


def _one(match: Match, place: Place) -> Item:
    item = Item(match.source, place.at, size=match.size, found=match.found)
    return item if not place.folder else _into(item, place, match.name)


async def _local_folder(folder: str, home: Place) -> AsyncGenerator[tuple[str, Item]]:
    async for entry in batched(walk(folder)):
        item = Item(entry.path, home.at, size=entry.size)
        if entry.note:
            item = replace(item, action=Action.SKIP, note=entry.note)
        elif entry.problem:
            item = replace(item, action=Action.REFUSE, note=entry.problem)
        else:
            item = _into(item, home, entry.name)
        yield entry.name, item


async def _cloud_folder(storage: Storage, folder: Url, home: Place) -> AsyncGenerator[tuple[str, Item]]:
    here = not isinstance(home.at, Url)
    prefix = _prefix(folder)
    nesting = Nesting()
    doubles = Doubles(str(home.at)) if here else None
    async for found in storage.objects(folder.bucket, prefix):
        if not isinstance(found, Object):
            continue
        name = found.name[len(prefix) :]
        item = Item(Url(found.bucket, found.name), home.at, size=found.size, found=found)
        if here and (not name or name.endswith("/")):
            item = replace(item, action=Action.SKIP, note="it stands for a folder")
        else:
            item = _into(item, home, name)
        if here and item.action is Action.COPY:
            parent = nesting.parent(name)
            other = None if doubles is None else doubles.other(name)
            if parent is not None:
                item = _refused(item, f"{parent!r} is an object, and so its file cannot be a folder as well")
            elif other is not None:
                item = _refused(item, f"here it has the same name as {other!r}, for capitals do not count")
        yield name, item


def _into(item: Item, home: Place, name: str) -> Item:
    """The item with a target of that name below `home`."""
    try:
        if isinstance(home.at, Url):
            key = f"{_prefix(home.at)}{name}"
            target: Url | str = Url(home.at.bucket, key if isinstance(item.source, Url) else object_name(key))
            if target == item.source:
                return _refused(replace(item, target=target), "source and target are the same")
            return replace(item, target=target)
        path = os.path.join(home.at, relative_path(name))
        return replace(item, target=path, root=home.at)
    except UnsafeName as error:
        return replace(_refused(item, str(error)), hint=error.hint)


def _refused(item: Item, note: str) -> Item:
    return replace(item, action=Action.REFUSE, note=note)


class Doubles:
    """Notices names that are one on a disk that takes capitals for small letters."""

    def __init__(self, folder: str) -> None:
        self._seen: dict[str, str] | None = {} if is_case_blind(folder) else None

    def other(self, name: str) -> str | None:
        """See a name; returns an earlier one that is the same on disk."""
        if self._seen is None:
            return None
        first = self._seen.setdefault(name.casefold(), name)
        return None if first == name else first


def is_case_blind(folder: str) -> bool:
    """Whether the disk that a folder is on, or will be, takes capitals for small letters."""
    path = os.path.abspath(folder)
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    other = path.swapcase()
    if other == path:
        return sys.platform in {"win32", "darwin"}
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _names_folder(target: str) -> bool:
    if is_cloud(target):
        name = Url.parse(target).name
        return not name or name.endswith("/")
    return target.endswith(("/", os.sep)) or os.path.isdir(target)


def _prefix(url: Url) -> str:
    return url.name if not url.name or url.name.endswith("/") else f"{url.name}/"


def _exists(source: str) -> bool:
    return not is_cloud(source) and os.path.lexists(source)


def _may_repeat(source: str) -> bool:
    """Whether two matches may have the same last part: for a pattern that reaches over folders."""
    parts = Url.parse(source).name.split("/") if is_cloud(source) else source.split(os.sep)
    return any(is_wild(part) for part in parts[:-1]) or "**" in parts[-1]


def copies(
    sources: str | Sequence[str], target: str, *, recursive: bool, no_clobber: bool, exclude: str | None
) -> Copies:
    """What was asked for; ValueError where it makes no sense."""
    try:
        pattern = None if exclude is None else re.compile(exclude)
    except re.error as error:
        raise ValueError(f"`exclude` must be a regular expression, got {exclude!r}: {error}") from error
    listed = (sources,) if isinstance(sources, str) else tuple(sources)
    return Copies(listed, target, recursive, no_clobber, pattern)
