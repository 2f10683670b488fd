"""The runtime: the clock, sleep, randomness and attempt timeouts of a run; `current` holds the caller's.

Everything else reads the time and waits through a runtime, so that virtual time can replace the real one.
"""

import sys
import time
from contextvars import ContextVar, Token
from functools import cached_property

from forbear.core import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Timeout
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Protocol

    from trio import CancelScope

    class StopEvent(Protocol):
        """The protocol of an event, such as a threading.Event."""

        def is_set(self) -> bool:
            """Return whether the event is set."""
            ...

        def wait(self, timeout: float, /) -> object:
            """Return once the event is set, or after `timeout` seconds."""
            ...


_GLANCE = 0.05
"""Seconds between looks at the events of `stop_on`, where none of them can be waited for."""


class AttemptTimeout(TimeoutError):
    """The error of an attempt that took longer than `attempt_timeout`, or than what was left of `timeout`.

    The attempt may have been executed.

    >>> issubclass(forbear.AttemptTimeout, TimeoutError)
    True
    """


def make_timeout(seconds: float) -> AttemptTimeout:
    """Return the AttemptTimeout of an attempt that took longer than `seconds`."""
    from forbear.text.duration import show  # `import forbear` does not load it

    return AttemptTimeout(f"the attempt was cut short after {show(seconds)}")


def in_trio() -> bool:
    """Return whether the caller is a trio task; the alternative is asyncio. Imports neither library."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


def is_in_event_loop() -> bool:
    """Return whether the caller runs in the thread of an event loop that runs, of asyncio or trio; imports neither."""
    events = sys.modules.get("asyncio.events")
    find = getattr(events, "_get_running_loop", None)  # written in C; uvloop sets what it returns, too
    return (find is not None and find() is not None) or in_trio()


class within:  # noqa: N801 - used like a function
    """`async with within(seconds)` cancels its block after so many seconds and raises AttemptTimeout.

    Works in asyncio and trio. A TimeoutError that the block itself raises earlier passes through. Sync code has no such
    timeout: a thread cannot be stopped.
    """

    __slots__ = ("_scope", "_seconds", "_timer")

    _timer: "Timeout | None"
    _scope: "CancelScope"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> None:
        if in_trio():
            import trio

            self._timer = None
            self._scope = trio.move_on_after(self._seconds)
            self._scope.__enter__()
        else:
            import asyncio

            self._timer = asyncio.timeout(self._seconds)
            await self._timer.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        if self._timer is None:
            self._scope.__exit__(kind, error, traceback)
            if self._scope.cancelled_caught:
                raise make_timeout(self._seconds)
            return
        try:
            await self._timer.__aexit__(kind, error, traceback)
        except TimeoutError as timed_out:
            error = timed_out
        if isinstance(error, TimeoutError) and self._timer.expired():
            raise make_timeout(self._seconds) from error


class Runtime:
    """The real clock, sleep and randomness; tests replace it with a virtual one by `current.set()`.

    `monotonic()` is for durations, and `now()` is the wall clock in epoch seconds.

    >>> from forbear.testing import virtual_time
    >>> with virtual_time() as time:
    ...     current_runtime().sleep(60)
    ...     time.elapsed
    60.0
    """

    monotonic = staticmethod(time.monotonic)
    now = staticmethod(time.time)

    def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds, by the `time.sleep` that gevent or eventlet may have replaced since the import."""
        time.sleep(seconds)

    @cached_property
    def random(self) -> "Callable[[], float]":
        """The function `random.random`, uniform in [0, 1); Python seeds it anew in a forked child."""
        from random import random  # on the first failure, not at import: it costs as much as all of forbear

        return random

    def asleep(self, seconds: float) -> "Awaitable[None]":
        """Return an awaitable that sleeps for so many seconds: of trio in a trio task, else of asyncio."""
        if in_trio():
            import trio

            return trio.sleep(seconds)  # noqa: ASYNC105 - the caller awaits it
        import asyncio

        return asyncio.sleep(seconds)

    def pause(self, seconds: float) -> "Awaitable[None]":
        """Return an awaitable that lets other tasks run for so many real seconds, while I/O goes on."""
        return Runtime.asleep(self, seconds)

    def sleep_unless(self, events: "tuple[StopEvent, ...]", seconds: float) -> None:
        """Sleep for so many seconds, or until one of the `events` is set.

        The main thread looks at them every 0.05 seconds. A signal handler runs there: if it set a threading.Event that
        the same thread waits for, it could wait for ever for the event's own lock.
        """
        from threading import current_thread, main_thread

        if len(events) == 1 and current_thread() is not main_thread():
            events[0].wait(seconds)
            return
        end = time.monotonic() + seconds
        while not any(event.is_set() for event in events):
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _GLANCE))

    def within(self, seconds: float) -> "AbstractAsyncContextManager[None]":
        """Return a context manager for `async with` that cancels its block after so many seconds.

        It raises AttemptTimeout then.
        """
        return within(seconds)


class FastClock(Runtime):
    """A runtime in which time runs `factor` times faster: real waits, but shorter ones.

    Set it in `current` for demonstrations against real servers. Durations that it takes and returns are fast seconds:
    with a factor of 60, `sleep(60)` takes one real second and adds 60 to `monotonic()`. Timeouts of client libraries
    stay in real seconds.
    """

    def __init__(self, factor: float) -> None:
        check.at_least("factor", factor, 1, what="a number of fast seconds in a real one")
        self.factor = factor
        self._began = Runtime.now()
        self._began_at = Runtime.monotonic()

    def monotonic(self) -> float:
        return Runtime.monotonic() * self.factor

    def now(self) -> float:
        """Return the wall clock in epoch seconds; it was right when the runtime was made, and has run fast since."""
        return self._began + (Runtime.monotonic() - self._began_at) * self.factor

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / self.factor)

    def sleep_unless(self, events: "tuple[StopEvent, ...]", seconds: float) -> None:
        super().sleep_unless(events, seconds / self.factor)

    def asleep(self, seconds: float) -> "Awaitable[None]":
        return super().asleep(seconds / self.factor)

    def within(self, seconds: float) -> "AbstractAsyncContextManager[None]":
        return super().within(seconds / self.factor)


class _Current:
    """The caller's runtime, in a context variable: `get` returns it, `set` and `reset` change it.

    `clock` returns its monotonic time in seconds. Until the first `set` in the process that is the real clock, without
    looking the variable up.
    """

    __slots__ = ("_real", "_variable", "clock", "get")

    def __init__(self) -> None:
        self._real = Runtime()
        self._variable: ContextVar[Runtime] = ContextVar("forbear_runtime", default=self._real)
        self.clock: Callable[[], float] = time.monotonic
        """The caller's monotonic clock; every run begins with it."""
        self.get: Callable[[], Runtime] = self._variable.get

    def set(self, runtime: Runtime) -> "Token[Runtime]":
        """Replace the runtime in this thread or task and in the tasks that it starts; return the token for `reset`."""
        self.clock = self._look_up
        return self._variable.set(runtime)

    def reset(self, token: "Token[Runtime]") -> None:
        """Restore the runtime that `set` replaced; `token` is what `set` returned."""
        self._variable.reset(token)

    def __reduce__(self) -> str:
        return "current"  # a copy of a decorated function in another process uses that of its process

    def _look_up(self) -> float:
        return self._variable.get().monotonic()


current = _Current()
"""The caller's runtime: `get` returns it, `set` and `reset` change it, and `clock` is its monotonic clock."""

current_runtime = current.get
"""Return the caller's runtime: the real one, or the one that virtual time has set."""
