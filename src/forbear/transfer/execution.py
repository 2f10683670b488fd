"""Execution: items on any executor, here, in other processes or on other machines. It knows no rule of any item."""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import suppress
from typing import Any, TypeVar

from forbear.transfer.errors import TransferError, said
from forbear.transfer.files import StrPath
from forbear.transfer.items import STREAM, Item, Outcome, QuietListener, Status
from forbear.transfer.storage.client import Settings, Storage
from forbear.transfer.workers.worker_pool import Fleet

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


_LINGER = 1.0
_LAST_WORDS = 5.0

_T = TypeVar("_T")


class _Engine:
    """A Storage that is open; `users` are at work with it."""

    def __init__(self, settings: Settings) -> None:
        self.users = 0
        self.opened: Future[tuple[asyncio.AbstractEventLoop, Storage]] = Future()
        self.thread = threading.Thread(target=self._serve, name="forbear-transfer", daemon=True)
        self.settings = settings
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def linger(self) -> None:
        """Close in a while unless there is something to do until then; called in the loop."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LINGER, self._leave)

    def stop(self) -> None:
        """Close now; called in the loop."""
        self._over.set()

    def _leave(self) -> None:
        with _lock:
            if self.users == 0:
                _forget(self)
                self.stop()

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            with _lock:
                _forget(self)
            if self.opened.done():
                raise
            self.opened.set_exception(error)

    async def _main(self) -> None:
        async with self.settings.storage() as storage:
            self.opened.set_result((asyncio.get_running_loop(), storage))
            await self._over.wait()


_engines: dict[Settings, _Engine] = {}
_lock = threading.Lock()


def run_here(settings: Settings, work: Callable[[Storage], Coroutine[Any, Any, _T]]) -> _T:
    """Run to the end what needs a Storage; called from any thread but an engine's own."""
    with _lock:
        engine = _engines.get(settings)
        if engine is None:
            engine = _engines[settings] = _Engine(settings)
            engine.thread.start()
        engine.users += 1
    try:
        loop, storage = engine.opened.result()
        try:
            return asyncio.run_coroutine_threadsafe(work(storage), loop).result()
        finally:
            loop.call_soon_threadsafe(engine.linger)
    finally:
        with _lock:
            engine.users -= 1


def _forget(engine: _Engine) -> None:
    if _engines.get(engine.settings) is engine:
        del _engines[engine.settings]


@atexit.register
def _close() -> None:
    with _lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        with suppress(Exception):  # it did not open
            loop, _ = engine.opened.result(_LAST_WORDS)
            loop.call_soon_threadsafe(engine.stop)
            engine.thread.join(_LAST_WORDS)


def _forked() -> None:
    """The threads are not in the child, and a lock might be held by one of them for ever."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
