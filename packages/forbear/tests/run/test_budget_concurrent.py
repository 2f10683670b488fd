"""Budgets under concurrency: a healthy service is never refused, and each end of an attempt is counted once."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest

import forbear
from forbear.budgets import Budget
from forbear.policy import Policy, retry
from forbear.testing.script import Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.budgets import counted
from forbear_testkit.run.cases import Busy

CALLS = 50
PRESETS = [
    Budget.aws, Budget.aws_until_2026, Budget.brooker, Budget.envoy, Budget.finagle, Budget.google_sre, Budget.grpc,
    Budget.ratio,
]  # fmt: skip
LONG = 1000.0
"""Seconds: longer than the window of every preset."""


def by_tasks(policy: Policy) -> int:
    """Call a service from many tasks at once; each call ends only when all have begun. Return how many ended well."""

    async def main() -> int:
        arrived, all_there = 0, asyncio.Event()

        async def serve() -> str:
            nonlocal arrived
            arrived += 1
            if arrived == CALLS:
                all_there.set()
            await all_there.wait()
            return "done"

        return (await asyncio.gather(*(policy.acall(serve) for _ in range(CALLS)))).count("done")

    return asyncio.run(main())


def by_async_blocks(policy: Policy) -> int:
    """Do the same in `async for` blocks, each left by its own end."""

    async def main() -> int:
        arrived, all_there, done = 0, asyncio.Event(), 0

        async def one() -> None:
            nonlocal arrived, done
            async for attempt in policy:
                with attempt:
                    arrived += 1
                    if arrived == CALLS:
                        all_there.set()
                    await all_there.wait()
                    done += 1

        await asyncio.gather(*(one() for _ in range(CALLS)))
        return done

    return asyncio.run(main())


def by_threads(policy: Policy) -> int:
    """Do the same from many threads."""
    barrier = Barrier(CALLS)

    def serve() -> str:
        barrier.wait(60)
        return "done"

    with ThreadPoolExecutor(CALLS) as pool:
        ends = [pool.submit(policy.call, serve) for _ in range(CALLS)]
        return [end.result() for end in ends].count("done")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.__name__)
@pytest.mark.parametrize("form", [by_tasks, by_async_blocks, by_threads], ids=lambda form: form.__name__)
def test_a_healthy_service_is_never_refused(preset: Callable[[], Budget], form: Callable[[Policy], int]) -> None:
    """Fifty calls at once all end well: with a new budget, after them, and after a window without calls."""
    policy = retry(Busy, budget=preset())
    with virtual_time(seed=1) as clock:
        assert form(policy) == CALLS
        assert form(policy) == CALLS
        clock.advance(LONG)
        assert form(policy) == CALLS


async def asend() -> str:
    """Stand for a request."""
    return "done"


def cancelled(policy: Policy, *, waiting: bool) -> None:
    """Cancel a task in its attempt, or in the wait after it."""

    async def main() -> None:
        begun, slow = asyncio.Event(), policy.with_backoff(forbear.Constant(50))

        async def hang() -> None:
            begun.set()
            if waiting:
                raise Busy
            await asyncio.Event().wait()

        task = asyncio.ensure_future(slow.acall(hang))
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


def timed_out(policy: Policy) -> None:
    """Let the policy's own attempt timeout end the only attempt."""
    with suppress(forbear.AttemptTimeout):
        asyncio.run(policy.with_attempts(1).replace(attempt_timeout=1).acall(asyncio.Event().wait))


def left(policy: Policy) -> None:
    """Leave a loop before its first block."""
    for _ in policy:
        return


def abandoned(policy: Policy) -> None:
    """Drop a coroutine that has begun."""

    async def main() -> None:
        coroutine: Any = policy.acall(asyncio.Event().wait)
        coroutine.send(None)
        coroutine.close()

    asyncio.run(main())


