"""Calls of a decorated function, sync and async: what works at once, and what works after three failures."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import StringIO
from logging import BASIC_FORMAT, Formatter, Handler, Logger, StreamHandler, getLogger

from benchmarks import work
from benchmarks.contenders import BARE, CAREFUL, CATCH, CONTENDERS, Waits, tenacity_logged
from benchmarks.measure import Effort, arepeated, race, repeated
from benchmarks.napping import NOTE, no_sleeping
from benchmarks.table import OURS, Table, Target

FAILED = "three failures, then success"


def happy(effort: Effort) -> Table:
    """A function that works at once."""
    samplers = {
        name: repeated(partial(contender.wrap(work.steady(), Waits()), work.KEY))
        for name, contender in CONTENDERS.items()
    }
    target = Target(OURS, 1.0, CAREFUL)
    samples = race(samplers, effort)
    return Table("happy", "Call that works at once", "ns", 1e9, samples, (BARE, CATCH, CAREFUL), (target,))


def happy_async(effort: Effort) -> Table:
    """A coroutine function that works at once."""
    with asyncio.Runner() as runner:
        samplers = {
            name: arepeated(runner, partial(contender.awrap(work.asteady(), Waits()), work.KEY))
            for name, contender in CONTENDERS.items()
        }
        samples = race(samplers, effort)
    target = Target(OURS, 1.0, CAREFUL)
    return Table(
        "happy-async", "Awaited call that works at once", "ns", 1e9, samples, (BARE, CATCH, CAREFUL), (target,)
    )


def happy_async_beside_an_adapter(effort: Effort) -> Table:
    """A coroutine function that works at once, in a process that has loaded an adapter."""
    import_module("forbear.clients.httpx")
    table = happy_async(effort)
    note = "once an adapter is loaded, a call remembers what its tasks must not repeat"
    return table._replace(name="happy-async-adapter", title=f"{table.title}, with an adapter", notes=(note,))


def failures(effort: Effort) -> Table:
    """A function that works after three failures."""
    with no_sleeping():
        samplers = {
            name: repeated(partial(contender.wrap(work.flaky(), Waits()), work.KEY))
            for name, contender in CONTENDERS.items()
            if name != BARE
        }
        samples = race(samplers, effort)
    target = Target(OURS, 2.2, CAREFUL)
    return Table("failures", f"Call: {FAILED}", "us", 1e6, samples, (CATCH, CAREFUL), (target,), notes=(NOTE,))


def failures_logged(effort: Effort) -> Table:
    """A function that works after three failures, each of which is logged."""
    stream = StreamHandler(StringIO())
    stream.setFormatter(Formatter(BASIC_FORMAT))
    logger = getLogger("forbear")
    with no_sleeping(), logging_to(stream):
        samplers = {
            CAREFUL: repeated(partial(CONTENDERS[CAREFUL].wrap(work.flaky(), Waits()), work.KEY)),
            OURS: repeated(partial(CONTENDERS[OURS].wrap(work.flaky(), Waits()), work.KEY)),
            "tenacity": repeated(partial(tenacity_logged(logger)(work.flaky()), work.KEY)),
            "three lines of logging": repeated(partial(_three_lines, logger)),
        }
        samples = race(samplers, effort)
    title = f"Call: {FAILED}, with logging on"
    return Table("failures-logged", title, "us", 1e6, samples, (CAREFUL,), (Target(OURS, 40),), notes=(NOTE,))


def _three_lines(logger: Logger) -> None:
    for attempt in range(1, 4):
        logger.warning("attempt %d failed (%s), attempt %d in %s s", attempt, "reset by peer", attempt + 1, 0.5)


@contextmanager
def logging_to(handler: Handler) -> Generator[None]:
    """Have the root logger write warnings there."""
    root = getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def failures_async(effort: Effort) -> Table:
    """A coroutine function that works after three failures."""
    with no_sleeping(), asyncio.Runner() as runner:
        samplers = {
            name: arepeated(runner, partial(contender.awrap(work.aflaky(), Waits()), work.KEY))
            for name, contender in CONTENDERS.items()
            if name != BARE
        }
        samples = race(samplers, effort)
    target = Target(OURS, 2.2, CAREFUL)
    title = f"Awaited call: {FAILED}"
    return Table("failures-async", title, "us", 1e6, samples, (CATCH, CAREFUL), (target,), notes=(NOTE,))
