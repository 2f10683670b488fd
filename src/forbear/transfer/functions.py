"""cp and rsync as functions: the blocking ones, and those that share a Storage. The rules are those of the plans."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from forbear.run.runtime import current
from forbear.transfer.files import StrPath
from forbear.transfer.items import QUIET, Action, Item, Listener, Outcome, Status, Summary
from forbear.transfer.objects import is_cloud
from forbear.transfer.plans.arguments import CpArguments, RsyncArguments
from forbear.transfer.plans.cp import look, plan_cp
from forbear.transfer.plans.rsync import Sync
from forbear.transfer.plans.targets import Goal
from forbear.transfer.state import State
from forbear.transfer.storage.client import Settings, Storage
from forbear.transfer.workers.gauge import Gauge
from forbear.transfer.workers.manifest import Manifest
from forbear.transfer.workers.worker_pool import Fleet

_WEEK = 7 * 24 * 60 * 60.0
_T = TypeVar("_T")


def cp(
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
    manifest: StrPath | None = None,
    listener: Listener | None = None,
    settings: Settings | None = None,
    parallel: int | None = None,
    state: StrPath | None = None,
) -> Summary:
    """Copy files, folders (`recursive`) and objects to, from and within the cloud; "-" is standard input or output.

    `sources` may hold wildcards: `*`, `?` and `[abc]` within a part of a name, `**` across parts. The names at the
    target are by the table in docs/transfer.md. `no_clobber` skips what is there already, `exclude` is a regular
    expression that names are matched with from their beginning, below the folder that was asked for. `manifest` is a
    file that notes what was done; what it says is done is not done again. `listener` is told of everything. `settings`
    say where the cloud is, `parallel` how many items may be under way (by default one a connection, 64), `state` in
    which folder to keep what the next process needs to go on.

    What goes wrong with one item stops no other: it is in the summary. ValueError if what is asked for makes no sense;
    TransferError if there is nothing that can be done, for want of credentials or since others may write to the folder
    for the state. Where it cannot be kept at all, copies go on without it, and the listener's method `warned`, or else
    a RuntimeWarning, says so.
    """

    async def work() -> Summary:
        async with (settings or Settings()).storage() as storage:
            return await acp(
                storage,
                sources,
                target,
                recursive=recursive,
                no_clobber=no_clobber,
                exclude=exclude,
                manifest=manifest,
                listener=listener,
                parallel=parallel,
                state=state,
            )

    return _blocking(work(), "acp")


async def acp(
    storage: Storage,
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
    manifest: StrPath | None = None,
    listener: Listener | None = None,
    parallel: int | None = None,
    state: StrPath | None = None,
) -> Summary:
    """Do what `cp` does, over an open Storage and without blocking."""
    asked = CpArguments.of(sources, target, recursive=recursive, no_clobber=no_clobber, exclude=exclude)
    warnings: set[str] = set()
    with ExitStack() as stack:
        warn = Gauge(listener, warnings=warnings).warned
        kept, goal = await _decided(storage, asked, state, warn, stack)
        noted = None if manifest is None else stack.enter_context(Manifest(manifest))
        fleet = Fleet(storage, parallel=parallel, listener=listener, manifest=noted, state=state, warnings=warnings)
        await fleet.run(plan_cp(storage, asked, goal))
        if kept is not None and fleet.summary.ok:
            kept.forget()
        return fleet.summary


async def _decided(
    storage: Storage, asked: CpArguments, state: StrPath | None, warn: Callable[[str], object], stack: ExitStack
) -> tuple[State | None, Goal]:
    """Where copies go. A folder that is not there yet will be at the next run, which must not go below it then.

    So it is kept that it was not there, until all is done, or for a week: what has not been done by then was given up,
    as sessions are by the server.
    """
    goal = await look(storage, asked)
    if not asked.depends:
        return None, goal
    parts = [_absolute(asked.sources[0]), _absolute(asked.target)]
    kept = stack.enter_context(State(state, "cp", storage.endpoint, *parts, warn=warn))
    now = current.get().now()
    if now - kept.load().get("absent", float("-inf")) < _WEEK:
        return kept, replace(goal, folder=False)
    if not goal.folder:
        kept.save({"absent": now})
    return kept, goal


def rsync(
    source: StrPath,
    target: StrPath,
    *,
    recursive: bool = False,
    delete: bool = False,
    checksum: bool = False,
    exclude: str | None = None,
    dry_run: bool = False,
    manifest: StrPath | None = None,
    listener: Listener | None = None,
    settings: Settings | None = None,
    parallel: int | None = None,
    state: StrPath | None = None,
) -> Summary:
    """Make the folder `target` have what the folder `source` has; one of them, at least, is in the cloud.

    Without `recursive` only the files right in it count. `delete` deletes what only the target has, once all copies
    have gone well, and never what `exclude` matches. `checksum` compares the CRC32C of local files rather than their
    modification times. `dry_run` only tells the listener, of every item as skipped. All else is as for `cp`.
    """

    async def work() -> Summary:
        async with (settings or Settings()).storage() as storage:
            return await arsync(
                storage,
                source,
                target,
                recursive=recursive,
                delete=delete,
                checksum=checksum,
                exclude=exclude,
                dry_run=dry_run,
                manifest=manifest,
                listener=listener,
                parallel=parallel,
                state=state,
            )

    return _blocking(work(), "arsync")


async def arsync(
    storage: Storage,
    source: StrPath,
    target: StrPath,
    *,
    recursive: bool = False,
    delete: bool = False,
    checksum: bool = False,
    exclude: str | None = None,
    dry_run: bool = False,
    manifest: StrPath | None = None,
    listener: Listener | None = None,
    parallel: int | None = None,
    state: StrPath | None = None,
) -> Summary:
    """Do what `rsync` does, over an open Storage and without blocking."""
    asked = RsyncArguments.of(source, target, recursive=recursive, delete=delete, checksum=checksum, exclude=exclude)
    sync = Sync(storage, asked)
    if dry_run:
        return await _dry_run(sync, listener or QUIET)
    with ExitStack() as stack:
        noted = None if manifest is None else stack.enter_context(Manifest(manifest, skips=False))
        fleet = Fleet(storage, parallel=parallel, listener=listener, manifest=noted, state=state)
        await fleet.run(sync.copies(), complete=not delete)
        if delete:
            await fleet.run(sync.deletions() if fleet.summary.ok else _undeleted(sync, asked.target))
        return fleet.summary


async def _undeleted(sync: Sync, target: str) -> AsyncGenerator[Item]:
    if sync.extras:
        note = f"nothing is deleted before all else has gone well; there are {sync.extras} to delete"
        yield Item(target, target, Action.SKIP, size=0, note=note)


async def _dry_run(sync: Sync, listener: Listener) -> Summary:
    """Tell what would be done."""
    summary = Summary()
    for items in (sync.copies(), sync.deletions()):
        async for item in items:
            if item.action is Action.REFUSE:
                outcome = Outcome(item, Status.FAILED, error=item.note, hint=item.hint)
            else:
                outcome = Outcome(item, Status.SKIPPED, error=item.note or f"would {item.action.value}")
            summary.add(outcome)
            listener.ended(outcome)
        if not summary.ok:
            break
    return summary


def plan(
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
    settings: Settings | None = None,
) -> list[Item]:
    """What `cp` would do, as items that can be done anywhere and in any order; nothing is copied."""

    async def work() -> list[Item]:
        async with (settings or Settings()).storage() as storage:
            return await aplan(storage, sources, target, recursive=recursive, no_clobber=no_clobber, exclude=exclude)

    return _blocking(work(), "aplan")


async def aplan(
    storage: Storage,
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
) -> list[Item]:
    """List what `plan` lists, over an open Storage and without blocking."""
    asked = CpArguments.of(sources, target, recursive=recursive, no_clobber=no_clobber, exclude=exclude)
    return [item async for item in plan_cp(storage, asked, await look(storage, asked))]


def _blocking(work: Coroutine[Any, Any, _T], other: str) -> _T:
    """Run to the end; RuntimeError inside an event loop, which must go on."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError(f"this blocks, and there is an event loop running here: await `{other}` instead")


def _absolute(address: str) -> str:
    return address if is_cloud(address) else os.path.abspath(address)
