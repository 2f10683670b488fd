"""The plan of a copy: which item gets which target, by the rules of cp.

A file goes into the target if the target is a folder, and otherwise to the exact name of the target. Folders are: a
bucket, an address or path that ends with a slash, and a folder on disk. With `recursive` or several sources, a name in
the cloud with objects below it is a folder, too. A pattern counts as several sources. A source folder (`recursive`)
keeps its name if the target is a folder; otherwise its contents go below the target. Matches of `**` go directly into
the target.
"""

import hashlib
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import IO, Self

from forbear.adapters import dataclass, replace
from forbear_transfer.errors import StrPath, TargetChanged, TargetExists, TransferError, describe, hint_of
from forbear_transfer.items import STREAM, Action, Item, ItemOptions
from forbear_transfer.objects import Object, Url, is_cloud
from forbear_transfer.plans.filters import Filter, LinkRule, Links
from forbear_transfer.plans.matches import Match, matches, settle
from forbear_transfer.plans.sources import Source
from forbear_transfer.plans.targets import Clashes, CopyTarget, fold_name, is_case_blind, names_folder
from forbear_transfer.plans.trees import read_batches, walk
from forbear_transfer.plans.wildcards import is_wild, literal_start
from forbear_transfer.storage.client import Storage

_SPOOL = 1024 * 1024
_BESIDE = "choose a target beside it"
_IN_PLACE = f"{_BESIDE}; to change what is there, name the folder above as the target, or 'gs://BUCKET/*' as the source"

