"""The plan of a copy: which item goes where, by the rules of cp. It lists, but neither reads nor writes any data.

A file goes into the target where that is a folder, and to the very name of the target otherwise. Folders are: a
bucket, an address that ends with a slash, a folder on disk, and for `recursive` or several sources also a name in the
cloud with objects below it. A pattern counts as several sources. A folder (`recursive`) keeps its name below a target
that is a folder already; otherwise its contents go below the target. What `**` matches goes right into the target.
"""

import hashlib
import pickle
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import IO

from forbear.transfer.errors import TransferError, cure, said
from forbear.transfer.items import STREAM, Action, Item
from forbear.transfer.objects import Object, Url, is_cloud
from forbear.transfer.plans.arguments import CpArguments
from forbear.transfer.plans.matches import Match, matches
from forbear.transfer.plans.targets import Clashes, Goal, is_case_blind, names_folder, unless_same
from forbear.transfer.plans.trees import batched, walk
from forbear.transfer.storage.client import Storage

_SPOOL = 1024 * 1024

LISTING_FAILURES = (TransferError, OSError)
"""What ends a listing, and with it what depends on that listing, but nothing else."""


async def look(storage: Storage, asked: CpArguments) -> Goal:
    """See what is at the target; ValueError where it is no folder and must be one."""
    folder = asked.target != STREAM and names_folder(asked.target)
    at: Url | str = asked.target
    if is_cloud(asked.target):
        at = Url.parse(asked.target)
        if not folder and (asked.several or asked.recursive):
            folder = await storage.is_folder(at)
    if asked.several and not folder:
        raise ValueError(f"`target` must be a folder for several sources: {asked.target}/ would name one")
    return Goal(at, folder)


async def plan_cp(storage: Storage, asked: CpArguments, goal: Goal) -> AsyncGenerator[Item]:
    """The items, while they are found; ValueError, before the first, where two would have the same target."""
    if asked.sources == (STREAM,):
        yield Item(STREAM, goal.at, no_clobber=asked.no_clobber)
        return
    found = _found(storage, asked)
    if asked.may_collide:
        found = without_clashes(found, goal)
    async for match in found:
        async for item in _items(storage, asked, match, goal):
            yield replace(item, no_clobber=True) if asked.no_clobber else item


async def _found(storage: Storage, asked: CpArguments) -> AsyncGenerator[Match]:
    for source in asked.sources:
        try:
            async for match in matches(storage, source, recursive=asked.recursive):
                yield match
        except LISTING_FAILURES as error:
            yield Match(source, source, problem=said(error), hint=cure(error))


async def without_clashes(found: AsyncGenerator[Match], goal: Goal) -> AsyncGenerator[Match]:
    """Yield the matches once all are known to have targets of their own; meanwhile they wait on disk.

    ValueError for two with the same target. In memory there is a digest of each name: there may be millions.
    """
    here = not isinstance(goal.at, Url)
    fold = not isinstance(goal.at, Url) and is_case_blind(goal.at)

    def key(match: Match) -> bytes:
        name = f"{match.name.casefold() if fold else match.name}{'/' if match.folder and not here else ''}"
        return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    seen: set[bytes] = set()
    with tempfile.SpooledTemporaryFile(_SPOOL) as spool:
        async for match in found:
            if not match.problem:
                if not match.name:
                    raise ValueError(f"`sources`: the contents of {match.source} must be copied by themselves")
                digest = key(match)
                if digest in seen:
                    raise _clash(next(one for one in _read(spool) if not one.problem and key(one) == digest), match)
                seen.add(digest)
            pickle.dump(match, spool, pickle.HIGHEST_PROTOCOL)
        for match in _read(spool):
            yield match


def _read(spool: IO[bytes]) -> Iterator[Match]:
    spool.seek(0)
    with suppress(EOFError):
        while True:
            yield pickle.load(spool)  # noqa: S301 - written above, to a file without a name


def _clash(first: Match, second: Match) -> ValueError:
    return ValueError(
        f"`sources`: {first.source} and {second.source} would have the same target, {second.name!r}; copy them "
        "one by one, or with `recursive` the folder that holds both"
    )


async def _items(storage: Storage, asked: CpArguments, match: Match, goal: Goal) -> AsyncGenerator[Item]:
    item = Item(match.source, goal.at, size=match.size, found=match.found)
    if match.problem:
        action = Action.SKIP if match.left_out else Action.REFUSE
        yield replace(item, action=action, note=match.problem, hint=match.hint)
    elif not match.folder:
        if not asked.leaves_out(match.name):
            yield goal.take(item, match.name) if goal.folder else unless_same(item)
    else:
        try:
            home = goal.below(match.name if goal.folder else "")
            if isinstance(match.source, Url):
                contents = _cloud_folder(storage, match.source, home, asked)
            else:
                contents = _local_folder(match.source, home, asked)
            async for one in contents:
                yield one
        except LISTING_FAILURES as error:
            yield item.refused(error)


async def _local_folder(folder: str, home: Goal, asked: CpArguments) -> AsyncGenerator[Item]:
    async for entry in batched(walk(folder)):
        item = Item(entry.path, home.at, size=entry.size)
        if asked.leaves_out(entry.name):
            continue
        if entry.note:
            yield item.skipped(entry.note)
        elif entry.problem:
            yield item.refused(entry.problem)
        else:
            yield home.take(item, entry.name)


async def _cloud_folder(storage: Storage, folder: Url, home: Goal, asked: CpArguments) -> AsyncGenerator[Item]:
    start = folder.prefix
    if isinstance(home.at, Url) and home.at.bucket == folder.bucket and home.at.prefix.startswith(start):
        raise TransferError(f"cannot copy gs://{folder.bucket}/{start} into itself", "choose a target beside it")
    clashes = None if isinstance(home.at, Url) else Clashes(home.at)
    async for found in storage.objects(folder.bucket, start):
        name = found.name[len(start) :]
        if not isinstance(found, Object) or asked.leaves_out(name):
            continue
        item = Item(Url(found.bucket, found.name), home.at, size=found.size, found=found)
        if clashes is None:
            yield home.take(item, name)
        elif not name or name.endswith("/"):
            yield item.skipped("it stands for a folder")
        else:
            yield clashes.checked(home.take(item, name), name)
