"""The iterator forms: what a block may do, and how a loop that is written wrongly says so."""
# ruff: noqa: PT012 - whole loops are what is tested

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from forbear.core.events import Event, GaveUp, Recovered
from forbear.core.report import report
from forbear.run.runtime import AttemptTimeout
from forbear.testing.script import AsyncScript, Script
from forbear.testing.virtual_clock import VirtualTime, virtual_time
from forbear_testkit.run.cases import BUSY, JUDGING, Broken, Busy

NOT_ENTERED = "the attempt was not entered, so its outcome is unknown; put `with attempt:` around the work"
ONCE = "an attempt is entered once, in its own loop: `for attempt in policy: with attempt:`"

both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.fixture(autouse=True, name="time")
def _time() -> Any:
    with virtual_time() as time:
        yield time


def test_attempts_are_numbered(time: VirtualTime) -> None:
    """Each attempt knows its number; the loop ends with the first success."""
    numbers: list[int] = []
    for attempt in BUSY:
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 3:
                raise Busy
    assert numbers == [1, 2, 3]
    assert time.slept == [1, 1]


def test_a_policy_is_no_block() -> None:
    """`with policy` and `async with policy` say which loop runs a block again."""
    policy: Any = BUSY

    async def awith() -> None:
        async with policy:
            pass

    def within() -> None:
        with policy:
            pass

    for use in (within, lambda: asyncio.run(awith()), lambda: ExitStack().enter_context(policy)):
        with pytest.raises(TypeError, match=r"no block by itself.*for attempt in forbear.retry.*with attempt:.*async"):
            use()


def test_the_value_of_the_with() -> None:
    """`with attempt as this` gives the attempt itself."""
    for attempt in BUSY:
        with attempt as this:
            assert this is attempt


def leave_by_break(told: list[Event]) -> str:
    """Leave loop and block."""
    script = Script(Busy, "done")
    for attempt in BUSY.with_on_event(told.append):
        with attempt:
            script()
            break
    return "left"


def leave_by_return(told: list[Event]) -> str:
    """Leave all of it."""
    script = Script(Busy, "done")
    for attempt in BUSY.with_on_event(told.append):
        with attempt:
            script()
            return "left"
    raise AssertionError


def leave_by_continue(told: list[Event]) -> str:
    """Leave the block only; it was a success, so there is no next attempt."""
    script = Script(Busy, "done")
    for attempt in BUSY.with_on_event(told.append):
        with attempt:
            script()
            continue
    return "left"


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_return, leave_by_continue])
def test_leaving_a_block_early_is_a_success(leave: Callable[[list[Event]], str]) -> None:
    """`break`, `return` and `continue` end the block without an error."""
    told: list[Event] = []
    assert leave(told) == "left"
    assert isinstance(told[-1], Recovered)


def test_giving_up_raises_out_of_the_loop() -> None:
    """The last error leaves block and loop, with report and note."""
    told: list[Event] = []
    with pytest.raises(Busy) as caught:
        for attempt in BUSY.with_on_event(told.append).with_attempts(2).with_name("push"):
            with attempt:
                raise Busy
    found = report(caught.value)
    assert found is not None
    assert (found.operation, len(found.attempts)) == ("push", 2)
    assert told[-1] == GaveUp("push", found)


def test_blocks_have_a_name() -> None:
    """Without one given, it is "block"."""
    with pytest.raises(Busy) as caught:
        for attempt in BUSY.with_attempts(1):
            with attempt:
                raise Busy
    found = report(caught.value)
    assert found is not None
    assert found.operation == "block"


def test_other_errors_leave_at_once(time: VirtualTime) -> None:
    """An error that `on` does not name is raised at once."""
    with pytest.raises(Broken):
        for attempt in BUSY:
            with attempt:
                raise Broken
    assert time.slept == []


def test_an_error_outside_the_block_is_not_retried(time: VirtualTime) -> None:
    """Only the block is the attempt."""
    with pytest.raises(Busy):
        for attempt in BUSY:
            with attempt:
                pass
            raise Busy
    assert time.slept == []


def test_a_forgotten_with() -> None:
    """Without it nobody knows how the attempt went: the loop refuses to guess."""
    rounds = 0
    with pytest.raises(RuntimeError) as caught:
        for _ in BUSY:
            rounds += 1
    assert str(caught.value) == NOT_ENTERED
    assert rounds == 1


def test_entered_twice() -> None:
    """One attempt is one block."""
    with pytest.raises(RuntimeError) as caught:
        for attempt in BUSY:
            with attempt:
                pass
            with attempt:
                pass
    assert str(caught.value) == ONCE


def test_entered_within_itself() -> None:
    """The inner `with` fails, and with it the outer one."""
    with pytest.raises(RuntimeError) as caught:
        for attempt in BUSY:
            with attempt, attempt:
                pass
    assert str(caught.value) == ONCE


