"""A budget whose `take` does I/O: async loops await it between the decision and the wait, sync loops call it."""

import anyio
import pytest

from forbear.core.report import report
from forbear.core.verdict import TRANSIENT
from forbear.run.budget import Budget
from forbear.run.failure import Failure
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
    """The grant of a budget that does not block is granted already, in an async loop too."""
    runtime = current.get()
    budget = Budget()
    run = Run(BUSY.with_budget(budget), "op", runtime, runtime.monotonic(), awaits=True)
    grant = run.after(Failure(TRANSIENT, Busy()))
    assert grant is not None
    assert (grant.is_open, anyio.run(grant.aask)) == (False, True)
    assert sum(budget.take() for _ in range(20)) == 9  # of ten


def test_a_budget_with_an_atake_of_its_own_is_asked_by_the_grant() -> None:
    """The run has decided, and nothing is asked before the loop asks."""
    budget = Remote(True)
    with virtual_time():
        runtime = current.get()
        run = Run(budget.policy(), "op", runtime, runtime.monotonic())
        grant = run.after(Failure(TRANSIENT, Busy()))
        assert grant is not None
        assert (grant.is_open, budget.log) == (True, [])
        assert grant.ask()
    assert budget.log == ["take", "Scheduled"]
