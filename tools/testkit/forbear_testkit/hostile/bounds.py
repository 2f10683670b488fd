"""Bounds for what a hostile peer may cost: memory that Python allocates, and calls that are made, counted by Python.

Neither depends on the machine. Bytes are counted by the peer, and time is virtual or ends with the peer's patience.
"""

import gc
import sys
import tracemalloc
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """The most that one case may cost: `memory` in bytes at its peak, `calls` of functions, written in C or not."""

    memory: int = 8 * MIB
    calls: int = 200_000


class Bounded:
    """`with Bounded(limits):` fails the test if the block costs more than its limits, and stops one that never ends."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._before = 0
        self.calls = 0
        self.memory = 0

    def __enter__(self) -> Self:
        gc.disable()  # what other tests have left would be collected here, and counted
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        sys.setprofile(self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setprofile(None)
        gc.enable()
        self.memory = tracemalloc.get_traced_memory()[1] - self._before
        tracemalloc.stop()
        if error is None:
            assert self.calls <= self._limits.calls, f"{self.calls} calls"
            assert self.memory <= self._limits.memory, f"{self.memory} bytes of memory"

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls > 10 * self._limits.calls:
                raise TooMuch(f"more than {self.calls} calls")


class TooMuch(BaseException):
    """Ends a case that would never end; not an Exception, so that nothing retries it."""
