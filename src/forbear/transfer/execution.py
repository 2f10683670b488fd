"""Execution: items on any executor, here, in other processes or on other machines. It knows no rule of any item."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed

from forbear.transfer.engine import run_here
from forbear.transfer.errors import TransferError, said
from forbear.transfer.files import StrPath
from forbear.transfer.items import STREAM, Item, Outcome, QuietListener, Status
from forbear.transfer.storage.settings import Settings
from forbear.transfer.storage.storage import Storage
from forbear.transfer.workers.fleet import Fleet

_MOST_ITEMS = 50
_MOST_BYTES = 64 * 1024 * 1024
_SHARES = 64
_AGAIN = "run it again: what is done already is found out, and what was begun goes on"


def execute(
    items: Sequence[Item],
    executor: Executor,
    settings: Settings | None = None,
    *,
    state: StrPath | None = None,
    batch: int | None = None,
) -> Iterator[Outcome]:
    """Do items, such as those of `plan`, on an executor, and yield what comes of each, in the order of completion.

    They go there in batches of at most `batch` (by default a 64th of them, 50 at most) and 64 MiB, since each call
    takes a while; those of a batch are done side by side. A worker that dies fails its items, not the others.
    ValueError for standard input and output, which are only here.
    """
    if any(STREAM in (item.source, item.target) for item in items):
        raise ValueError("standard input and output (-) cannot be sent to an executor: use `cp`")
    if batch is not None and batch < 1:
        raise ValueError(f"`batch` must be at least 1, got {batch}")
    return _execute(items, executor, settings or Settings(), state, batch or _batch(len(items)))


def _execute(
    items: Sequence[Item], executor: Executor, settings: Settings, state: StrPath | None, batch: int
) -> Iterator[Outcome]:
    under_way: dict[Future[list[Outcome]], list[Item]] = {}
    try:
        for group in _groups(items, batch):
            try:
                under_way[executor.submit(perform_batch, group, settings, state)] = group
            except RuntimeError as error:  # the pool is broken, or shut down
                yield from _failed(group, error)
        for future in as_completed(under_way):
            group = under_way.pop(future)
            failure = future.exception()
            yield from future.result() if failure is None else _failed(group, failure)
    finally:
        for future in under_way:
            future.cancel()


def perform_one(item: Item, settings: Settings | None = None, *, state: StrPath | None = None) -> Outcome:
    """Do one item in this process, for executors that `execute` does not know; what goes wrong is in the outcome."""
    return perform_batch([item], settings or Settings(), state)[0]


def perform_batch(items: Sequence[Item], settings: Settings, state: StrPath | None) -> list[Outcome]:
    """Do some items side by side in this process; what goes wrong is in the outcomes."""
    try:
        return run_here(settings, lambda storage: _run(storage, items, state))
    except TransferError as error:  # for want of credentials, say
        return [Outcome(item, Status.FAILED, error=str(error), hint=error.hint) for item in items]


async def _run(storage: Storage, items: Sequence[Item], state: StrPath | None) -> list[Outcome]:
    collected = _Collected()
    fleet = Fleet(storage, parallel=min(len(items), storage.connections), listener=collected, state=state)
    await fleet.run(_each(items))
    return collected.outcomes


async def _each(items: Sequence[Item]) -> AsyncGenerator[Item]:
    for item in items:
        yield item


def _batch(count: int) -> int:
    return min(_MOST_ITEMS, max(1, count // _SHARES))


def _groups(items: Sequence[Item], batch: int) -> Iterator[list[Item]]:
    group: list[Item] = []
    size = 0
    for item in items:
        if group and (len(group) == batch or size + (item.size or 0) > _MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(item)
        size += item.size or 0
    if group:
        yield group


def _failed(items: Sequence[Item], error: BaseException) -> Iterator[Outcome]:
    """What is known of items whose worker did not return."""
    for item in items:
        yield Outcome(item, Status.FAILED, error=said(error), hint=_AGAIN)


class _Collected(QuietListener):
    """Keeps what came of items."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def ended(self, outcome: Outcome) -> None:
        """Keep it."""
        self.outcomes.append(outcome)
