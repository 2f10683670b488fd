"""`rm`: delete the objects that addresses name, each in exactly the version that was listed."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from forbear_transfer.commands.selection import check_addresses, select
from forbear_transfer.items import Action, Item, Summary
from forbear_transfer.metadata import check_keywords, with_keywords
from forbear_transfer.objects import Url
from forbear_transfer.progress import Listener, Progress, tracked
from forbear_transfer.runs import RunSettings, Work, report_only, run_blocking
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.worker_pool import WorkerPool


class RmOptions(TypedDict, total=False):
    """The keyword options of `rm`, whose docstring describes them."""

    recursive: bool
    literal: bool | None
    dry_run: bool
    parallel: int | None
    on_event: Listener | None


@with_keywords(RmOptions)
def rm(addresses: str | Sequence[str], *, settings: Settings | None = None, **options: Unpack[RmOptions]) -> Summary:
    """Delete the objects that `addresses` name, and return the Summary, whose `failures` list what is not deleted.

    An address may have the wildcards of `cp`; if an object has it as its name, and it matches others, too, nothing is
    done unless `literal` says which. `recursive` includes everything below folders. Each object is deleted in
    the version that was listed: if another client has written it since, its new version stays, and the item fails. An
    address with a generation (gs://bucket/name#123) deletes that version for good. `dry_run` deletes nothing: each item
    is a Finished event. `parallel`, `on_event` and `settings` are those of `cp`.

    ValueError for invalid addresses. RuntimeError inside a running event loop, since it blocks.
    """
    return run_blocking(settings, prepare_rm(addresses, **options), "arm")


@with_keywords(RmOptions)
async def arm(storage: Storage, addresses: str | Sequence[str], **options: Unpack[RmOptions]) -> Summary:
    """Do what `rm` does, with the same options, over an open Storage and without blocking; return the Summary."""
    return await prepare_rm(addresses, **options)(storage)


def prepare_rm(
    addresses: str | Sequence[str], items: Sequence[Item] | None = None, **options: Unpack[RmOptions]
) -> Work:
    """Check the arguments of `rm`, and return what does it; ValueError or TypeError if they make no sense.

    `items` are those of an earlier `plan_rm`, None if they are to be listed.
    """
    check_keywords("rm", RmOptions, options)
    literal, recursive = options.get("literal"), options.get("recursive", False)
    names, run = check_addresses(addresses, literal=literal), RunSettings.of(options)

    async def work(storage: Storage) -> Summary:
        progress = Progress(run.on_event, warnings=set())
        planned = plan_rm(storage, names, recursive=recursive, literal=literal) if items is None else _yield_each(items)
        with tracked(progress):
            if run.dry_run:
                return await report_only([planned], progress)
            pool = WorkerPool(storage, progress, parallel=run.parallel)
            await pool.run(planned)
            return pool.summary

    return work


async def _yield_each(items: Sequence[Item]) -> AsyncGenerator[Item]:
    for item in items:
        yield item


async def plan_rm(
    storage: Storage, addresses: Sequence[str], *, recursive: bool, literal: bool | None = None
) -> AsyncGenerator[Item]:
    """Yield the items of `rm` while listings find them.

    A name that matches nothing is an item to refuse. A folder that a pattern matches is one to skip without
    `recursive`. What several addresses name comes once, and when everything is listed.
    """
    items = _list_items(storage, addresses, recursive=recursive, literal=literal)
    if len(addresses) == 1:
        async for item in items:
            yield item
        return
    seen: set[Url | str] = set()
    for item in [item async for item in items]:  # all, before the first one is deleted
        if item.target not in seen:
            seen.add(item.target)
            yield item


async def _list_items(
    storage: Storage, addresses: Sequence[str], *, recursive: bool, literal: bool | None
) -> AsyncGenerator[Item]:
    async for match in select(storage, addresses, recursive=recursive, literal=literal, cautious=True):
        item = Item(match.source, match.source, Action.DELETE, size=0, object=match.object)
        if match.problem:
            action = Action.SKIP if match.left_out else Action.REFUSE
            item = replace(item, action=action, note=match.problem, hint=match.hint)
        yield item