def of_inner(policy: Policy) -> None:
    """Let an inner run give up within the only attempt of the outer one."""
    inner = retry(Busy, attempts=2, backoff=forbear.Constant(0))
    with suppress(Busy):
        policy.call(lambda: inner.call(Script(Busy, Busy)))


def switched_off(policy: Policy) -> None:
    """Switch retries off while the attempt is under way."""
    off = forbear.disabled()

    def fail() -> None:
        off.__enter__()
        raise Busy

    with suppress(Busy):
        try:
            policy.call(fail)
        finally:
            off.__exit__(None, None, None)


def raising(policy: Policy, *outcomes: Any) -> None:
    """Call a function with these outcomes."""
    with suppress(Exception, KeyboardInterrupt):
        policy.call(Script(*outcomes))


ENDS: dict[str, tuple[Callable[[Policy], object], int, int]] = {
    "a success": (lambda policy: raising(policy, "done"), 1, 1),
    "an async success": (lambda policy: asyncio.run(policy.acall(asend)), 1, 1),
    "a permanent error": (lambda policy: raising(policy, ValueError), 1, 1),
    "a transient error": (lambda policy: raising(policy.with_attempts(1), Busy), 1, 0),
    "a retry": (lambda policy: raising(policy, Busy, "done"), 2, 1),
    "a retry in vain": (lambda policy: raising(policy.with_attempts(2), Busy, Busy), 2, 0),
    "a value that is refused": (lambda policy: raising(policy.with_attempts(1).replace(on_result=bool), "no"), 1, 0),
    "an interruption": (lambda policy: raising(policy, KeyboardInterrupt), 0, 0),
    "an interrupted retry": (lambda policy: raising(policy, Busy, KeyboardInterrupt), 1, 0),
    "a cancelled attempt": (lambda policy: cancelled(policy, waiting=False), 0, 0),
    "a cancelled wait": (lambda policy: cancelled(policy, waiting=True), 1, 0),
    "an attempt timeout": (timed_out, 1, 0),
    "a loop that is left": (left, 0, 0),
    "a coroutine that is dropped": (abandoned, 0, 0),
    "an inner run that gave up": (of_inner, 1, 0),
    "retries switched off": (switched_off, 0, 0),
}


@pytest.mark.parametrize(("end", "requests", "accepts"), ENDS.values(), ids=ENDS)
def test_each_end_is_counted_once(end: Callable[[Policy], object], requests: int, accepts: int) -> None:
    """By Google SRE's throttle: what was cancelled counts as nothing, and no attempt counts twice."""
    budget = Budget.google_sre()
    with virtual_time(seed=1):
        end(retry(Busy, attempts=3, backoff=forbear.Constant(0), budget=budget))
    assert counted(budget) == (requests, accepts)


@pytest.mark.parametrize("end", [end for end, _, _ in ENDS.values()], ids=ENDS)
def test_no_end_leaves_an_attempt_active(end: Callable[[Policy], object]) -> None:
    """By Envoy's budget: each attempt is over after its run, whichever way it ended."""
    budget = Budget.envoy()
    with virtual_time(seed=1):
        end(retry(Busy, attempts=3, backoff=forbear.Constant(0), budget=budget))
    assert budget._state[:2] == [0, 0]


def test_refusals_begin_when_the_failures_are_known() -> None:
    """Of hundred calls at once to a service that fails, all are sent, and of those after them hardly any."""
    policy = retry(Busy, attempts=1, budget=Budget.google_sre())

    async def ends() -> list[type[object]]:
        outcome = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            await asyncio.shield(outcome)

        calls = [asyncio.ensure_future(policy.acall(serve)) for _ in range(100)]
        asyncio.get_running_loop().call_soon(outcome.set_exception, Busy())
        return [type(end) for end in await asyncio.gather(*calls, return_exceptions=True)]

    with virtual_time(seed=1):
        assert asyncio.run(ends()).count(Busy) == 100
        assert asyncio.run(ends()).count(forbear.Throttled) > 90
