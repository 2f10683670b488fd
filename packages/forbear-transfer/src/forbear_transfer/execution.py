"""Transfers on executors: items of a plan run in threads, in other processes or on other machines.

Each process that runs items keeps one Storage per Settings open, in a thread of its own. The thread ends after a second
without work, and at the end of the process.
"""

import asyncio
import atexit
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from forbear_transfer.errors import StrPath, TransferError, describe
from forbear_transfer.items import STREAM, Item, Outcome, Status, yield_each
from forbear_transfer.progress import Finished, Progress, TransferEvent, Warned
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.worker_pool import WorkerPool

_MOST_ITEMS = 50
_MOST_BYTES = 64 * 1024 * 1024
_SHARES = 64
_AGAIN = "run it again: finished items are recognised, and unfinished ones continue"
_LINGER = 1.0
_CLOSING = 5.0
"""Seconds that the end of the process waits for a thread to open or close its Storage."""

_T = TypeVar("_T")


def execute(
    items: Sequence[Item],
    executor: Executor,
    settings: Settings | None = None,
    *,
    state: StrPath | None = None,
    batch: int | None = None,
) -> Iterator[Outcome]:
    """Run items, such as those of `plan`, on an executor, and yield their outcomes as batches complete.

    The items are sent in batches, since each call takes a while. A batch has at most `batch` items, by default a 64th
    of all items, but 1 to 50. It has at most 64 MiB, unless it is a single item; unknown sizes count as 0. The items of
    a batch run concurrently. Nothing is sent before the first outcome is requested.

    `settings` say how to connect; `state` is the folder for what the next process needs to continue. If a call fails,
    for example because its worker died, all items of its batch have failed outcomes. ValueError, at once, for a `batch`
    below 1, and for standard input and output, which exist only in this process.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> items = plan("photos", "gs://my-bucket/copies", recursive=True)
    >>> with ThreadPoolExecutor() as executor:
    ...     [outcome.status.value for outcome in execute(items, executor)]
    ['done']
    """
    if any(STREAM in (item.source, item.target) for item in items):
        raise ValueError("standard input and output (-) cannot be sent to an executor: use `cp`")
    if batch is not None and batch < 1:
        raise ValueError(f"`batch` must be at least 1, got {batch}")
    most = batch or min(_MOST_ITEMS, max(1, len(items) // _SHARES))
    return _execute(items, executor, settings or Settings(), state, most)


def _execute(
    items: Sequence[Item], executor: Executor, settings: Settings, state: StrPath | None, most: int
) -> Iterator[Outcome]:
    running: dict[Future[list[Outcome]], list[Item]] = {}
    ended: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()  # `as_completed` never yields what a shutdown cancels
    try:
        for group in _group(items, most):
            try:
                future = executor.submit(perform_batch, group, settings, state)
            except RuntimeError as error:  # the pool is broken, or shut down
                yield from _fail(group, error)
            else:
                running[future] = group
                future.add_done_callback(ended.put)
        while running:
            future = ended.get()
            group = running.pop(future)
            failure = CancelledError() if future.cancelled() else future.exception()
            yield from future.result() if failure is None else _fail(group, failure)
    finally:
        for future in running:
            future.cancel()


def perform_one(item: Item, settings: Settings | None = None, *, state: StrPath | None = None) -> Outcome:
    """Run one item in this process, and return its outcome; for executors that `execute` cannot use.

    It blocks. If the item fails, or there are no credentials, the outcome has the error.

    >>> [item] = plan("photos/1.jpg", "gs://my-bucket/copy.jpg")
    >>> perform_one(item, Settings(connections=8)).status
    <Status.DONE: 'done'>
    """
    return perform_batch([item], settings or Settings(), state)[0]


def perform_batch(items: Sequence[Item], settings: Settings, state: StrPath | None) -> list[Outcome]:
    """Run items concurrently and return their outcomes as they complete, failed ones if nothing can be done."""
    try:
        return _run_in_thread(settings, lambda storage: _run(storage, items, state))
    except TransferError as error:  # such as missing credentials
        return [Outcome(item, Status.FAILED, error=str(error), hint=error.hint) for item in items]


async def _run(storage: Storage, items: Sequence[Item], state: StrPath | None) -> list[Outcome]:
    outcomes: list[Outcome] = []

    def collect(event: TransferEvent) -> None:
        if isinstance(event, Finished):
            outcomes.append(event.outcome)
        elif isinstance(event, Warned):
            warnings.warn(event.text, RuntimeWarning, stacklevel=2)

    parallel = min(len(items), storage.connections)
    await WorkerPool(storage, Progress(collect, warnings=set()), parallel=parallel, state=state).run(yield_each(items))
    return outcomes


def _group(items: Sequence[Item], most: int) -> Iterator[list[Item]]:
    group: list[Item] = []
    size = 0
    for item in items:
        if group and (len(group) == most or size + (item.size or 0) > _MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(item)
        size += item.size or 0
    if group:
        yield group


def _fail(items: Sequence[Item], error: BaseException) -> Iterator[Outcome]:
    for item in items:
        yield Outcome(item, Status.FAILED, error=describe(error), hint=_AGAIN)


class _StorageThread:
    """A thread with an open Storage; `opened` is the future of its loop and the Storage, `users` counts calls."""

    def __init__(self, settings: Settings) -> None:
        self.users = 0
        self.opened: Future[tuple[asyncio.AbstractEventLoop, Storage]] = Future()
        self.thread = threading.Thread(target=self._serve, name="forbear-transfer", daemon=True)
        self.settings = settings
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def linger(self) -> None:
        """Close the Storage and end the thread in a second, unless a call uses it then. Call it in the loop."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LINGER, self._close_if_unused)

    def stop(self) -> None:
        self._over.set()

    def _close_if_unused(self) -> None:
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


_threads: dict[Settings, _StorageThread] = {}
_lock = threading.RLock()  # one thread's greenlets enter it together: starting a thread lets others run


def _run_in_thread(settings: Settings, work: Callable[[Storage], Coroutine[Any, Any, _T]]) -> _T:
    """Run `work(storage)` in the thread for `settings`, which is started if there is none, and return its result."""
    with _lock:
        thread = _threads.get(settings)
        if thread is None:
            thread = _threads[settings] = _StorageThread(settings)  # before `start`, which lets greenlets run
            try:
                thread.thread.start()
            except Exception as error:  # the system has no more threads; the next call tries again
                _forget(thread)
                thread.opened.set_exception(error)
                raise
        thread.users += 1
    try:
        loop, storage = thread.opened.result()
        try:
            return asyncio.run_coroutine_threadsafe(work(storage), loop).result()
        finally:
            loop.call_soon_threadsafe(thread.linger)
    finally:
        with _lock:
            thread.users -= 1


def _forget(thread: _StorageThread) -> None:
    if _threads.get(thread.settings) is thread:
        del _threads[thread.settings]


@atexit.register
def _close() -> None:
    with _lock:
        threads = list(_threads.values())
        _threads.clear()
    for thread in threads:
        with suppress(Exception):  # it did not open
            loop, _ = thread.opened.result(_CLOSING)
            loop.call_soon_threadsafe(thread.stop)
            thread.thread.join(_CLOSING)


def _forget_threads() -> None:
    """Forget the threads after a fork: the child has none of them, and one may have held the lock."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
