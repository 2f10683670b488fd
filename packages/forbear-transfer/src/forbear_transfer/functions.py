"""cp, rsync and plan as functions: blocking ones, and async ones (acp, arsync, aplan) that share an open Storage."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Unpack

from forbear.adapters import current_runtime, replace
from forbear_transfer.errors import StrPath
from forbear_transfer.items import Item, Summary
from forbear_transfer.metadata import with_keywords
from forbear_transfer.objects import is_cloud
from forbear_transfer.plans.arguments import CpOptions, PlanOptions, RsyncOptions, make_copy_plan, prepare_rsync_plan
from forbear_transfer.plans.cp import CopyPlan
from forbear_transfer.plans.targets import CopyTarget
from forbear_transfer.progress import Progress, tracked
from forbear_transfer.runs import RunSettings, Work, look_up, report_only, run_blocking
from forbear_transfer.state import State
from forbear_transfer.storage.client import Settings, Storage

if TYPE_CHECKING:
    from forbear_transfer.plans.rsync import RsyncPlan

_WEEK = 7 * 24 * 60 * 60.0


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
    - `literal` says that the sources are names, even with wildcards or a # in them. With False they are patterns or
      versions. By default, what exists under the exact name comes before a pattern.
    - `no_clobber` skips files and objects that exist at the target.
    - `generation` is the version of the target that may be replaced, 0 for none; otherwise the copy fails. It is for a
      single file or object.
    - `exclude` is a regular expression, or several. Files and objects are left out if one matches their name below the
      source folder from its beginning. With `include`, those that none of its expressions matches are left out, too.
    - `dry_run` changes nothing: each item is a Finished event that says what would be done.
    - `gzip` compresses uploads on the way; the objects get "Content-Encoding: gzip". `packed` leaves such objects
      compressed when they are downloaded.
    - `verify_source` reads each file a second time before its last byte is sent, and compares the CRC32Cs.
    - `preserve_posix` keeps the permissions of files: uploads add them to the metadata in the key that gsutil and
      gcloud use, and downloads set them. The modification time is always kept.
    - `links` is "follow" or "skip", for symbolic links below source folders. By default they are followed, and the
      first one that leads out of its folder is the subject of a warning.
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

    >>> summary = cp("photos/1.jpg", "gs://my-bucket/copies/", content_type="image/jpeg")
    >>> summary.done, summary.bytes, summary.failures
    (1, 7, [])
    """
    return run_blocking(settings, prepare_cp(sources, target, **options), "acp")


@with_keywords(CpOptions)
async def acp(
    storage: Storage, sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[CpOptions]
) -> Summary:
    """Do what `cp` does, with the same options, over an open Storage and without blocking; return the Summary.

    Example: see `cp`.
    """
    return await prepare_cp(sources, target, **options)(storage)


def prepare_cp(sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[CpOptions]) -> Work:
    """Check the arguments of `cp`, and return what does it; ValueError or TypeError if they make no sense."""
    plan, run = make_copy_plan("cp", CpOptions, sources, target, options), RunSettings.of(options)
    if run.dry_run and run.manifest is not None:
        raise ValueError("`manifest` does not go with `dry_run`, which records nothing; leave one of them out")
    return partial(run_copies, plan=plan, run=run)


async def run_copies(storage: Storage, plan: CopyPlan, run: RunSettings) -> Summary:
    """Copy or move what a plan finds, and return the summary. A dry run only reports it."""
    progress = Progress(run.on_event, warnings=set())
    with ExitStack() as stack:
        stack.enter_context(tracked(progress))
        plan = await plan.settle(storage)
        target, kept = await _decide_target(storage, plan, run, progress, stack)
        items = plan.items(storage, target)
        ordered = None
        if plan.may_overlap(target):
            from forbear_transfer.plans.order import OrderedItems  # needs pickle

            ordered = stack.enter_context(OrderedItems())
            await ordered.fill(items)
        if run.dry_run:
            parts = [items] if ordered is None else [ordered.items_of(number) for number in range(ordered.rounds)]
            return await report_only([look_up(storage, part) for part in parts], progress)
        pool = run.worker_pool(storage, progress, stack)
        if ordered is None:
            await pool.run(items)
        else:
            for number in range(ordered.rounds):
                part = ordered.items_of(number, allowed=pool.summary.ok)
                await pool.run(part, complete=number == ordered.rounds - 1)
        if kept is not None and pool.summary.ok:
            kept.forget()
        return pool.summary


