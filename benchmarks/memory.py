"""Memory of a coroutine that has failed once and now waits, as its task holds it: bytes allocated, by tracemalloc."""

import asyncio
import tracemalloc

from benchmarks import work
from benchmarks.contenders import BARE, CAREFUL, CONTENDERS, Waits
from benchmarks.measure import Effort, no_gc
from benchmarks.table import OURS, Table, Target

_PATIENT = Waits(initial=100_000, maximum=100_000, timeout=1_000_000)


def memory(effort: Effort) -> Table:
    """Bytes for each of many tasks that wait before their second attempt."""
    functions = {
        name: contender.awrap(work.abroken(), _PATIENT) for name, contender in CONTENDERS.items() if name != "L1 catch"
    }
    functions[BARE] = _wait
    samples = {name: [asyncio.run(_measure(function, effort.coroutines))] for name, function in functions.items()}
    note = f"{effort.coroutines:,} tasks each; {BARE}: a coroutine that only sleeps"
    target = Target(OURS, 2.2)
    return Table("memory", "A waiting coroutine", "kB", 1e-3, samples, (CAREFUL,), (target,), notes=(note,))


async def _wait(key: bytes) -> bytes:
    await asyncio.sleep(_PATIENT.initial)  # noqa: TID251 - the least that can wait
    return key


async def _measure(function: work.AsyncWork, count: int) -> float:
    await _waiting(function, 10)  # whatever is loaded or cached at the first failure
    tracemalloc.start()
    try:
        return await _waiting(function, count) / count
    finally:
        tracemalloc.stop()


async def _waiting(function: work.AsyncWork, count: int) -> float:
    """The bytes that so many waiting tasks hold, in comparison with none."""
    with no_gc():
        before = tracemalloc.get_traced_memory()[0]
        tasks = [asyncio.ensure_future(function(work.KEY)) for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)  # noqa: TID251 - lets them run until they wait
        held = tracemalloc.get_traced_memory()[0] - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return held
