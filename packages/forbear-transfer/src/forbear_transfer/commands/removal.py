"""`rm`: delete the objects that addresses name, each in exactly the version that was listed."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from forbear_transfer.commands.selection import checked_addresses, select
from forbear_transfer.functions import blocking, report_only
from forbear_transfer.items import Action, Item, Summary
from forbear_transfer.objects import Url
from forbear_transfer.progress import Listener, Progress, tracked
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class RmArguments:
    """The checked arguments of `rm`; `items` are those of an earlier `plan_rm`, None if they are to be listed."""

    addresses: tuple[str, ...]
    recursive: bool = False
    dry_run: bool = False
    parallel: int | None = None
    on_event: Listener | None = None
    items: Sequence[Item] | None = None

    @classmethod
    def of(
        cls,
        addresses: str | Sequence[str],
        *,
        recursive: bool = False,
        dry_run: bool = False,
        parallel: int | None = None,
        on_event: Listener | None = None,
    ) -> Self:
        """Return the arguments, checked; ValueError if they make no sense."""
        if parallel is not None and parallel < 1:
            raise ValueError(f"`parallel` must be at least 1, got {parallel}")
        names = checked_addresses(addresses)
        return cls(addresses=names, recursive=recursive, dry_run=dry_run, parallel=parallel, on_event=on_event)


def rm(
    addresses: str | Sequence[str],
    *,
    recursive: bool = False,
    dry_run: bool = False,
    parallel: int | None = None,
    on_event: Listener | None = None,
    settings: Settings | None = None,
) -> Summary:
    """Delete the objects that `addresses` name, and return the Summary, whose `failures` list what is not deleted.

    An address may have the wildcards of `cp`. `recursive` includes everything below folders. Each object is deleted in
    the version that was listed: if another client has written it since, its new version stays, and the item fails. An
    address with a generation (gs://bucket/name#123) deletes that version for good. `dry_run` deletes nothing: each item
    is a Finished event. `parallel`, `on_event` and `settings` are those of `cp`.

    ValueError for invalid addresses. RuntimeError inside a running event loop, since it blocks.
    """
    arguments = RmArguments.of(addresses, recursive=recursive, dry_run=dry_run, parallel=parallel, on_event=on_event)
    return blocking(settings, lambda storage: run_rm(storage, arguments), "arm")


async def arm(
    storage: Storage,
    addresses: str | Sequence[str],
    *,
    recursive: bool = False,
    dry_run: bool = False,
    parallel: int | None = None,
    on_event: Listener | None = None,
) -> Summary:
    """Do what `rm` does, with the same options, over an open Storage and without blocking; return the Summary."""
    arguments = RmArguments.of(addresses, recursive=recursive, dry_run=dry_run, parallel=parallel, on_event=on_event)
    return await run_rm(storage, arguments)


async def run_rm(storage: Storage, arguments: RmArguments) -> Summary:
    """Delete what the checked arguments of `rm` name, or only report it with `dry_run`, and return the summary."""
    progress = Progress(arguments.on_event, warnings=set())
    with tracked(progress):
        if arguments.dry_run:
            return await report_only([plan_rm(storage, arguments)], progress)
        pool = WorkerPool(storage, progress, parallel=arguments.parallel)
        await pool.run(plan_rm(storage, arguments))
        return pool.summary


async def plan_rm(storage: Storage, arguments: RmArguments) -> AsyncGenerator[Item]:
    """Yield the items of `rm` while listings find them, or the `items` of the arguments if they have some.

    A name that matches nothing is an item to refuse. A folder that a pattern matches is one to skip without
    `recursive`. What several addresses name comes once, and when everything is listed.
    """
    if arguments.items is not None:
        for item in arguments.items:
            yield item
        return
    if len(arguments.addresses) == 1:
        async for item in _items(storage, arguments):
            yield item
        return
    seen: set[Url | str] = set()
    for item in [item async for item in _items(storage, arguments)]:  # all, before the first one is deleted
        if item.target not in seen:
            seen.add(item.target)
            yield item


async def _items(storage: Storage, arguments: RmArguments) -> AsyncGenerator[Item]:
    async for match in select(storage, arguments.addresses, recursive=arguments.recursive):
        item = Item(match.source, match.source, Action.DELETE, size=0, object=match.object)
        if match.problem:
            action = Action.SKIP if match.left_out else Action.REFUSE
            item = replace(item, action=action, note=match.problem, hint=match.hint)
        yield item
