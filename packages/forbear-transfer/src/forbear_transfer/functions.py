"""cp, rsync and plan as functions: blocking ones, and async ones (acp, arsync, aplan) that share an open Storage."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from forbear.adapters import current_runtime
from forbear_transfer.errors import StrPath, TargetChanged, TransferError
from forbear_transfer.items import Action, Item, Outcome, Status, Summary
from forbear_transfer.metadata import check_keywords, with_keywords
from forbear_transfer.objects import Url, is_cloud
from forbear_transfer.plans.arguments import (
    CpArguments,
    CpOptions,
    PlanOptions,
    RsyncArguments,
    RsyncOptions,
)
from forbear_transfer.plans.cp import find_target, plan_cp
from forbear_transfer.plans.rsync import RsyncPlan
from forbear_transfer.plans.targets import CopyTarget
from forbear_transfer.progress import Finished, Progress, tracked
from forbear_transfer.state import State
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.manifest import Manifest
from forbear_transfer.workers.versions import not_there
from forbear_transfer.workers.worker_pool import WorkerPool

_WEEK = 7 * 24 * 60 * 60.0
_T = TypeVar("_T")


@with_keywords(CpOptions)
def cp(
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    settings: Settings | None = None,
    **options: Unpack[CpOptions],
) -> Summary:
    """Copy files, folders and objects to, from and within Cloud Storage, and return the Summary.

    "-" is standard input or standard output. `sources` may hold wildcards: `*`, `?` and `[abc]` within a part of a
    name, `**` across parts. The table in docs/transfer.md shows which names the copies get. `settings` say how to
    connect. The options:

    - `recursive` copies folders.
    - `no_clobber` skips files and objects that exist at the target.
    - `generation` is the version of the target that may be replaced, 0 for none; otherwise the copy fails. It is for a
      single file or object.
    - `exclude` is a regular expression, or several. Files and objects are left out if one matches their name below the
      source folder from its beginning. With `include`, those that none of its expressions matches are left out, too.
    - `dry_run` changes nothing: each item is a Finished event that says what would be done.
    - `gzip` compresses uploads on the way; the objects get "Content-Encoding: gzip". `packed` leaves such objects
      compressed when they are downloaded.
    - `content_type`, `cache_control`, `content_disposition`, `content_encoding`, `content_language` and `storage_class`
      are metadata of the new objects, and `metadata` has custom keys and values. A copy within the cloud has the rest
      from its source.
    - `encryption_key` is a customer-supplied EncryptionKey for the new objects, and `kms_key` the name of a key in
      Cloud KMS. Without them, new objects have the encryption of their bucket, also copies of objects that have a key.
    - `decryption_keys` are the customer-supplied keys of existing objects; `encryption_key` is tried, too. Items carry
      the keys, and are pickled with them.
    - `manifest` is a file that records the outcomes. Items that it has as done are skipped.
    - `on_event` is called with every event of the run: Planned, Started, Sized, Moved, Retried, Finished, Warned.
    - `parallel` is the largest number of items at a time, by default one per connection (64).
    - `state` is the folder for what the next process needs to continue.

    A failed item stops no other item; the summary lists it. ValueError if the arguments make no sense. TransferError if
    nothing can be done: for example, there are no credentials, or the manifest cannot be written. RuntimeError inside a
    running event loop, since it blocks.

    If the state cannot be kept, the copies continue without it. `on_event` gets a Warned event then; without
    `on_event`, there is a RuntimeWarning. But if other users may write to the folder for the state, large items fail,
    and a copy with `recursive` may raise TransferError.
    """
    arguments = CpArguments.of(sources, target, **options)
    return blocking(settings, lambda storage: run_cp(storage, arguments), "acp")


@with_keywords(CpOptions)
async def acp(
    storage: Storage, sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[CpOptions]
) -> Summary:
    """Do what `cp` does, with the same options, over an open Storage and without blocking; return the Summary."""
    return await run_cp(storage, CpArguments.of(sources, target, **options))


async def run_cp(storage: Storage, arguments: CpArguments) -> Summary:
    """Copy what the checked arguments of `cp` name, and return the summary."""
    progress = Progress(arguments.on_event, warnings=set())
    with ExitStack() as stack:
        stack.enter_context(tracked(progress))
        target, kept = await decided_target(storage, arguments, progress, stack)
        if arguments.dry_run:
            return await report_only([looked_up(storage, plan_cp(storage, arguments, target))], progress)
        pool = _worker_pool(storage, arguments, progress, stack)
        await pool.run(plan_cp(storage, arguments, target))
        if kept is not None and pool.summary.ok:
            kept.forget()
        return pool.summary


async def decided_target(
    storage: Storage, arguments: CpArguments, progress: Progress, stack: ExitStack
) -> tuple[CopyTarget, State | None]:
    """Return the target of the copies, and the State that remembers whether it was absent, None if none is needed.

    A target folder that does not exist before the first run exists at the second, which must not copy below it. So the
    state remembers that it was absent, until everything is done, or for a week: the server forgets upload sessions by
    then, too. `stack` closes the state.
    """
    target = await find_target(storage, arguments)
    if not arguments.depends:
        return target, None
    names = [_absolute(arguments.sources[0]), _absolute(arguments.target)]
    kept = stack.enter_context(State(arguments.state, "cp", storage.endpoint, *names, warn=progress.warned))
    now = current_runtime().now()
    if now - kept.load().get("absent", float("-inf")) < _WEEK:
        return replace(target, folder=False), kept
    if arguments.dry_run:
        kept.forget()  # the file that was made to look
    elif not target.folder:
        kept.save({"absent": now})
    return target, kept


@with_keywords(RsyncOptions)
def rsync(
    source: StrPath, target: StrPath, *, settings: Settings | None = None, **options: Unpack[RsyncOptions]
) -> Summary:
    """Make the folder `target` have what the folder `source` has, and return the Summary. At least one is in the cloud.

    Without `recursive`, only the files directly in it count. `delete` deletes what only the target has, once all copies
    have succeeded, and never what `exclude` matches or `include` leaves out. If there are more than `max_delete` of
    them, nothing is deleted, and the run fails. `checksum` compares the CRC32C of local files instead of their
    modification times; `size_only` compares nothing but sizes. `update` skips what is newer at the target. `dry_run`
    changes nothing: each item is a Finished event that says what would be done.

    `manifest` is a file that records the outcomes; unlike that of `cp`, it skips nothing. The other options are those
    of `cp`. Objects that are the same keep their metadata. It blocks: RuntimeError inside a running event loop.
    """
    arguments = RsyncArguments.of(source, target, **options)
    return blocking(settings, lambda storage: run_rsync(storage, arguments), "arsync")


@with_keywords(RsyncOptions)
async def arsync(storage: Storage, source: StrPath, target: StrPath, **options: Unpack[RsyncOptions]) -> Summary:
    """Do what `rsync` does, with the same options, over an open Storage and without blocking; return the Summary."""
    return await run_rsync(storage, RsyncArguments.of(source, target, **options))


async def run_rsync(storage: Storage, arguments: RsyncArguments) -> Summary:
    """Make the target have what the source has, by the checked arguments of `rsync`, and return the summary.

    Deletions come last, and only if nothing failed; otherwise a skipped item says how many are left. With the argument
    `dry_run`, only report the items.
    """
    plan = RsyncPlan(storage, arguments)
    progress = Progress(arguments.on_event, warnings=set())
    with ExitStack() as stack:
        stack.enter_context(tracked(progress))
        if arguments.dry_run:
            return await report_only([plan.copies(), _deletions(plan, arguments)], progress)
        pool = _worker_pool(storage, arguments, progress, stack, skips=False)
        await pool.run(plan.copies(), complete=not arguments.delete)
        if arguments.delete:
            ok = pool.summary.ok
            await pool.run(_deletions(plan, arguments) if ok else _skipped_deletions(plan, arguments.target))
        return pool.summary


def _worker_pool(
    storage: Storage,
    arguments: CpArguments | RsyncArguments,
    progress: Progress,
    stack: ExitStack,
    *,
    skips: bool = True,
) -> WorkerPool:
    """Return a pool of workers with the options of `arguments`, with an open manifest if they name one.

    The manifest records the outcomes. With `skips`, items that it has as done are skipped. `stack` closes it.
    """
    path = arguments.manifest
    manifest = None if path is None else stack.enter_context(Manifest(path, skips=skips))
    return WorkerPool(storage, progress, parallel=arguments.parallel, manifest=manifest, state=arguments.state)


async def _skipped_deletions(plan: RsyncPlan, target: str) -> AsyncGenerator[Item]:
    if plan.extras:
        note = f"nothing is deleted before all else has gone well; there are {plan.extras} to delete"
        yield Item(target, target, Action.SKIP, size=0, note=note)


async def _deletions(plan: RsyncPlan, arguments: RsyncArguments) -> AsyncGenerator[Item]:
    """Yield the deletions of a plan, or one refused item if there are more than the argument `max_delete` allows."""
    most = arguments.max_delete
    if most is not None and plan.extras > most:
        text = f"{plan.extras} would be deleted, more than {most}, so nothing is deleted"
        cure = "look at what would be deleted (`dry_run`), then raise `max_delete`"
        yield Item(arguments.target, arguments.target, size=0).refused(TransferError(text, cure))
        return
    async for item in plan.deletions():
        yield item


async def looked_up(storage: Storage, items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """Yield the items of a dry run, with the skips and failures that the copy would have.

    An item fails if its source does not exist, or its target is not the version that the user has named. One with
    `no_clobber` whose target exists is skipped.
    """
    async for item in items:
        source, target = item.source, item.target
        if item.action is not Action.COPY:
            yield item
        elif isinstance(source, Url) and item.object is None and await storage.stat(source) is None:
            yield item.refused(await not_there(storage, source))
        elif item.no_clobber:
            exists = await storage.stat(target) if isinstance(target, Url) else os.path.lexists(target)  # noqa: ASYNC240
            yield item.skipped(f"{target} exists already") if exists else item
        elif item.is_required and isinstance(target, Url):
            there = await storage.stat(target)
            wrong = (0 if there is None else there.generation) != item.generation
            yield item.refused(TargetChanged(f"{target} is not generation {item.generation}")) if wrong else item
        else:
            yield item


async def report_only(parts: Sequence[AsyncGenerator[Item]], progress: Progress) -> Summary:
    """Report every item as skipped, or as failed if the plan refuses it, and return the summary. Nothing is done.

    If an item is refused, the parts after its own are left out.
    """
    summary = Summary()
    for items in parts:
        async for item in items:
            if item.action is Action.REFUSE:
                outcome = Outcome(item, Status.FAILED, error=item.note, hint=item.hint)
            else:
                outcome = Outcome(item, Status.SKIPPED, error=item.note or f"would {item.action.value}")
            summary.add(outcome)
            progress.emit(Finished(outcome))
        if not summary.ok:
            break
    return summary


@with_keywords(PlanOptions)
def plan(
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    settings: Settings | None = None,
    **options: Unpack[PlanOptions],
) -> list[Item]:
    """Return what `cp` would do, as items that `execute` can run anywhere and in any order. Nothing is copied.

    The options are those of `cp` that say what is copied and how, and not those of the run. Sources that cannot be
    copied are items to skip or refuse. It blocks: RuntimeError inside a running event loop.
    """
    check_keywords("plan", PlanOptions, options)
    arguments = CpArguments.of(sources, target, **options)
    return blocking(settings, lambda storage: _planned(storage, arguments), "aplan")


@with_keywords(PlanOptions)
async def aplan(
    storage: Storage, sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[PlanOptions]
) -> list[Item]:
    """Return the items of a copy as `plan` does, over an open Storage and without blocking."""
    check_keywords("aplan", PlanOptions, options)
    return await _planned(storage, CpArguments.of(sources, target, **options))


async def _planned(storage: Storage, arguments: CpArguments) -> list[Item]:
    return [item async for item in plan_cp(storage, arguments, await find_target(storage, arguments))]


def blocking(settings: Settings | None, work: Callable[[Storage], Coroutine[Any, Any, _T]], other: str) -> _T:
    """Open a Storage by `settings` (None: the default ones), run `work` on it to its end, and return the result.

    RuntimeError if an event loop is running in this thread, which must not be blocked; its text names the async
    function `other`.
    """

    async def run() -> _T:
        async with (settings or Settings()).storage() as storage:
            return await work(storage)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    raise RuntimeError(f"this blocks, and there is an event loop running here: await `{other}` instead")


def _absolute(address: str) -> str:
    return address if is_cloud(address) else os.path.abspath(address)
