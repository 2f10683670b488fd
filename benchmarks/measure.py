"""Timing contenders in turn, round after round, so that a busy moment of the machine hits all of them."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import repeat
from time import perf_counter
from typing import NamedTuple

Sampler = Callable[[int], float]
"""Does something so many times and returns the seconds it took."""


class Effort(NamedTuple):
    """How long to measure: rounds, seconds for each contender in a round, fresh processes, waiting coroutines."""

    rounds: int
    seconds: float
    processes: int
    coroutines: int


FULL = Effort(rounds=101, seconds=0.002, processes=21, coroutines=10_000)
QUICK = Effort(rounds=15, seconds=0.001, processes=5, coroutines=1_000)


def repeated(operation: Callable[[], object]) -> Sampler:
    """Samples of a plain call."""

    def sample(count: int) -> float:
        times = repeat(None, count)
        started = perf_counter()
        for _ in times:
            operation()
        return perf_counter() - started

    return sample


def arepeated(runner: asyncio.Runner, operation: Callable[[], Awaitable[object]]) -> Sampler:
    """Samples of an awaited call; the clock starts and stops inside the event loop."""

    async def timed(count: int) -> float:
        times = repeat(None, count)
        started = perf_counter()
        for _ in times:
            await operation()
        return perf_counter() - started

    return lambda count: runner.run(timed(count))


@contextmanager
def no_gc() -> Generator[None, None, None]:
    """Collect now and not by itself inside the block; what is there already is left out of any collection."""
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if not was_frozen:  # or all would come back that somebody else has left out
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def race(samplers: dict[str, Sampler], effort: Effort) -> dict[str, list[float]]:
    """Seconds per operation of every contender, one figure per round; another contender starts each round."""
    counts = {name: _count(sampler, effort.seconds) for name, sampler in samplers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in samplers}
    names = list(samplers)
    with no_gc():
        for round_number in range(effort.rounds):
            first = round_number % len(names)
            gc.collect()
            for name in names[first:] + names[:first]:
                seconds[name].append(samplers[name](counts[name]) / counts[name])
    return seconds


def _count(sampler: Sampler, seconds: float) -> int:
    """How many operations take about so many seconds.

    The quickest of three counts: the very first operation may import or connect, and any may be interrupted.
    """
    count = 1
    while (took := min(sampler(count) for _ in range(3))) < seconds / 4:
        count *= 2
    return max(1, round(count * seconds / took))