LISTING_FAILURES = (TransferError, OSError)
"""The errors that end a listing. They fail the items that depend on the listing, and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """The plan of one `cp`, or of one `mv` if it `moves`: the sources, the target, and what holds for every item."""

    sources: tuple[Source, ...]
    target: str
    names: Filter
    each: ItemOptions
    recursive: bool = False
    moves: bool = False
    links: LinkRule | None = None
    state: StrPath | None = None

    @property
    def several(self) -> bool:
        """True if there may be more than one source: several are given, or one with wildcards."""
        return len(self.sources) > 1 or any(source.wild for source in self.sources)

    @property
    def is_settled(self) -> bool:
        return all(source.exact is None for source in self.sources)

    async def settle(self, storage: Storage) -> Self:
        """Return the plan in which it is known what each source means, by what exists; ValueError as for `check`."""
        if self.is_settled:
            return self
        settled: list[Source] = []
        for source in self.sources:
            try:
                settled.append(await settle(storage, source, folders=self.recursive, cautious=self.moves))
            except TransferError as error:
                settled.append(replace(source, exact=None, failure=error))
        plan = replace(self, sources=tuple(settled))
        plan.check()
        return plan

    def check(self) -> None:
        if self.each.generation is not None and (self.several or self.recursive):
            raise ValueError("`generation` is for a single file or object; copy the others by themselves")
        if self.target == STREAM and (self.several or self.recursive):
            raise ValueError("standard output (-) as `target` takes a single object")

    @property
    def may_collide(self) -> bool:
        """True if two files may get the same name: with several sources, or with a pattern that spans folders.

        Such a pattern has a wildcard in a part before the last, or `**` in the last part.
        """
        if len(self.sources) > 1 or not self.several:
            return self.several
        at = next(iter(self.sources)).at
        above, _, last = (at.name if isinstance(at, Url) else at.replace(os.sep, "/")).rpartition("/")
        return is_wild(above) or "**" in last

    @property
    def depends(self) -> bool:
        """True if the names at the target depend on what exists there, so that a second run might choose others."""
        is_folder = names_folder(self.target) if is_cloud(self.target) else self.target.endswith(("/", os.sep))
        return self.recursive and not self.several and not is_folder

    def may_overlap(self, target: CopyTarget) -> bool:
        """Return whether the order of items counts: a target may be a source, or an object the source of two."""
        if not isinstance(target.at, Url) or not (self.several or self.recursive):
            return False
        urls = [(source.at, source.wild) for source in self.sources if isinstance(source.at, Url)]
        areas = [(url.bucket, _find_area(url.name, wild=wild)) for url, wild in urls]
        for number, (url, wild) in enumerate(urls):
            written = target.at.prefix
            if target.folder and not wild:
                written += _find_area(url.name.rstrip("/").rpartition("/")[2], wild=False)
            written_to = (target.at.bucket, written)
            if any(_meet(written_to, area) for area in areas):
                return True
            if self.moves and any(_meet(areas[number], area) for area in areas[:number]):
                return True
        return False

    async def find_target(self, storage: Storage) -> CopyTarget:
        """Return the target, and look up whether it is a folder; ValueError if it must be one and is none."""
        folder = self.target != STREAM and names_folder(self.target)
        at: Url | str = self.target
        if is_cloud(self.target):
            at = Url.parse(self.target, versions=False)
            if not folder and (self.several or self.recursive):
                folder = await storage.is_folder(at)
        if self.several and not folder:
            raise ValueError(
                f"`target` must be a folder for several sources, got {self.target}; {self.target}/ would name one"
            )
        return CopyTarget(at, folder, encryption=self.each.encryption, metadata=self.each.metadata)

    async def items(self, storage: Storage, target: CopyTarget) -> AsyncGenerator[Item]:
        """Yield the items while listings find them; ValueError before the first if two would get the same target."""
        if [source.text for source in self.sources] == [STREAM]:
            yield self.each.apply_to(Item(STREAM, target.at))
            return
        links = Links.of(self.links, self.state)
        found = self._find_matches(storage, links)
        async for match in refuse_clashes(found, target) if self.may_collide else found:
            if match.folder and not match.problem:
                async for item in self._list_folder(storage, match, target, links):
                    yield self._finish(item)
            elif match.problem or not self.names.leaves_out(match.name):
                yield self._finish(await self._make_item(storage, match, target))

    def _finish(self, item: Item) -> Item:
        item = self.each.apply_to(item)
        if not self.moves:
            return _check_version(item) if item.source == item.target else item
        if item.action is not Action.COPY:
            return item
        if item.source == item.target:  # possible with a key for new objects
            return item.refuse(TransferError("source and target are the same", "give it another key with cp"))
        return replace(item, action=Action.MOVE)

    async def _find_matches(self, storage: Storage, links: Links) -> AsyncGenerator[Match]:
        for source in self.sources:
            try:
                if source.failure is not None:
                    raise source.failure
                async for match in matches(storage, source, recursive=self.recursive, links=links):
                    yield match
            except LISTING_FAILURES as error:
                yield Match(source.text, source.text, problem=describe(error), hint=hint_of(error))

    async def _make_item(self, storage: Storage, match: Match, target: CopyTarget) -> Item:
        item = Item(match.source, target.at, size=match.size, object=match.object)
        if match.problem:
            action = Action.SKIP if match.left_out else Action.REFUSE
            return replace(item, action=action, note=match.problem, hint=match.hint, is_absent=match.absent)
        planned = target.with_target(item, match.name) if target.folder else target.refuse_same(item)
        if isinstance(match.source, Url) and Url(match.source.bucket, match.source.name) == planned.target:
            return await _look_at(storage, planned, target)
        return planned

    async def _list_folder(
        self, storage: Storage, match: Match, target: CopyTarget, links: Links
    ) -> AsyncGenerator[Item]:
        try:
            below = target.below(match.name if target.folder else "")
            if isinstance(match.source, Url):
                contents = self._list_cloud_folder(storage, match.source, below)
            else:
                contents = self._list_local_folder(match.source, below, links)
            async for one in contents:
                yield one
        except LISTING_FAILURES as error:
            yield Item(match.source, target.at).refuse(error)

    async def _list_local_folder(self, folder: str, target: CopyTarget, links: Links) -> AsyncGenerator[Item]:
        async for entry in read_batches(walk(folder, links=links)):
            if self.names.leaves_out(entry.name):
                continue
            item = Item(entry.path, target.at, size=entry.size)
            if entry.note:
                yield item.skip(entry.note)
            else:
                yield item.refuse(entry.problem) if entry.problem else target.with_target(item, entry.name)

    async def _list_cloud_folder(self, storage: Storage, folder: Url, target: CopyTarget) -> AsyncGenerator[Item]:
        start, at = folder.prefix, target.at
        itself = isinstance(at, Url) and at.bucket == folder.bucket and at.prefix.startswith(start)
        if isinstance(at, Url) and itself and not (target.changes and at.prefix == start):
            raise TransferError(f"cannot copy {folder} into itself", _IN_PLACE if target.changes else _BESIDE)
        clashes = None if isinstance(at, Url) else Clashes(at)
        async for listed in storage.objects(folder.bucket, start):
            name = listed.name[len(start) :]
            if not isinstance(listed, Object) or self.names.leaves_out(name):
                continue
            item = Item(Url(listed.bucket, listed.name), at, size=listed.size, object=listed)
            if clashes is None:
                yield target.with_target(item, name)
            elif not name or name.endswith("/"):
                yield item.skip("it stands for a folder")
            else:
                yield clashes.check(target.with_target(item, name), name)


async def refuse_clashes(items: AsyncGenerator[Match], target: CopyTarget) -> AsyncGenerator[Match]:
    """Yield the matches once it is certain that all have different targets; ValueError if two have the same.

    ValueError also for the contents of a folder without its name, such as "." as one of several sources. Until then the
    matches are kept on disk, because there may be millions. Memory holds a digest of each name.
    """
    import pickle  # both take a while to load, and few copies need them
    import tempfile

    here = not isinstance(target.at, Url)
    fold = not isinstance(target.at, Url) and is_case_blind(target.at)

    def key(match: Match) -> bytes:
        name = f"{fold_name(match.name) if fold else match.name}{'/' if match.folder and not here else ''}"
        return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    seen: set[bytes] = set()
    with tempfile.SpooledTemporaryFile(_SPOOL) as spool:
        async for match in items:
            if not match.problem:
                if not match.name:
                    raise ValueError(f"`sources`: the contents of {match.source} must be copied by themselves")
                digest = key(match)
                if digest in seen:
                    first = next(one for one in _read(spool) if not one.problem and key(one) == digest)
                    raise ValueError(
                        f"`sources`: {first.source} and {match.source} would have the same target, {match.name!r}; "
                        "copy them one by one, or with `recursive` the folder that holds both"
                    )
                seen.add(digest)
            pickle.dump(match, spool, pickle.HIGHEST_PROTOCOL)
        for match in _read(spool):
            yield match


def _read(spool: IO[bytes]) -> Iterator[Match]:
    import pickle

    spool.seek(0)
    with suppress(EOFError):
        while True:
            yield pickle.load(spool)  # noqa: S301 - written above, to a file without a name


async def _look_at(storage: Storage, item: Item, target: CopyTarget) -> Item:
    """Return an item that copies an object onto itself, skipped if the object has the key of the copy already.

    Listed objects are known, others are looked up. A source with the number of the live version is that object. Items
    with another action are returned as they are.
    """
    url, source = item.target, item.source
    if item.action is not Action.COPY or item.object is not None or not isinstance(source, Url):
        return item
    if not target.changes or not isinstance(url, Url):
        return item
    try:
        there = await storage.stat(url)
    except LISTING_FAILURES as error:
        return item.refuse(error)
    if source.generation is not None and (there is None or there.generation != source.generation):
        return item  # an older version becomes the live one
    return target.refuse_same(replace(item, source=url, object=there))


def _check_version(item: Item) -> Item:
    there, required = item.object, item.generation
    if there is None or item.action is Action.REFUSE:
        return item
    if item.no_clobber:
        return item.skip("it exists already")
    if required is None or required == there.generation:
        return item
    if not required:
        return item.refuse(TargetExists(f"{item.target} exists already"))
    return item.refuse(TargetChanged(f"{item.target} is not generation {required} any more"))


def _find_area(name: str, *, wild: bool) -> str:
    """Return the text that all names of a source begin with, if a slash is added to that of the source itself."""
    return literal_start(name) if wild or not name else f"{name.rstrip('/')}/"


def _meet(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] and (one[1].startswith(other[1]) or other[1].startswith(one[1]))
