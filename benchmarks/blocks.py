"""The iterator form, `for attempt in policy: with attempt:`, against a bare generator of context managers."""

import asyncio
from collections.abc import Callable, Coroutine

from benchmarks import work
from benchmarks.contenders import CONTENDERS, AsyncBlocks, Blocks, Waits
from benchmarks.measure import Effort, arepeated, race, repeated
from benchmarks.napping import NOTE, no_sleeping
from benchmarks.table import OURS, Table, Target

BARE, CAREFUL = "bare generator", "careful generator"
_NAMES = {"L1 catch": BARE, "L2 careful": CAREFUL}
_NOTE = (
    "bare: no wait and no deadline; careful: with L2's. stamina asks for a new iterator each time, the others do not"
)


def blocks(effort: Effort) -> Table:
    """A block that works at once."""
    samples = _race(work.steady, effort)
    targets = Target(OURS, 1.3, BARE), Target(OURS, 3000)
    return Table("blocks", "Block that works at once", "ns", 1e9, samples, (BARE, CAREFUL), targets, notes=(_NOTE,))


def blocks_failures(effort: Effort) -> Table:
    """A block that works after three failures."""
    with no_sleeping():
        samples = _race(work.flaky, effort)
    title = "Block: three failures, then success"
    return Table("blocks-failures", title, "us", 1e6, samples, (BARE, CAREFUL), notes=(NOTE,))


def blocks_async(effort: Effort) -> Table:
    """A block in a coroutine that works at once."""
    with asyncio.Runner() as runner:
        samplers = {
            _NAMES.get(name, name): arepeated(runner, _adriven(contender.ablocks(Waits()), work.asteady()))
            for name, contender in CONTENDERS.items()
            if contender.ablocks is not None
        }
        samples = race(samplers, effort)
    target = Target(OURS, 1.3, BARE)
    title = "Block in a coroutine that works at once"
    return Table("blocks-async", title, "ns", 1e9, samples, (BARE, CAREFUL), (target,), notes=(_NOTE,))


def _race(make: Callable[[], work.Work], effort: Effort) -> dict[str, list[float]]:
    samplers = {
        _NAMES.get(name, name): repeated(_driven(contender.blocks(Waits()), make()))
        for name, contender in CONTENDERS.items()
        if contender.blocks is not None
    }
    return race(samplers, effort)


def _driven(attempts: Blocks, fetch: work.Work) -> Callable[[], None]:
    def run() -> None:
        for attempt in attempts():
            with attempt:
                fetch(work.KEY)

    return run


def _adriven(attempts: AsyncBlocks, fetch: work.AsyncWork) -> Callable[[], Coroutine[None, None, None]]:
    async def run() -> None:
        async for attempt in attempts():
            with attempt:
                await fetch(work.KEY)

    return run
