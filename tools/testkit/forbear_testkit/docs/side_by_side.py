"""Run two pieces of code, of another library and of forbear, against the same failures, clock and chance."""

import random
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, timedelta
from textwrap import indent
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from forbear.run.runtime import current
from forbear.testing import virtual_time

CHANCE = 0.5
"""The random number that both get, so that random waits can be compared."""


class Trace(NamedTuple):
    """The outcome of some code (its value, or the type and text of its error), its calls, its waits in seconds."""

    outcome: object
    calls: int
    waits: list[float]


class ScriptedWork:
    """A function that takes anything, and returns or raises what a script says; past its end, the last entry counts."""

    __name__ = "work"  # some libraries log it

    def __init__(self, script: list[Any]) -> None:
        self.script = script
        self.calls = 0

    def __call__(self, *_: object) -> Any:
        outcome = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        if callable(outcome) and not isinstance(outcome, type):
            outcome = outcome()
        if isinstance(outcome, Exception):
            raise type(outcome)(*outcome.args)
        return outcome


@contextmanager
def one_clock() -> Generator[list[float]]:
    """Replace sleep, clock and chance for libraries that take them from `time` and `random`; yield the waits."""
    waits = list[float]()
    began = time.monotonic() // 1  # whole seconds, so that sums of waits are exact
    wall = datetime(2026, 1, 1)  # noqa: DTZ001 - as the library reads it

    def sleep(seconds: float) -> None:
        waits.append(float(seconds))

    def between(low: float, high: float) -> float:
        return low + (high - low) * CHANCE

    def now() -> datetime:
        return wall + timedelta(seconds=sum(waits))

    with ExitStack() as stack:
        for name in ("time.sleep", "redis.retry.sleep"):
            stack.enter_context(patch(name, sleep))
        for name in ("time.monotonic", "time.time"):
            stack.enter_context(patch(name, lambda: began + sum(waits)))
        stack.enter_context(patch("backoff._sync.datetime", SimpleNamespace(datetime=SimpleNamespace(now=now))))
        stack.enter_context(patch.object(random, "random", lambda: CHANCE))
        stack.enter_context(patch.object(random, "uniform", between))
        stack.enter_context(patch.object(random, "randint", between))
        yield waits


@contextmanager
def our_clock() -> Generator[list[float]]:
    """Replace the clock and the chance of forbear; yield the waits."""
    with virtual_time(seed=0) as clock, patch.object(current.get(), "random", lambda: CHANCE):
        yield clock.slept


def trace(
    code: str, script: list[Any], names: Mapping[str, Any], clock: Callable[[], AbstractContextManager[list[float]]]
) -> Trace:
    """Run the statements in `code`, the body of a function, and return what they did.

    They see `names`, and `work`, which does what `script` says. If there is a name `requests_seen`, it counts
    the calls instead.
    """
    work = ScriptedWork(script)
    namespace: dict[str, Any] = {**names, "work": work}
    exec(f"def run():\n{indent(code, '    ')}", namespace)
    with clock() as waits:
        try:
            outcome = namespace["run"]()
        except Exception as error:
            outcome = (type(error).__name__, str(error))
    return Trace(outcome, names.get("requests_seen", lambda: work.calls)(), [round(wait, 6) for wait in waits if wait])
