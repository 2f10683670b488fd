"""The plan of a copy: which item gets which target, by the rules of cp.

A file goes into the target if the target is a folder, and otherwise to the exact name of the target. Folders are: a
bucket, an address or path that ends with a slash, and a folder on disk. With `recursive` or several sources, a name in
the cloud with objects below it is a folder, too. A pattern counts as several sources. A source folder (`recursive`)
keeps its name if the target is a folder; otherwise its contents go below the target. Matches of `**` go directly into
the target.
"""

import hashlib
import pickle
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import IO

from forbear_transfer.errors import TransferError, describe, hint_of
from forbear_transfer.items import STREAM, Action, Item
from forbear_transfer.objects import Object, Url, is_cloud
from forbear_transfer.plans.arguments import CpArguments
from forbear_transfer.plans.matches import Match, matches
from forbear_transfer.plans.targets import Clashes, CopyTarget, is_case_blind, names_folder, unless_same
from forbear_transfer.plans.trees import batched, walk
from forbear_transfer.storage.client import Storage

_SPOOL = 1024 * 1024

LISTING_FAILURES = (TransferError, OSError)
"""The errors that end a listing. They fail the items that depend on the listing, and no others."""


async def find_target(storage: Storage, arguments: CpArguments) -> CopyTarget:
    """Return the target of a copy, and look up whether it is a folder; ValueError if it must be one and is none.

    It must be one for several sources. The cloud is queried only with several sources or `recursive`.
    """
    folder = arguments.target != STREAM and names_folder(arguments.target)
    at: Url | str = arguments.target
    if is_cloud(arguments.target):
        at = Url.parse(arguments.target)
        if not folder and (arguments.several or arguments.recursive):
            folder = await storage.is_folder(at)
    if arguments.several and not folder:
        raise ValueError(
            f"`target` must be a folder for several sources, got {arguments.target}; {arguments.target}/ would name one"
        )
    return CopyTarget(at, folder, encryption=arguments.encryption)


async def plan_cp(storage: Storage, arguments: CpArguments, target: CopyTarget) -> AsyncGenerator[Item]:
    """Yield the items of a copy while listings find them.

    ValueError, before the first item, if two sources or two matches of a pattern would get the same target.
    """
    if arguments.sources == (STREAM,):
        yield _chosen(Item(STREAM, target.at), arguments)
        return
    matching = _matches(storage, arguments)
    if arguments.may_collide:
        matching = without_clashes(matching, target)
    async for match in matching:
        async for item in _items(storage, arguments, match, target):
            yield _chosen(item, arguments)


def _chosen(item: Item, arguments: CpArguments) -> Item:
    """Return the item with the options that are for every item."""
    if arguments.no_clobber:
        item = replace(item, no_clobber=True)
    if arguments.generation is not None:
        item = replace(item, generation=arguments.generation, is_required=True)
    return arguments.changed(item)


async def _matches(storage: Storage, arguments: CpArguments) -> AsyncGenerator[Match]:
    for source in arguments.sources:
        try:
            async for match in matches(storage, source, recursive=arguments.recursive):
                yield match
        except LISTING_FAILURES as error:
            yield Match(source, source, problem=describe(error), hint=hint_of(error))


async def without_clashes(items: AsyncGenerator[Match], target: CopyTarget) -> AsyncGenerator[Match]:
    """Yield the matches once it is certain that all have different targets; ValueError if two have the same.

    ValueError also for the contents of a folder without its name, such as "." as one of several sources. Until then the
    matches are kept on disk, because there may be millions. Memory holds a digest of each name.
    """
    here = not isinstance(target.at, Url)
    fold = not isinstance(target.at, Url) and is_case_blind(target.at)

    def key(match: Match) -> bytes:
        name = f"{match.name.casefold() if fold else match.name}{'/' if match.folder and not here else ''}"
        return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    seen: set[bytes] = set()
    with tempfile.SpooledTemporaryFile(_SPOOL) as spool:
        async for match in items:
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


async def _items(storage: Storage, arguments: CpArguments, match: Match, target: CopyTarget) -> AsyncGenerator[Item]:
    item = Item(match.source, target.at, size=match.size, object=match.object)
    if match.problem:
        action = Action.SKIP if match.left_out else Action.REFUSE
        yield replace(item, action=action, note=match.problem, hint=match.hint)
    elif not match.folder:
        if not arguments.excludes(match.name):
            planned = target.with_target(item, match.name) if target.folder else unless_same(item, target.encryption)
            yield await _looked_at(storage, planned, target) if planned.source == planned.target else planned
    else:
        try:
            below = target.below(match.name if target.folder else "")
            if isinstance(match.source, Url):
                contents = _cloud_folder(storage, match.source, below, arguments)
            else:
                contents = _local_folder(match.source, below, arguments)
            async for one in contents:
                yield one
        except LISTING_FAILURES as error:
            yield item.refused(error)


async def _looked_at(storage: Storage, item: Item, target: CopyTarget) -> Item:
    """Return an item that copies an object onto itself, skipped if the object has the key of the copy already.

    Listed objects are known, others are looked up. Items with another action are returned as they are.
    """
    if item.action is not Action.COPY or item.object is not None or not isinstance(item.source, Url):
        return item
    try:
        there = await storage.stat(item.source)
    except LISTING_FAILURES as error:
        return item.refused(error)
    return unless_same(replace(item, object=there), target.encryption)


async def _local_folder(folder: str, target: CopyTarget, arguments: CpArguments) -> AsyncGenerator[Item]:
    async for entry in batched(walk(folder)):
        item = Item(entry.path, target.at, size=entry.size)
        if arguments.excludes(entry.name):
            continue
        if entry.note:
            yield item.skipped(entry.note)
        elif entry.problem:
            yield item.refused(entry.problem)
        else:
            yield target.with_target(item, entry.name)


async def _cloud_folder(
    storage: Storage, folder: Url, target: CopyTarget, arguments: CpArguments
) -> AsyncGenerator[Item]:
    start, at = folder.prefix, target.at
    itself = isinstance(at, Url) and at.bucket == folder.bucket and at.prefix.startswith(start)
    if isinstance(at, Url) and itself and not (target.encryption.encrypts and at.prefix == start):
        raise TransferError(f"cannot copy gs://{folder.bucket}/{start} into itself", "choose a target beside it")
    clashes = None if isinstance(at, Url) else Clashes(at)
    async for listed in storage.objects(folder.bucket, start):
        name = listed.name[len(start) :]
        if not isinstance(listed, Object) or arguments.excludes(name):
            continue
        item = Item(Url(listed.bucket, listed.name), at, size=listed.size, object=listed)
        if clashes is None:
            yield target.with_target(item, name)
        elif not name or name.endswith("/"):
            yield item.skipped("it stands for a folder")
        else:
            yield clashes.checked(target.with_target(item, name), name)
