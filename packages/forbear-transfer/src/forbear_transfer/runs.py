"""Runs of plans: their options, dry runs, and a Storage that is opened for one call."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self, TypeVar

from forbear.adapters import dataclass
from forbear_transfer.errors import StrPath, TargetChanged, TransferError
from forbear_transfer.items import Action, Item, Outcome, Status, Summary
from forbear_transfer.objects import Url
from forbear_transfer.progress import Listener, Progress
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.versions import explain_absence
from forbear_transfer.workers.worker_pool import WorkerPool

_T = TypeVar("_T")

Work = Callable[[Storage], Coroutine[Any, Any, Summary]]
"""The work of a command over an open Storage, once its arguments are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The options of a run, which the docstring of `cp` describes."""

    dry_run: bool = False
    manifest: StrPath | None = None
    on_event: Listener | None = None
    parallel: int | None = None
    state: StrPath | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the settings in keyword options, and leave out other options; ValueError if they make no sense."""
        run = cls(**{name: options[name] for name in cls.__annotations__ if name in options})
        if run.parallel is not None and run.parallel < 1:
            raise ValueError(f"`parallel` must be at least 1, got {run.parallel}")
        return run

    def worker_pool(self, storage: Storage, progress: Progress, stack: ExitStack, *, skips: bool = True) -> WorkerPool:
        """Return a pool of workers, with an open manifest, which `stack` closes, if one is named."""
        manifest = None
        if self.manifest is not None:
            from forbear_transfer.workers.manifest import Manifest  # needs csv

            manifest = stack.enter_context(Manifest(self.manifest, skips=skips))
        return WorkerPool(storage, progress, parallel=self.parallel, manifest=manifest, state=self.state)


async def look_up(storage: Storage, items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """Yield the items of a dry run, with the skips and failures that the copy or move would have.

    An item fails if its source does not exist, or its target is not the version that the user has named. One with
    `no_clobber` whose target exists is skipped.
    """
    async for item in items:
        try:
            yield await _look_at(storage, item)
        except (TransferError, OSError) as error:
            yield item.refuse(error)


async def _look_at(storage: Storage, item: Item) -> Item:
    source, target = item.source, item.target
    if item.action not in (Action.COPY, Action.MOVE):
        return item
    if isinstance(source, Url) and item.object is None and await storage.stat(source) is None:
        return item.refuse(await explain_absence(storage, source))
    if item.no_clobber:
        exists = await storage.stat(target) if isinstance(target, Url) else os.path.lexists(target)  # noqa: ASYNC240
        return item.skip(f"{target} exists already") if exists else item
    if item.is_required and isinstance(target, Url):
        there = await storage.stat(target)
        if (0 if there is None else there.generation) != item.generation:
            return item.refuse(TargetChanged(f"{target} is not generation {item.generation}"))
    return item


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
            progress.emit_outcome(outcome)
        if not summary.ok:
            break
    return summary


def list_blocking(settings: Settings | None, list_all: Callable[[Storage], AsyncIterator[_T]], other: str) -> list[_T]:
    """Return all that `list_all` yields; otherwise as `run_blocking`."""

    async def collect(storage: Storage) -> list[_T]:
        return [one async for one in list_all(storage)]

    return run_blocking(settings, collect, other)


def run_blocking(settings: Settings | None, work: Callable[[Storage], Coroutine[Any, Any, _T]], other: str) -> _T:
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
