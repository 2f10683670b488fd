"""Threads for work that takes long, so that it does not block the event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

_STEPS = 64

_T = TypeVar("_T")


async def run_steps(steps: Iterator[object]) -> None:
    """Run an iterator to its end in threads, 64 steps at a time. When cancelled, it stops after the current steps."""
    while not await to_the_end(_take_some, steps):
        pass


async def to_the_end(function: Callable[..., _T], *values: Any) -> _T:
    """Call `function(*values)` in a thread of the loop's default executor, and return its result.

    When cancelled, it still waits for the function before it raises CancelledError. Otherwise the thread would continue
    with files that are closed by then, and whose descriptors are used again.
    """
    called = asyncio.get_running_loop().run_in_executor(None, partial(function, *values))
    try:
        await _let_others_run(called)
        return await asyncio.shield(called)
    except asyncio.CancelledError:
        while not called.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({called})
        raise


async def in_thread(function: Callable[..., _T], *values: Any) -> _T:
    """Call `function(*values)`, which may block for long, in a new daemon thread, and return its result.

    When cancelled, it does not wait for the function, which continues.
    """
    outcome: Future[_T] = Future()
    outcome.set_running_or_notify_cancel()  # a cancelled caller does not stop the function

    def run() -> None:
        try:
            outcome.set_result(function(*values))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True, name="forbear-stream").start()
    called = asyncio.wrap_future(outcome)
    await _let_others_run(called)
    return await called


async def _let_others_run(called: asyncio.Future[_T]) -> None:
    """Yield to the event loop if a thread is done already, as it can be since Python 3.14: to await it does not.

    Otherwise a task would be cancelled only after its next steps, such as the renaming of a file.
    """
    if called.done():
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop


def _take_some(steps: Iterator[object]) -> bool:
    for _ in range(_STEPS):
        try:
            next(steps)
        except StopIteration:
            return True
    return False
