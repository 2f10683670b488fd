"""Waits that take no time: every library still computes its delay and calls a sleep function, which returns at once."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from forbear.run.runtime import Runtime, current

NOTE = "nobody sleeps: time.sleep and asyncio.sleep return at once, for all; delays are computed as always"


def _nap(seconds: object) -> None:
    """Stands for time.sleep."""


async def _anap(seconds: object) -> None:
    """Stands for asyncio.sleep."""


class _Napping(Runtime):
    """The real runtime, asleep() included, but that waits take no time."""

    def sleep(self, seconds: float) -> None:
        """Return at once."""


@contextmanager
def no_sleeping() -> Generator[None, None, None]:
    """Replace the two functions that everybody sleeps with; redis-py has taken hold of them, too."""
    token = current.set(_Napping())
    with ExitStack() as stack:
        for name in ("time.sleep", "redis.retry.sleep"):
            stack.enter_context(patch(name, _nap))
        for name in ("asyncio.sleep", "redis.asyncio.retry.sleep"):
            stack.enter_context(patch(name, _anap))
        try:
            yield
        finally:
            current.reset(token)
