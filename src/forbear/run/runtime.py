"""The runtime: where a run gets its clock, its sleep and its randomness. The only place that touches the real ones."""

import sys
import time
from contextvars import ContextVar
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from contextvars import Token


def in_trio() -> bool:
    """Whether the caller is a trio task (asyncio is the alternative); never imports either."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


class Runtime:
    """The real clock, sleep and randomness; tests put virtual ones in their place with `current.set()`."""

    monotonic = staticmethod(time.monotonic)
    now = staticmethod(time.time)
    sleep = staticmethod(time.sleep)

    @cached_property
    def random(self) -> "Callable[[], float]":
        """Uniform in [0, 1), from the module-level generator, which is seeded anew in a forked child."""
        from random import random  # on the first failure, not at import: it costs as much as all of forbear

        return random

    def asleep(self, seconds: float) -> "Awaitable[None]":
        """Sleep in asyncio or trio."""
        if in_trio():
            import trio

            return trio.sleep(seconds)  # noqa: ASYNC105 - the caller awaits it
        import asyncio

        return asyncio.sleep(seconds)

    def within(self, seconds: float) -> "AbstractAsyncContextManager[None]":
        """Cut the `async with` block short with AttemptTimeout after so many seconds."""
        from forbear.run import attempt_timeout

        return attempt_timeout.within(seconds)


class _Current:
    """The runtime of the caller: a context variable that is looked up only once a runtime was ever replaced."""

    __slots__ = ("_real", "_variable", "clock", "get")

    def __init__(self) -> None:
        self._real = Runtime()
        self._variable: ContextVar[Runtime] = ContextVar("forbear_runtime", default=self._real)
        self.clock: Callable[[], float] = time.monotonic
        """The caller's monotonic clock; every run begins with it."""
        self.get: Callable[[], Runtime] = self._variable.get

    def set(self, runtime: Runtime) -> "Token[Runtime]":
        """Replace the runtime in this thread or task and what it starts; reset it with the token that comes back."""
        self.clock = self._looked_up
        return self._variable.set(runtime)

    def reset(self, token: "Token[Runtime]") -> None:
        """Put back the runtime from before."""
        self._variable.reset(token)

    def _looked_up(self) -> float:
        return self._variable.get().monotonic()


current = _Current()
current_runtime = current.get
