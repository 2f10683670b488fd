"""The ways in which an attempt is cut off, each as soon as the server has the request."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import anyio.lowlevel

from forbear.core.backoff import Constant
from forbear.policy import retry

OUTER = retry(on=Exception, attempts=3, backoff=Constant(0))

Send = Callable[[], Awaitable[object]]


class Failed(Exception):
    """The error of the function, which knows nothing of the request."""


class Arrival:
    """Tells tasks that the server has a request; the server calls `come`, in a thread of its own."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def come(self) -> None:
        """Count a request, and wake up whoever waits."""
        self.count += 1
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """Wait for the next request, and until its client waits for the response.

        While it still sends, `asyncio.wait_for` of Python 3.11 may swallow a cancellation.
        """
        await self._event.wait()
        self._event.clear()
        for _ in range(20):
            await anyio.lowlevel.checkpoint()


async def by_a_timeout(send: Send, arrival: Arrival) -> None:
    """The function limits the time of the request."""
    async with asyncio.timeout(None) as limit:
        loop = asyncio.get_running_loop()
        watching = asyncio.ensure_future(arrival.wait())
        watching.add_done_callback(lambda _: limit.reschedule(loop.time()))
        await send()


async def by_a_timeout_that_is_handled(send: Send, arrival: Arrival) -> None:
    """It raises an error of its own instead, without a chain."""
    with contextlib.suppress(TimeoutError):
        await by_a_timeout(send, arrival)
    raise Failed("too slow")


async def by_a_sibling(send: Send, arrival: Arrival) -> None:
    """Another task of the group fails."""

    async def fail() -> None:
        await arrival.wait()
        raise Failed("the other one")

    async with asyncio.TaskGroup() as group:
        group.create_task(_awaited(send))
        group.create_task(fail())


async def by_a_task(send: Send, arrival: Arrival) -> None:
    """The function cancels the request's task, and raises an error of its own."""
    sending = asyncio.ensure_future(send())
    await arrival.wait()
    sending.cancel()
    await asyncio.wait([sending])
    raise Failed("not needed any more")


WAYS = [by_a_timeout, by_a_timeout_that_is_handled, by_a_sibling, by_a_task]


async def _awaited(send: Send) -> None:
    await send()