async def _decide_target(
    storage: Storage, plan: CopyPlan, run: RunSettings, progress: Progress, stack: ExitStack
) -> tuple[CopyTarget, State | None]:
    """Return the target of the copies, and the State that remembers whether it was absent, None if none is needed.

    A target folder that does not exist before the first run exists at the second, which must not copy below it. So the
    state remembers that it was absent, until everything is done, or for a week: the server forgets upload sessions by
    then, too. `stack` closes the state.
    """
    target = await plan.find_target(storage)
    if not plan.depends:
        return target, None
    names = [_absolute(plan.sources[0].text), _absolute(plan.target)]
    kept = stack.enter_context(State(run.state, "cp", storage.endpoint, *names, warn=progress.warned))
    now = current_runtime().now()
    if now - kept.load().get("absent", float("-inf")) < _WEEK:
        return replace(target, folder=False), kept
    if run.dry_run:
        kept.forget()  # the file that was made to look
    elif not target.folder:
        kept.save({"absent": now})
    return target, kept


@with_keywords(RsyncOptions)
def rsync(
    source: StrPath, target: StrPath, *, settings: Settings | None = None, **options: Unpack[RsyncOptions]
) -> Summary:
    """Make the folder `target` have what the folder `source` has, and return the Summary. At least one is in the cloud.

    Without `recursive`, only the files directly in it count; a skipped item says which folders are left out. `delete`
    deletes what only the target has, once all copies have succeeded, and never what `exclude` matches or `include`
    leaves out. If there are more than `max_delete` of them, or the source has nothing to copy, nothing is deleted, and
    the run fails. `checksum` compares the CRC32C of local files instead of their modification times; `size_only`
    compares nothing but sizes. `update` skips what is newer at the target. `dry_run` changes nothing: each item is a
    Finished event that says what would be done.

    `manifest` is a file that records the outcomes; unlike that of `cp`, it skips nothing. The other options are those
    of `cp`. Objects that are the same keep their metadata. It blocks: RuntimeError inside a running event loop.

    >>> rsync("photos", "gs://my-bucket/mirror", recursive=True).done
    1
    >>> rsync("photos", "gs://my-bucket/mirror", recursive=True).done
    0
    """
    return run_blocking(settings, prepare_rsync(source, target, **options), "arsync")


@with_keywords(RsyncOptions)
async def arsync(storage: Storage, source: StrPath, target: StrPath, **options: Unpack[RsyncOptions]) -> Summary:
    """Do what `rsync` does, with the same options, over an open Storage and without blocking; return the Summary.

    Example: see `rsync`.
    """
    return await prepare_rsync(source, target, **options)(storage)


def prepare_rsync(source: StrPath, target: StrPath, **options: Unpack[RsyncOptions]) -> Work:
    """Check the arguments of `rsync`, and return what does it; ValueError or TypeError if they make no sense."""
    return partial(_run_rsync, make_plan=prepare_rsync_plan(source, target, options), run=RunSettings.of(options))


async def _run_rsync(storage: Storage, make_plan: "Callable[[Storage], RsyncPlan]", run: RunSettings) -> Summary:
    """Make the target have what the source has, and return the summary. A dry run only reports what it would do.

    Deletions come last, and only if nothing failed; otherwise a skipped item says how many are left.
    """
    plan, progress = make_plan(storage), Progress(run.on_event, warnings=set())
    with ExitStack() as stack:
        stack.enter_context(tracked(progress))
        if run.dry_run:
            parts = [plan.copies(), plan.deletions(allowed=True), plan.list_blocked(allowed=True)]
            return await report_only(parts, progress)
        pool = run.worker_pool(storage, progress, stack, skips=False)
        await pool.run(plan.copies(), complete=not plan.rules.delete)
        if plan.rules.delete:
            await pool.run(plan.deletions(allowed=pool.summary.ok), complete=False)
            await pool.run(plan.list_blocked(allowed=pool.summary.ok))
        return pool.summary


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

    >>> [item] = plan("photos", "gs://my-bucket/", recursive=True, cache_control="no-store")
    >>> str(item.target), item.action.value, item.metadata.cache_control
    ('gs://my-bucket/photos/1.jpg', 'copy', 'no-store')
    """
    made = make_copy_plan("plan", PlanOptions, sources, target, options)
    return run_blocking(settings, lambda storage: _list_items(storage, made), "aplan")


@with_keywords(PlanOptions)
async def aplan(
    storage: Storage, sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[PlanOptions]
) -> list[Item]:
    """Return the items of a copy as `plan` does, over an open Storage and without blocking. Example: see `plan`."""
    return await _list_items(storage, make_copy_plan("aplan", PlanOptions, sources, target, options))


async def _list_items(storage: Storage, made: CopyPlan) -> list[Item]:
    made = await made.settle(storage)
    target = await made.find_target(storage)
    items = made.items(storage, target)
    if not made.may_overlap(target):
        return [item async for item in items]
    from forbear_transfer.plans.order import OrderedItems

    with OrderedItems() as ordered:
        await ordered.fill(items)
        if ordered.rounds > 1:
            raise ValueError("`sources`: some would be replaced by copies of others, so their order counts; use `cp`")
        return [item async for item in ordered.items_of(0)]


def _absolute(address: str) -> str:
    return address if is_cloud(address) else os.path.abspath(address)
