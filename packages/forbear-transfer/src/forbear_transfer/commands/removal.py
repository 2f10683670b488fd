"""`rm`: delete the objects that addresses name, each in exactly the version that was listed."""

from collections.abc import AsyncGenerator, Sequence
from typing import TypedDict, Unpack

from forbear.adapters import replace
from forbear_transfer.commands.selection import check_addresses, select
from forbear_transfer.errors import TransferError
from forbear_transfer.items import Action, Item, Summary, yield_each
from forbear_transfer.metadata import check_keywords, with_keywords
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.cp import LISTING_FAILURES
from forbear_transfer.plans.matches import match_versions, settle, versions_of
from forbear_transfer.plans.sources import Source, parse_source
from forbear_transfer.progress import Listener, Progress, tracked
from forbear_transfer.runs import RunSettings, Work, report_only, run_blocking
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.versions import explain_absence
from forbear_transfer.workers.worker_pool import WorkerPool


class RmOptions(TypedDict, total=False):
    """The keyword options of `rm`, whose docstring describes them."""

    recursive: bool
    all_versions: bool
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
    address with a generation (gs://bucket/name#123) deletes that version for good. `all_versions` deletes every version
    of each object for good, also of objects that have only noncurrent ones. `dry_run` deletes nothing: each item
    is a Finished event. `parallel`, `on_event` and `settings` are those of `cp`.

    ValueError for invalid addresses. RuntimeError inside a running event loop, since it blocks.

    >>> rm("gs://my-bucket/photos/*.jpg").deleted
    1
    """
    return run_blocking(settings, prepare_rm(addresses, **options), "arm")


@with_keywords(RmOptions)
async def arm(storage: Storage, addresses: str | Sequence[str], **options: Unpack[RmOptions]) -> Summary:
    """Do what `rm` does, with the same options, over an open Storage and without blocking; return the Summary.

    Example: see `rm`.
    """
    return await prepare_rm(addresses, **options)(storage)


def prepare_rm(
    addresses: str | Sequence[str], items: Sequence[Item] | None = None, **options: Unpack[RmOptions]
) -> Work:
    """Check the arguments of `rm`, and return what does it; ValueError or TypeError if they make no sense.

    `items` are those of an earlier `plan_rm`, None if they are to be listed.
    """
    check_keywords("rm", RmOptions, options)
    literal, every = options.get("literal"), options.get("all_versions", False)
    recursive = options.get("recursive", False)
    names, run = check_addresses(addresses, literal=literal), RunSettings.of(options)

    async def work(storage: Storage) -> Summary:
        progress = Progress(run.on_event, warnings=set())
        planned = plan_rm(storage, names, recursive=recursive, literal=literal, all_versions=every)
        planned = planned if items is None else yield_each(items)
        with tracked(progress):
            if run.dry_run:
                return await report_only([planned], progress)
            pool = WorkerPool(storage, progress, parallel=run.parallel)
            await pool.run(planned)
            return pool.summary

    return work


async def plan_rm(
    storage: Storage,
    addresses: Sequence[str],
    *,
    recursive: bool,
    literal: bool | None = None,
    all_versions: bool = False,
) -> AsyncGenerator[Item]:
    """Yield the items of `rm` while listings find them.

    A name that matches nothing is an item to refuse. A folder that a pattern matches is one to skip without
    `recursive`. What several addresses name comes once, and when everything is listed.
    """
    list_items = _list_versions if all_versions else _list_items
    items = list_items(storage, addresses, recursive=recursive, literal=literal)
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


async def _list_versions(
    storage: Storage, addresses: Sequence[str], *, recursive: bool, literal: bool | None
) -> AsyncGenerator[Item]:
    for address in addresses:
        nothing = True
        try:
            source = parse_source(address, literal)
            source = await settle(storage, source, folders=recursive, cautious=True, versions=True)
            async for version in _find_versions(storage, source, recursive):
                nothing = False
                yield Item(version.url, version.url, Action.DELETE, size=0, object=version)
            if nothing:
                raise await _explain_nothing(storage, source, recursive)
        except LISTING_FAILURES as error:
            yield Item(address, address, Action.DELETE, size=0).refuse(error)


async def _find_versions(storage: Storage, source: Source, recursive: bool) -> AsyncGenerator[Object]:
    url = source.at
    assert isinstance(url, Url)  # noqa: S101 - `check_addresses` has seen to it
    if url.generation is not None:
        raise TransferError(f"{url} is one version, and all are to be deleted", "leave out the number, or the option")
    if source.wild:
        async for version in match_versions(storage, url, recursive=recursive):
            yield version
        return
    if url.name and not (recursive and url.name.endswith("/")):
        async for version in versions_of(storage, url):
            yield version
    if recursive:
        async for listed in storage.objects(url.bucket, url.prefix, versions=True):
            if isinstance(listed, Object):
                yield listed


async def _explain_nothing(storage: Storage, source: Source, recursive: bool) -> TransferError:
    url = source.at
    if source.wild or not isinstance(url, Url):
        return TransferError(f"nothing matches {source.text}", "quote the pattern if the shell may have read it")
    if not recursive and (not url.name or url.name.endswith("/")):
        return TransferError(f"{url} is a {'folder' if url.name else 'bucket'}", "use `recursive`")
    return await explain_absence(storage, url)
