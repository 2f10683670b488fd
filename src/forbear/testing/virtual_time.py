"""Virtual time: waits take no time, and end in their order. It knows clocks and event loops, and no retry rule.

Event loops are imported only where they run: every pytest run loads this module, whether it waits or not.
"""

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from heapq import heappop, heappush
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, SupportsIndex

from forbear.core import check
from forbear.run.runtime import Runtime, current, expired, in_trio

if TYPE_CHECKING:
    import asyncio

    import trio

# asyncio does not tell when all tasks are waiting. A task that hands on to others (by a queue, a group, a cancellation)
# takes a round of the loop for each; after so many without a new wait, nobody is taken to be under way.
_QUIET_ROUNDS = 50


class VirtualTime:
    """The clock that `virtual_time()` yields; in asyncio and trio it jumps to the next waiter when all tasks wait.

    A task that waits for real I/O or a thread counts as waiting, so time may jump while its answer is under way.
    Threads may share a clock, event loops only one after the other.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        """Every wait between attempts, sync and async, in seconds and in the order in which they began."""
        self._elapsed = 0.0
        self._began = time.time()
        self._lock = Lock()
        self._queue: list[tuple[float, int]] = []  # heap of the instant and number of each alarm, dropped ones too
        self._alarms: dict[int, Callable[[], None]] = {}
        self._numbers = count()
        self._quiet = 0
        self._driven_by: object = None  # the event loop in which time is being moved

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the block was entered."""
        return self._elapsed

    @property
    def now(self) -> float:
        """The virtual wall clock in seconds since the epoch; it starts at the real time."""
        return self._began + self._elapsed

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once, as sync code that takes this long would; not recorded in `slept`."""
        check.seconds("seconds", seconds)
        with self._lock:
            self._elapsed += seconds

    def sleep(self, seconds: float) -> None:
        """Advance, by the name of what it stands for in a scripted function."""
        self.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        """Let so many seconds pass for this task, as async code that takes this long would; not recorded in `slept`."""
        check.seconds("seconds", seconds)
        passed = _event()
        with self._alarm(seconds, passed.set):
            await passed.wait()

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncGenerator[None]:
        """Cut the block short with AttemptTimeout after so many virtual seconds."""
        if in_trio():
            import trio

            with trio.CancelScope() as scope, self._alarm(seconds, scope.cancel):
                yield
            if scope.cancelled_caught:
                raise expired(seconds)
        else:
            import asyncio

            loop = asyncio.get_running_loop()
            timer = asyncio.timeout(None)
            try:
                async with timer:
                    with self._alarm(seconds, lambda: timer.reschedule(loop.time())):
                        yield
            except TimeoutError as error:
                if timer.expired():
                    raise expired(seconds) from error
                raise

    @contextmanager
    def _alarm(self, seconds: float, ring: Callable[[], None]) -> Generator[None]:
        """Call `ring` in so many seconds, unless the block ends before."""
        number = next(self._numbers)
        heappush(self._queue, (self._elapsed + seconds, number))
        self._alarms[number] = ring
        self._quiet = 0
        self._drive()
        try:
            yield
        finally:
            self._alarms.pop(number, None)
            self._quiet = 0

    def _drive(self) -> None:
        """Have time moved in the running event loop until no alarm is left, if it is not already."""
        if in_trio():
            import trio

            token = trio.lowlevel.current_trio_token()
            if self._driven_by is not token:
                self._driven_by = token
                trio.lowlevel.spawn_system_task(self._drive_trio, name="forbear.virtual_time")
        else:
            import asyncio

            loop = asyncio.get_running_loop()
            if self._driven_by is not loop:
                self._driven_by = loop
                loop.call_soon(self._drive_asyncio, loop)

    async def _drive_trio(self) -> None:
        from trio.testing import wait_all_tasks_blocked

        while self._alarms:
            await wait_all_tasks_blocked()
            self._ring_next()
        self._driven_by = None

    def _drive_asyncio(self, loop: "asyncio.AbstractEventLoop") -> None:
        """One round of the loop; asyncio has no way to ask whether another callback is ready."""
        if not self._alarms:
            self._driven_by = None
            return
        self._quiet += 1
        if self._quiet > _QUIET_ROUNDS:
            self._ring_next()
            self._quiet = 0
        loop.call_soon(self._drive_asyncio, loop)

    def _ring_next(self) -> None:
        """Jump to the next alarm, unless time has passed it already, and ring all that are due."""
        with self._lock:
            while self._queue and self._queue[0][1] not in self._alarms:
                heappop(self._queue)
            if self._queue and self._queue[0][0] > self._elapsed:
                self._elapsed = self._queue[0][0]
        while self._queue and self._queue[0][0] <= self._elapsed:
            ring = self._alarms.pop(heappop(self._queue)[1], None)
            if ring is not None:
                ring()


class VirtualRuntime(Runtime):
    """The runtime that has its clock and sleep from `time`, and its randomness from a seed, if there is one."""

    def __init__(self, time: VirtualTime, seed: int | None) -> None:
        self.time = time
        if seed is not None:
            from random import Random

            self.random = Random(seed).random

    def monotonic(self) -> float:
        """The virtual seconds."""
        return self.time.elapsed

    def now(self) -> float:
        """The virtual wall clock."""
        return self.time.now

    def sleep(self, seconds: SupportsIndex | float) -> None:
        """Record a wait and let it pass."""
        self.time.slept.append(float(seconds))
        self.time.advance(float(seconds))

    async def asleep(self, seconds: float) -> None:
        """Record a wait and let it pass for this task."""
        self.time.slept.append(seconds)
        await self.time.asleep(seconds)

    def within(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """Cut the block short after so many virtual seconds."""
        return self.time.within(seconds)


def _event() -> "asyncio.Event | trio.Event":
    if in_trio():
        import trio

        return trio.Event()
    import asyncio

    return asyncio.Event()


def clock() -> VirtualTime:
    """The clock by which the caller's runs go; RuntimeError where that is the real one."""
    runtime = current.get()
    if not isinstance(runtime, VirtualRuntime):
        raise RuntimeError("there is no virtual time here: do this within `with virtual_time():`")
    return runtime.time


@contextmanager
def virtual_time(seed: int | None = None) -> Generator[VirtualTime]:
    """Within the block no retry waits: it moves a virtual clock instead, in this thread or task and what they start.

    With a `seed` the jitter is the same every time; without one (default) it stays random. Blocks may be nested; each
    has a clock of its own. Threads see the clock if they run in a copy of the context (`asyncio.to_thread` does).
    """
    time = VirtualTime()
    token = current.set(VirtualRuntime(time, seed))
    try:
        yield time
    finally:
        current.reset(token)
