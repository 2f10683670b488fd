"""`mv`: move objects. The service copies each one, and then exactly the version that was copied is deleted."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from typing import Unpack

from forbear_transfer.commands.selection import checked_addresses
from forbear_transfer.encryption import KeyOptions
from forbear_transfer.errors import StrPath, TransferError
from forbear_transfer.functions import blocking, decided_target, looked_up, report_only
from forbear_transfer.items import Action, Item, Summary
from forbear_transfer.objects import is_cloud
from forbear_transfer.plans.arguments import CpArguments
from forbear_transfer.plans.cp import plan_cp
from forbear_transfer.progress import Listener, Progress, tracked
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.worker_pool import WorkerPool


class MvOptions(KeyOptions, total=False):
    """The keyword options of `mv`; those of `cp` with the same names do the same."""

    recursive: bool
    no_clobber: bool
    dry_run: bool
    exclude: str | Sequence[str] | None
    include: str | Sequence[str] | None
    on_event: Listener | None
    parallel: int | None
    state: StrPath | None


def mv(
    sources: str | Sequence[str], target: str, *, settings: Settings | None = None, **options: Unpack[MvOptions]
) -> Summary:
    """Move objects within Cloud Storage, also between buckets, and return the Summary.

    The targets get the names that `cp` would give them, and the options are those of `cp`: `recursive`, `no_clobber`,
    `dry_run`, `exclude`, `include`, `on_event`, `parallel`, `state`, `encryption_key`, `kms_key` and `decryption_keys`.
    Without a key for new objects, a moved object has the encryption of its new bucket.

    Each object is copied in one version, with a precondition on the target, and the copy is verified. Then that version
    of the source is deleted, and no other one: if another client has written the source meanwhile, its new version
    stays, and the item fails. After a failure, the same call again moves the rest.

    ValueError if the arguments make no sense. RuntimeError inside a running event loop, since it blocks.
    """
    arguments = mv_arguments(sources, target, **options)
    return blocking(settings, lambda storage: run_mv(storage, arguments), "amv")


async def amv(storage: Storage, sources: str | Sequence[str], target: str, **options: Unpack[MvOptions]) -> Summary:
    """Do what `mv` does, with the same options, over an open Storage and without blocking; return the Summary."""
    return await run_mv(storage, mv_arguments(sources, target, **options))


def mv_arguments(sources: str | Sequence[str], target: str, **options: Unpack[MvOptions]) -> CpArguments:
    """Return the arguments of `mv`, checked; ValueError if they make no sense."""
    names = checked_addresses(sources, "sources")
    if not is_cloud(target):
        raise ValueError(
            f"`target` must begin with gs://, got {target!r}; to move an object here, copy it, then delete it"
        )
    return CpArguments.of(names, target, **options)


async def run_mv(storage: Storage, arguments: CpArguments) -> Summary:
    """Move what the checked arguments of `mv` name, and return the summary."""
    progress = Progress(arguments.on_event, warnings=set())
    with ExitStack() as stack:
        stack.enter_context(tracked(progress))
        target, kept = await decided_target(storage, arguments, progress, stack)
        items = plan_cp(storage, arguments, target)
        if arguments.dry_run:
            return await report_only([_moves(looked_up(storage, items))], progress)
        pool = WorkerPool(storage, progress, parallel=arguments.parallel, state=arguments.state)
        await pool.run(_moves(items))
        if kept is not None and pool.summary.ok:
            kept.forget()
        return pool.summary


async def _moves(items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    async with aclosing(items):
        async for item in items:
            if item.action is not Action.COPY:
                yield item
            elif item.source == item.target:  # possible with a key for new objects
                yield item.refused(TransferError("source and target are the same", "give it another key with cp"))
            else:
                yield replace(item, action=Action.MOVE)
