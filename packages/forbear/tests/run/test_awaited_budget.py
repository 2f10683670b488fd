"""A budget whose `take` does I/O: async loops await it between the decision and the wait, sync loops call it."""

import anyio
import pytest

from forbear.core.report import report
from forbear.core.verdict import TRANSIENT
from forbear.run.budget import Budget, PendingDelay, granted
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.drivers import ASYNC, SYNC, Driver
from forbear_testkit.run.remote_budget import Remote


def drivers(group: list[Driver]) -> pytest.MarkDecorator:
    """Run a test with each driver of a group."""
    return pytest.mark.parametrize("drive", group, ids=lambda driver: driver.name)


@drivers(ASYNC)
def test_async_loops_await_it(drive: Driver) -> None:
    """The answer comes after the decision and before the event and the wait; other tasks can run meanwhile."""
    budget = Remote(True, True)
    outcome = drive(budget.policy(), Busy, Busy, "done")
    assert outcome.value == "done"
    assert budget.log == ["atake", "Scheduled", "atake", "Scheduled"]
    assert outcome.starts == [0, 1.5, 3.0]


@drivers(ASYNC)
def test_async_loops_obey_its_refusal(drive: Driver) -> None:
    """The original error is raised with its report, and nothing is waited for."""
    budget = Remote(True, False)
    outcome = drive(budget.policy(), Busy("first"), Busy("second"))
    assert isinstance(outcome.error, Busy)
    assert outcome.error.args == ("second",)
    assert outcome.slept == [1]
    assert budget.log == ["atake", "Scheduled", "atake", "GaveUp"]
    given_up = report(outcome.error)
    assert given_up is not None
    assert (given_up.count, given_up.text) == (2, "the retry budget is used up")


@drivers(SYNC)
def test_sync_loops_call_it(drive: Driver) -> None:
    """A thread may block, so the plain method is called."""
    budget = Remote(True, False)
    outcome = drive(budget.policy(), Busy, Busy)
    assert isinstance(outcome.error, Busy)
    assert budget.log == ["take", "Scheduled", "take", "GaveUp"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_plain_block_in_an_async_loop_awaits_it(backend: str) -> None:
    """`with attempt` cannot await, so the head of the loop does, and raises the block's error where it must."""
    budget = Remote(True, False)

    async def loop() -> None:
        async for attempt in budget.policy():
            with attempt:
                raise Busy(attempt.number)

    async def main() -> None:
        with virtual_time(), pytest.raises(Busy) as caught:
            await loop()
        assert caught.value.args == (2,)
        assert caught.value.__context__ is None
        assert [line.name for line in caught.traceback][-1] == "loop"

    anyio.run(main, backend=backend)
    assert budget.log == ["atake", "Scheduled", "atake", "GaveUp"]


def test_a_local_budget_is_asked_at_once() -> None:
    """Nothing is left pending for a budget that does not block, in an async loop neither."""
    runtime = current.get()
    run = Run(BUSY.with_budget(Budget()), "op", runtime, runtime.monotonic(), awaits=True)
    assert type(run.after(TRANSIENT, Busy(), "Busy", "", repeatable=True)) is float


def test_what_is_not_pending_is_returned_as_it_is() -> None:
    """A delay of a run without such a budget costs no question, and None means to give up."""

    async def main() -> None:
        assert await granted(1.5) == 1.5
        assert await granted(None) is None
        assert await granted(PendingDelay(2.0, Budget().atake, lambda allowed: 2.0 if allowed else None)) == 2.0

    anyio.run(main)
