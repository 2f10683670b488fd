"""Virtual time in asyncio and trio: all waits and attempt timeouts end in the right order."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import Constant
from forbear.policy import retry
from forbear.run.runtime import AttemptTimeout, current
from forbear.testing.virtual_clock import VirtualTime, virtual_time

both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


async def asleep(seconds: float) -> None:
    """Wait as a retry does."""
    await current.get().asleep(seconds)


async def together(*functions: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run all of them concurrently."""
    async with anyio.create_task_group() as group:
        for function in functions:
            group.start_soon(function)


@both
def test_two_hundred_sleepers_take_the_time_of_one(backend: str) -> None:
    """Concurrent waits take as long as one."""
    with virtual_time() as time:
        anyio.run(together, *(200 * [lambda: asleep(10)]), backend=backend)
        assert time.elapsed == 10
        assert time.slept == 200 * [10]


@both
@given(st.lists(st.lists(st.floats(min_value=0, max_value=100), max_size=4), max_size=20))
def test_sleepers_wake_in_the_order_of_their_instants(backend: str, plans: list[list[float]]) -> None:
    """Waits end by their instants, in whatever order they began."""
    woke: list[tuple[float, float]] = []

    async def sleeper(plan: list[float]) -> None:
        due = 0.0
        for seconds in plan:
            due += seconds
            await asleep(seconds)
            woke.append((time.elapsed, due))

    with virtual_time() as time:
        anyio.run(together, *(partial(sleeper, plan) for plan in plans), backend=backend)
    assert all(at == due for at, due in woke)
    assert woke == sorted(woke)
    assert len(woke) == sum(map(len, plans))
    assert time.elapsed == max((due for _, due in woke), default=0)


@both
def test_time_waits_for_those_who_are_busy(backend: str) -> None:
    """While tasks still wake each other, no wait ends."""
    seen: list[float] = []

    async def busy() -> None:
        send, receive = anyio.create_memory_object_stream[int](0)
        async with send, receive, anyio.create_task_group() as group:
            group.start_soon(relay, receive)
            for n in range(20):
                await send.send(n)
            group.cancel_scope.cancel()

    async def relay(receive: "anyio.abc.ObjectReceiveStream[int]") -> None:
        async for _ in receive:
            seen.append(time.elapsed)
            await anyio.lowlevel.checkpoint()

    with virtual_time() as time:
        anyio.run(together, lambda: asleep(5), busy, backend=backend)
        assert seen == 20 * [0]
        assert time.elapsed == 5


@both
def test_sync_work_lets_sleepers_oversleep(backend: str) -> None:
    """Time that passes at once, as in blocking code, ends the waits that it passes; later ones keep their instants."""
    woke: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asleep(seconds)
        woke.append(time.elapsed)

    async def block() -> None:
        await asleep(1)
        time.advance(10)

    with virtual_time() as time:
        anyio.run(together, lambda: sleeper(2), lambda: sleeper(20), block, lambda: sleeper(5), backend=backend)
    assert woke == [11, 11, 20]


@both
def test_zero_sleeps_let_others_run(backend: str) -> None:
    """A wait of zero seconds still lets other tasks run."""
    order: list[str] = []

    async def first() -> None:
        order.append("first")
        await asleep(0)
        order.append("first again")

    async def second() -> None:
        order.append("second")

    with virtual_time() as time:
        anyio.run(together, first, second, backend=backend)
        assert time.elapsed == 0
    assert sorted(order[:2]) == ["first", "second"]


@both
def test_cancelled_sleepers_leave_nothing_behind(backend: str) -> None:
    """Time does not move for cancelled waits."""

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for seconds in (5, 50, 500):
                group.start_soon(asleep, seconds)
            await asleep(10)
            group.cancel_scope.cancel()
        assert time.elapsed == 10
        await asleep(1)
        assert time.elapsed == 11

    with virtual_time() as time:
        anyio.run(main, backend=backend)
        assert time._alarms == {}


@both
def test_a_cancelled_sleeper_takes_nobody_along(backend: str) -> None:
    """Another wait for the same instant still ends then."""
    woke: list[float] = []

    async def main() -> None:
        async with anyio.create_task_group() as group, anyio.create_task_group() as cancelled:
            group.start_soon(sleeper)
            await asleep(0)
            cancelled.start_soon(sleeper)
            await asleep(5)
            cancelled.cancel_scope.cancel()

    async def sleeper() -> None:
        await asleep(10)
        woke.append(time.elapsed)

    with virtual_time() as time:
        anyio.run(main, backend=backend)
    assert woke == [10]


