"""Attempt timeouts for coroutines, in asyncio and trio. There is none for sync code: a thread cannot be stopped."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from forbear.core.decide import show
from forbear.run.errors import AttemptTimeout
from forbear.run.runtime import in_trio


@asynccontextmanager
async def within(seconds: float) -> AsyncGenerator[None]:
    """Cut the block short after so many seconds: AttemptTimeout. A TimeoutError of the block's own passes through."""
    if in_trio():
        import trio

        with trio.move_on_after(seconds) as scope:
            yield
        if scope.cancelled_caught:
            raise expired(seconds)
    else:
        import asyncio

        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                yield
        except TimeoutError as error:
            if timer.expired():
                raise expired(seconds) from error
            raise


def expired(seconds: float) -> AttemptTimeout:
    """The error of an attempt that took longer than `seconds`."""
    return AttemptTimeout(f"the attempt was cut short after {show(seconds)}")
