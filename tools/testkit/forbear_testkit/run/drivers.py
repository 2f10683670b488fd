"""The nine ways to run an operation under a policy: decorated, called and in a block; sync, in asyncio and in trio."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import anyio

from forbear.core.report import Report, report
from forbear.policy import Policy
from forbear.testing.script import AsyncScript, Call, Script
from forbear.testing.virtual_clock import virtual_time


class Outcome(NamedTuple):
    """The end of a run: its value or its error, its waits and calls, and how many virtual seconds it took."""

    value: object
    error: Exception | None
    slept: list[float]
    calls: list[Call]
    elapsed: float

    @property
    def starts(self) -> list[float]:
        """When each attempt started."""
        return [call.at for call in self.calls]

    @property
    def report(self) -> Report:
        """The report of the error."""
        found = None if self.error is None else report(self.error)
        assert found is not None
        return found


def _decorated(policy: Policy, script: Script) -> object:
    return policy(script)()


def _called(policy: Policy, script: Script) -> object:
    return policy.call(script)


def _in_block(policy: Policy, script: Script) -> object:
    for attempt in policy:
        with attempt:
            return script()
    raise AssertionError("a block that ends without an error ends its loop")


async def _adecorated(policy: Policy, script: AsyncScript) -> object:
    return await policy(script)()


async def _acalled(policy: Policy, script: AsyncScript) -> object:
    return await policy.acall(script)


async def _in_ablock(policy: Policy, script: AsyncScript) -> object:
    async for attempt in policy:
        async with attempt:
            return await script()
    raise AssertionError("a block that ends without an error ends its loop")


class Driver(NamedTuple):
    """One of the ways; `backend` is None for sync code."""

    name: str
    backend: str | None
    run: Callable[[Policy, Any], object]

    def __call__(self, policy: Policy, *outcomes: object, takes: float = 0, seed: int = 0) -> Outcome:
        """Play the outcomes under the policy in virtual time."""
        script = AsyncScript(*outcomes, takes=takes) if self.backend else Script(*outcomes, takes=takes)
        value, error = None, None
        with virtual_time(seed) as clock:
            try:
                value = self.run(policy, script)
            except Exception as raised:
                error = raised
        return Outcome(value, error, clock.slept, script.calls, clock.elapsed)


def _sync(name: str, form: Callable[[Policy, Script], object]) -> Driver:
    return Driver(name, None, form)


def _async(name: str, backend: str, form: Callable[[Policy, AsyncScript], Awaitable[object]]) -> Driver:
    def run(policy: Policy, script: AsyncScript) -> object:
        return anyio.run(form, policy, script, backend=backend)

    return Driver(f"{name}-{backend}", backend, run)


SYNC = [_sync("decorated", _decorated), _sync("called", _called), _sync("block", _in_block)]
ASYNC = [
    _async(name, backend, form)
    for name, form in (("decorated", _adecorated), ("called", _acalled), ("block", _in_ablock))
    for backend in ("asyncio", "trio")
]
DRIVERS = [*SYNC, *ASYNC]
WITH_VALUES = [driver for driver in DRIVERS if not driver.name.startswith("block")]
