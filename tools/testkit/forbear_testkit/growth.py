"""Compare how the CPU time of some work grows with the size of its input."""

from collections.abc import Callable
from time import thread_time
from typing import TypeVar

T = TypeVar("T")

_TIMES = 16
"""Factor between the two sizes: linear work grows as much, quadratic work 256 times."""


def grows_linearly(make: Callable[[int], T], work: Callable[[T], object], size: int) -> bool:
    """Compare the work for an input of some size with that for one sixteen times as large, by the time of this thread.

    The limit lies in the middle between linear and quadratic; the best of three runs counts.
    """
    small, large = (min(_spent(work, make(length)) for _ in range(3)) for length in (size, size * _TIMES))
    return large <= _TIMES * 4 * max(small, 1e-5)


def _spent(work: Callable[[T], object], value: T) -> float:
    started = thread_time()
    work(value)
    return thread_time() - started