@both
def test_attempt_timeouts_and_sleepers_in_one_order(backend: str) -> None:
    """Attempt timeouts and waits end in the order of their instants."""
    events: list[tuple[str, float]] = []

    async def attempt(name: str, takes: float, limit: float) -> None:
        try:
            async with current.get().within(limit):
                await asleep(takes)
            events.append((f"{name} done", time.elapsed))
        except AttemptTimeout:
            events.append((f"{name} cut", time.elapsed))

    async def sleeper(seconds: float) -> None:
        await asleep(seconds)
        events.append(("slept", time.elapsed))

    with virtual_time() as time:
        anyio.run(
            together,
            lambda: attempt("a", 10, 3),
            lambda: attempt("b", 4, 5),
            lambda: sleeper(3.5),
            lambda: sleeper(1),
            lambda: attempt("c", 7, 6),
            backend=backend,
        )
    assert events == [("slept", 1), ("a cut", 3), ("slept", 3.5), ("b done", 4), ("c cut", 6)]


@both
def test_attempt_timeouts_strike_those_who_wait_for_ever(backend: str) -> None:
    """An attempt timeout ends an endless wait, even if nothing sleeps in virtual time."""

    async def main() -> None:
        with pytest.raises(AttemptTimeout):
            async with current.get().within(600):
                await anyio.sleep_forever()

    with virtual_time() as time:
        anyio.run(main, backend=backend)
        assert time.elapsed == 600
        assert time.slept == []


@both
def test_attempt_timeouts_nest(backend: str) -> None:
    """Of two nested timeouts the shorter one ends the block, and the error names it."""

    async def main() -> None:
        with pytest.raises(AttemptTimeout, match="after 3 s"):
            async with current.get().within(3), current.get().within(5):
                await anyio.sleep_forever()
        with pytest.raises(AttemptTimeout, match="after 2 s"):
            async with current.get().within(5), current.get().within(2):
                await anyio.sleep_forever()
        assert time.elapsed == 5

    with virtual_time() as time:
        anyio.run(main, backend=backend)


def test_event_loops_one_after_the_other() -> None:
    """The clock continues in the next event loop, however the one before ended."""

    async def cancelled() -> None:
        with anyio.move_on_after(0):
            await asleep(5)

    async def failed() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(asleep, 5)
            raise LookupError

    with virtual_time() as time:
        for backend in ("asyncio", "trio", "asyncio", "asyncio", "trio", "trio"):
            anyio.run(asleep, 10, backend=backend)
            anyio.run(cancelled, backend=backend)
            with pytest.raises(ExceptionGroup):
                anyio.run(failed, backend=backend)
        assert time.elapsed == 60


def test_a_loop_that_was_left_in_the_middle() -> None:
    """A stopped loop continues where it was when it runs again."""
    loop = asyncio.new_event_loop()
    try:
        with virtual_time() as time:
            waiting = loop.create_task(asleep(5))
            loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0), None))  # noqa: TID251 - one turn of the loop
            assert time.elapsed == 0
            loop.run_until_complete(waiting)
            assert time.elapsed == 5
    finally:
        loop.close()


def test_tasks_take_the_clock_along() -> None:
    """A task that outlives the block in which it began keeps its clock."""

    async def main() -> None:
        with virtual_time() as time:
            task = asyncio.create_task(asleep(7200))
        await task
        assert time.elapsed == 7200

    asyncio.run(main())


def test_nothing_leaks() -> None:
    """With the garbage collector off, the clock is freed with the block and the loop."""

    def run() -> "weakref.ref[VirtualTime]":
        with virtual_time() as time:
            anyio.run(together, lambda: asleep(5), lambda: asleep(6))
            return weakref.ref(time)

    gc.disable()
    try:
        assert run()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_within_a_running_loop() -> None:
    """A task can enter the block, for itself and the tasks that it starts."""
    policy = retry(on=OSError, backoff=Constant(3600), timeout=None)
    failures = [OSError(), OSError()]

    async def fail_twice() -> str:
        if failures:
            raise failures.pop()
        return "done"

    with virtual_time() as time:
        assert await policy.acall(fail_twice) == "done"
        assert time.slept == [3600, 3600]
