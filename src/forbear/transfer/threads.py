"""Threads for what takes long, so that the event loop goes on. They know no transfer."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

_STEPS = 64

_T = TypeVar("_T")


async def in_steps(steps: Iterator[object]) -> None:
    """Run an iterator to its end in threads, some steps at a time; cancelled, it ends with those under way."""
    while not await to_the_end(_some, steps):
        pass


async def to_the_end(function: Callable[..., _T], *values: Any) -> _T:
    """Call a function in a thread; cancelled, it waits for the function all the same.

    Otherwise a thread would go on with files that are closed by then, and whose numbers others have.
    """
    called = asyncio.get_running_loop().run_in_executor(None, partial(function, *values))
    try:
        return await asyncio.shield(called)
    except asyncio.CancelledError:
        while not called.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({called})
        raise


async def in_thread(function: Callable[..., _T], *values: Any) -> _T:
    """Call a function that may wait for long; nobody waits for its thread when the call is cancelled."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def tell(value: _T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, failure = None, None
        try:
            value = function(*values)
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(tell, value, failure)

    threading.Thread(target=run, daemon=True, name="forbear-stream").start()
    return await outcome


def _some(steps: Iterator[object]) -> bool:
    """Make some steps; whether the end is reached."""
    for _ in range(_STEPS):
        try:
            next(steps)
        except StopIteration:
            return True
    return False
