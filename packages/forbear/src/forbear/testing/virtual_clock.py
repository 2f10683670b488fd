"""Virtual time: waits take no real time, and end in the order in which they would.

Functions import asyncio and trio when they need them, because every pytest run loads this module.
"""

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from heapq import heappop, heappush
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from forbear.core import check
from forbear.run.runtime import Runtime, current, in_trio, make_timeout

if TYPE_CHECKING:
    import asyncio

    import trio

    from forbear.run.runtime import StopEvent

# asyncio does not say when all tasks are waiting. A task that wakes another (by a queue, a group, a cancellation) takes
# one round of the loop. After so many rounds without a new wait, all tasks count as waiting.
_QUIET_ROUNDS = 50


class VirtualTime:
    """The clock that `virtual_time()` yields; in asyncio and trio it jumps to the next alarm when all tasks wait.

    A task that waits for real I/O or a thread counts as waiting, so time may jump before its result arrives. Threads
    can share a clock; event loops can use it one after the other. Example: see `virtual_time`.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        """The waits between attempts, sync and async, in seconds, in the order in which they began."""
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
        """Return the virtual seconds since the block began."""
        return self._elapsed

    @property
    def now(self) -> float:
        """Return the virtual wall clock in seconds since the epoch; it starts at the real time."""
        return self._began + self._elapsed

    def advance(self, seconds: float) -> None:
        """Move the clock on by so many seconds, for sync code that takes this long; `slept` does not record it."""
        check.seconds("seconds", seconds)
        with self._lock:
            self._elapsed += seconds

    def sleep(self, seconds: float) -> None:
        """Move the clock on at once, exactly as `advance` does; for scripted functions that would sleep."""
        self.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        """Let so many virtual seconds pass for this task, as async code that takes time; `slept` does not record it."""
        check.seconds("seconds", seconds)
        passed = _event()
        with self._alarm(seconds, passed.set):
            await passed.wait()

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncGenerator[None]:
        """End the block with AttemptTimeout after so many virtual seconds."""
        if in_trio():
            import trio

            with trio.CancelScope() as scope, self._alarm(seconds, scope.cancel):
                yield
            if scope.cancelled_caught:
                raise make_timeout(seconds)
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
                    raise make_timeout(seconds) from error
                raise

    @contextmanager
    def _alarm(self, seconds: float, ring: Callable[[], None]) -> Generator[None]:
        """Call `ring` once so many virtual seconds have passed, unless the block ends before; for async code only."""
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
        """Start to move time in the running event loop, until no alarm is left; do nothing if it moves already."""
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
        """Count one round of the loop, and ring the next alarm after over 50 in which no wait began or ended."""
        if not self._alarms:
            self._driven_by = None
            return
        self._quiet += 1
        if self._quiet > _QUIET_ROUNDS:
            self._ring_next()
            self._quiet = 0
        loop.call_soon(self._drive_asyncio, loop)

    def _ring_next(self) -> None:
        """Move the clock to the next alarm, unless it is past that already, and ring all alarms that are due."""
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
    """A runtime with the clock and sleep of `time`, and with randomness from `seed` (None: real randomness)."""

    def __init__(self, time: VirtualTime, seed: int | None) -> None:
        self.time = time
        if seed is not None:
            from random import Random

            self.random = Random(seed).random

    def monotonic(self) -> float:
        """Return the virtual seconds since the block began, as a new object: a run is known by its start."""
        return self.time.elapsed + 0.0

    def now(self) -> float:
        """Return the virtual wall clock in seconds since the epoch."""
        return self.time.now

    def sleep(self, seconds: float) -> None:
        """Record a wait in `slept`, and move the clock on by it."""
        self.time.slept.append(float(seconds))
        self.time.advance(float(seconds))

    async def pause(self, seconds: float) -> None:
        """Block for so many real seconds, because I/O takes real time; no virtual time passes."""
        time.sleep(seconds)  # noqa: TID251, ASYNC251 - a millisecond, for a response on loopback

    def sleep_unless(self, events: "tuple[StopEvent, ...]", seconds: float) -> None:
        """Record a wait in `slept`, and move the clock on by it; real events cannot be set during a virtual wait."""
        self.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Record a wait in `slept`, and let it pass for this task in virtual time."""
        self.time.slept.append(seconds)
        await self.time.asleep(seconds)

    def within(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """End the block with AttemptTimeout after so many virtual seconds."""
        return self.time.within(seconds)


def _event() -> "asyncio.Event | trio.Event":
    if in_trio():
        import trio

        return trio.Event()
    import asyncio

    return asyncio.Event()


def clock() -> VirtualTime:
    """Return the virtual clock of this context; RuntimeError outside `virtual_time()`."""
    runtime = current.get()
    if not isinstance(runtime, VirtualRuntime):
        raise RuntimeError("there is no virtual time here: do this within `with virtual_time():`")
    return runtime.time


@contextmanager
def virtual_time(seed: int | None = None) -> Generator[VirtualTime]:
    """Replace the waits of retries within the block by moves of a virtual clock, and yield that clock.

    It applies to this thread or task and the tasks that it starts. Threads see the clock if they run in a copy of the
    context, as those of `asyncio.to_thread` do. With a `seed` the jitter is the same every time; without one (default)
    it stays random. Blocks can be nested; each has its own clock.

    >>> with virtual_time(seed=7) as time:
    ...     forbear.retry(OSError).call(Script(OSError, OSError, "done"))
    ...     len(time.slept), time.elapsed == sum(time.slept)
    'done'
    (2, True)
    """
    time = VirtualTime()
    token = current.set(VirtualRuntime(time, seed))
    try:
        yield time
    finally:
        current.reset(token)
