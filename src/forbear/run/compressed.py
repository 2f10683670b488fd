"""Compressed time: real waits, but shorter ones; every clock runs faster by the same factor. It knows no retry rule."""

from forbear.core import check
from forbear.run.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AbstractAsyncContextManager
    from typing import SupportsIndex


class CompressedRuntime(Runtime):
    """A runtime whose time runs `factor` times faster; set it in `current` for demonstrations against real servers.

    Durations passed in and read off its clocks are in compressed seconds: of a factor of 60, `sleep(60)` takes one real
    second and adds 60 to `monotonic()`. What the client library itself times (its socket timeouts) stays real.
    """

    def __init__(self, factor: float) -> None:
        check.at_least("factor", factor, 1, what="a number of compressed seconds in a real one")
        self.factor = factor
        self._began = Runtime.now()
        self._began_at = Runtime.monotonic()

    def monotonic(self) -> float:
        """Compressed seconds."""
        return Runtime.monotonic() * self.factor

    def now(self) -> float:
        """The wall clock: right when the runtime was made, and fast since then."""
        return self._began + (Runtime.monotonic() - self._began_at) * self.factor

    def sleep(self, seconds: "SupportsIndex | float") -> None:
        """Sleep for so many compressed seconds."""
        Runtime.sleep(float(seconds) / self.factor)

    def asleep(self, seconds: float) -> "Awaitable[None]":
        """Sleep for so many compressed seconds in asyncio or trio."""
        return super().asleep(seconds / self.factor)

    def within(self, seconds: float) -> "AbstractAsyncContextManager[None]":
        """Cut the `async with` block short after so many compressed seconds; the error names real ones."""
        return super().within(seconds / self.factor)