def test_a_loop_that_is_over_stays_over() -> None:
    """After a success there is no next attempt, however often one asks."""
    attempts = iter(BUSY)
    for attempt in attempts:
        with attempt:
            pass
    assert next(attempts, None) is None
    assert list(attempts) == []


def test_loops_are_independent(time: VirtualTime) -> None:
    """One policy can be looped over within its own loop: each loop counts for itself."""
    seen: list[tuple[int, int]] = []
    for outer in BUSY:
        with outer:
            for inner in BUSY:
                with inner:
                    seen.append((outer.number, inner.number))
                    if inner.number < 2:
                        raise Busy
            if outer.number < 2:
                raise Busy
    assert seen == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert time.slept == [1, 1, 1]


def test_values_cannot_be_judged() -> None:
    """A block has no value, so `on_result` would never be asked."""
    text = "`on_result` needs a returned value, and a block has none; use policy.call or the decorator"
    for begin in (iter, aiter):
        with pytest.raises(TypeError) as caught:
            begin(JUDGING)
        assert str(caught.value) == text


@both
def test_async_loops_take_either_with(backend: str, time: VirtualTime) -> None:
    """`async for` with `with` or `async with`; the value of both is the attempt."""

    async def main() -> None:
        script = AsyncScript(Busy, "done", Busy, "done")
        async for attempt in BUSY:
            with attempt as this:
                assert this is attempt
                await script()
        async for attempt in aiter(BUSY):
            async with attempt as this:
                assert this is attempt
                await script()

    anyio.run(main, backend=backend)
    assert time.slept == [1, 1]


@both
def test_async_loops_with_attempt_timeouts(backend: str, time: VirtualTime) -> None:
    """`async with` cuts a block short, and the next one begins."""

    async def main() -> None:
        async for attempt in BUSY.with_attempt_timeout(5):
            async with attempt:
                if attempt.number < 3:
                    await time.asleep(100)

    anyio.run(main, backend=backend)
    assert time.elapsed == 12


@both
def test_async_loops_give_up_on_attempt_timeouts(backend: str, time: VirtualTime) -> None:
    """The timeout is raised, with its report."""

    async def main() -> None:
        async for attempt in BUSY.with_attempt_timeout(5).with_attempts(2):
            async with attempt:
                await time.asleep(100)

    with pytest.raises(AttemptTimeout) as caught:
        anyio.run(main, backend=backend)
    assert caught.value.__notes__ == [
        "forbear: gave up after 2 attempts in 11 s: limit of 2 attempts reached [attempts]"
    ]


@both
def test_a_plain_with_cannot_keep_an_attempt_timeout(backend: str) -> None:
    """So it is refused, rather than silently not enforced."""

    async def main() -> None:
        async for attempt in BUSY.with_attempt_timeout(5):
            with attempt:
                raise AssertionError("not reached")

    with pytest.raises(TypeError) as caught:
        anyio.run(main, backend=backend)
    text = "`attempt_timeout` needs `async with attempt:`; plain `with` cannot interrupt a block"
    assert str(caught.value) == text


@both
def test_async_loops_written_wrongly(backend: str) -> None:
    """The same texts as in sync code."""

    async def forgotten() -> None:
        async for _ in BUSY:
            pass

    async def twice() -> None:
        async for attempt in BUSY:
            async with attempt:
                pass
            async with attempt:
                pass

    for main, text in ((forgotten, NOT_ENTERED), (twice, ONCE)):
        with pytest.raises(RuntimeError) as caught:
            anyio.run(main, backend=backend)
        assert str(caught.value) == text


@both
@pytest.mark.parametrize("attempt_timeout", [None, 5], ids=["plain", "attempt-timeout"])
def test_leaving_an_async_block_early(backend: str, attempt_timeout: float | None) -> None:
    """`break` and `return` clean up the attempt timeout, too."""
    told: list[Event] = []
    policy = BUSY.with_attempt_timeout(attempt_timeout).with_on_event(told.append)

    async def by_return() -> str:
        script = AsyncScript(Busy, "done")
        async for attempt in policy:
            async with attempt:
                await script()
                return "left"
        raise AssertionError

    async def by_break() -> str:
        script = AsyncScript(Busy, "done")
        async for attempt in policy:
            async with attempt:
                await script()
                break
        return "left"

    for main in (by_return, by_break):
        assert anyio.run(main, backend=backend) == "left"
        assert isinstance(told[-1], Recovered)


@both
def test_a_block_that_is_cancelled_is_not_an_attempt_timeout(backend: str) -> None:
    """A cancellation of the task goes through the block and its timeout."""

    async def main() -> None:
        async for attempt in BUSY.with_attempt_timeout(5):
            async with attempt:
                raise asyncio.CancelledError if backend == "asyncio" else KeyboardInterrupt

    with pytest.raises(asyncio.CancelledError if backend == "asyncio" else KeyboardInterrupt):
        anyio.run(main, backend=backend)
