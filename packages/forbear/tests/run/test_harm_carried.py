"""An attempt that must not be repeated stops every outer run, whatever error leaves the code between them."""

import asyncio
import contextlib
import traceback
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint

from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import retry
from forbear.run.answers import Unsatisfied
from forbear.testing.script import Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Broken, Busy
from forbear_testkit.run.drivers import DRIVERS, Driver
from forbear_testkit.run.shapes import (
    OUTER,
    SHAPES,
    Failed,
    Function,
    Payments,
    in_a_thread,
    raised_anew,
    raised_from,
    raised_from_none,
    swallowed,
)

SOME = [raised_from, raised_anew, raised_from_none, swallowed]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def _played(function: Function, driver: Driver) -> Any:
    async def arun() -> object:
        return function()

    return arun if driver.backend else function


@pytest.mark.parametrize("shape", SOME)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_every_form_ends(driver: Driver, shape: Callable[[Function], None]) -> None:
    """Decorated, called or in a block, sync or async: the error has the report of the inner run."""
    pay = Payments()
    error = driver(OUTER, *(5 * [_played(lambda: shape(pay), driver)])).error
    assert pay.made == 1
    assert error is not None
    found = report(error)
    assert found is not None
    assert found.reason is Reason.UNSAFE


@every_shape
def test_whatever_is_raised_carries_what_must_not_be_repeated(shape: Callable[[Function], None]) -> None:
    """No run around it calls it again, the middle one leaves the error to others, and a traceback shows the note."""
    pay = Payments()
    middle = retry(on=LookupError, attempts=2)
    with virtual_time(), pytest.raises(Exception) as caught:  # noqa: PT011
        OUTER.call(middle.call, shape, pay)
    assert pay.made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE
    assert found.note in "".join(traceback.format_exception(caught.value))


async def _gathered(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.gather(pay())


async def _grouped(pay: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(pay())  # type: ignore[arg-type]


async def _shielded(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.shield(asyncio.ensure_future(pay()))


async def _timed(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.wait_for(asyncio.ensure_future(pay()), 60)


TASKS = {"gather": _gathered, "group": _grouped, "shield": _shielded, "wait_for": _timed}


@pytest.mark.parametrize("through", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("shape", [raised_from, raised_from_none])
def test_tasks_of_their_own(through: Any, shape: Callable[[Function], None]) -> None:
    """Whoever waits for a task gets what its error carries."""
    pay = Payments()

    async def work() -> None:
        shape(pay)

    with virtual_time(), pytest.raises(Exception):  # noqa: B017, PT011
        asyncio.run(OUTER.acall(through, work))
    assert pay.made == 1


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_thread_of_a_coroutine(backend: str) -> None:
    """A coroutine that has a thread do the work does not do it again."""
    pay = Payments()

    async def attempt() -> None:
        await anyio.to_thread.run_sync(raised_from_none, pay)

    with virtual_time(), pytest.raises(Failed):
        anyio.run(OUTER(attempt), backend=backend)
    assert pay.made == 1


@pytest.mark.parametrize("shape", [raised_anew, raised_from_none, swallowed, in_a_thread(raised_anew)])
def test_a_fallback_for_what_ran_into_a_limit_is_repeated(shape: Callable[[Function], None]) -> None:
    """Only harm is looked for behind an error: a new error that stands in for an exhausted read is judged by itself."""
    pay = Payments(BUSY.with_attempts(1))
    with virtual_time(), pytest.raises(Failed):
        OUTER.call(shape, pay)
    assert pay.made == 3


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_run_in_the_handler_of_an_older_failure(driver: Driver) -> None:
    """Its errors have that failure in their context, which says nothing about what this run calls."""
    with virtual_time():
        try:
            raised_anew(Payments())
        except Failed:
            outcome = driver(OUTER, Failed, Broken, "done")
            assert (outcome.value, len(outcome.calls)) == ("done", 3)


def test_a_handled_failure_before_the_run() -> None:
    """A failure in this thread before the run began does not count."""
    script = Script(Failed, "done")
    with virtual_time():
        with contextlib.suppress(Busy):
            Payments()()
        assert OUTER.call(script) == "done"


def test_the_failure_of_another_task() -> None:
    """A failure in another task meanwhile does not count."""
    script = Script(Failed, "done")

    async def attempt() -> object:
        await checkpoint()
        await checkpoint()
        return script()

    async def other() -> None:
        with contextlib.suppress(Busy):
            Payments()()

    async def main() -> object:
        return (await asyncio.gather(OUTER.acall(attempt), other()))[0]

    with virtual_time():
        assert asyncio.run(main()) == "done"


def test_what_a_listener_gives_up() -> None:
    """A listener that sends something of its own does not stop the run that it listens to."""
    sent = []

    def listen(event: object) -> None:
        with contextlib.suppress(Busy):
            sent.append(event)
            Payments()()

    inner = Script(*(9 * [Busy]))
    with virtual_time(), pytest.raises(Failed):
        OUTER.call(swallowed, lambda: BUSY.with_attempts(1).with_on_event(listen).call(inner))
    assert len(inner.calls) == 3
    assert len(sent) == 6


@pytest.mark.parametrize("shape", [raised_anew, raised_from_none, swallowed])
def test_retry_exhausted_repeats_it(shape: Callable[[Function], None]) -> None:
    """Told to, the outer policy repeats what an inner one gave up; the last error has its report."""
    pay = Payments()
    with virtual_time(), pytest.raises(Failed) as caught:
        OUTER.replace(retry_exhausted=True).call(shape, pay)
    assert pay.made == 3
    found = report(caught.value)
    assert found is not None
    assert (found.reason, found.count) == (Reason.ATTEMPTS, 3)


def test_a_value_after_what_must_not_be_repeated() -> None:
    """A function that has handled the failure is not called again to return a better value."""
    pay = Payments()

    def poll() -> str:
        with contextlib.suppress(Busy):
            pay()
        return "pending"

    policy = OUTER.with_on_result(lambda value: value == "pending")
    with virtual_time():
        assert policy.call(poll) == "pending"
        with pytest.raises(Unsatisfied) as caught:
            policy.replace(raise_unsatisfied=True).call(poll)
    assert pay.made == 2
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


def test_cycles_of_causes_and_contexts_end() -> None:
    """Errors that lead back to each other are searched once."""
    first, second = Failed(), Failed()
    first.__cause__, second.__context__, second.__cause__ = second, first, first
    script = Script(first, second, "done")
    with virtual_time():
        assert OUTER.call(script) == "done"


def test_nothing_is_kept_alive() -> None:
    """A thread remembers no frames and no errors of a failure."""
    with virtual_time(), pytest.raises(Failed) as caught:
        OUTER.call(swallowed, Payments())
    remembered = weakref.ref(caught.value)
    del caught
    assert remembered() is None
