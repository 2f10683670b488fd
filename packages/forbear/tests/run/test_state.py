"""Facts that adapters give a run beyond the error: why it must stop, why it is not safe, what a response may mean."""

from typing import Any

import pytest

from forbear.core.decide import Reason, Stop
from forbear.core.report import attach, report
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.policy import Policy
from forbear.run.budget import Budget
from forbear.run.failure import DetailedFailure
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Busy, small

GONE = Stop(Reason.BODY, "the body is gone")


def begun(policy: Policy = BUSY) -> Run:
    """A run of which the first attempt has just failed."""
    return Run(policy, "upload", current.get(), current.get().monotonic())


def after(run: Run, verdict: Verdict = TRANSIENT, error: Exception | None = None, **more: Any) -> float | None:
    """Report a failure to the run; return the delay of its retry, None if it gave up."""
    grant = run.after(DetailedFailure(verdict, error, name="Busy", text="lost", **more))
    return None if grant is None or not grant.ask() else grant.delay


def reason(run: Run) -> tuple[Reason, str]:
    """Why it gave up."""
    assert run.report is not None
    return run.report.reason, run.report.text


def test_what_blocks_another_attempt() -> None:
    """It counts only where another attempt was allowed, and it takes nothing from the budget."""
    budget = Budget(small(1)._rule)
    run = begun(BUSY.with_budget(budget))
    assert after(run, blocked=GONE) is None
    assert reason(run) == (Reason.BODY, "the body is gone")
    assert budget.take()
    run = begun()
    assert after(run, unsafe="it would append twice", blocked=GONE) is None
    assert reason(run) == (Reason.UNSAFE, "it would append twice")


def test_why_it_is_unsafe() -> None:
    """The adapter knows the operation, so its words replace the general ones; they concern no other stop."""
    run = begun()
    assert after(run, unsafe="a second one would append twice") is None
    assert reason(run) == (Reason.UNSAFE, "a second one would append twice")
    run = begun(BUSY.with_attempts(1))
    assert after(run, NOT_EXECUTED, unsafe="not this") is None
    assert reason(run) == (Reason.ATTEMPTS, "limit of 1 attempt reached")
    run = begun()
    assert after(run, NOT_EXECUTED, unsafe="not this") == 1


@pytest.mark.parametrize(
    ("before", "maybe_done", "doubt"),
    [(TRANSIENT, True, True), (TRANSIENT, False, False), (NOT_EXECUTED, True, False)],
)
def test_a_response_that_may_mean_an_earlier_success(before: Verdict, maybe_done: bool, doubt: bool) -> None:
    """It does so only after an attempt that may have been executed."""
    run = begun()
    assert after(run, before) == 1
    assert after(run, PERMANENT, maybe_done=maybe_done) is None
    assert run.report is not None
    assert run.report.maybe_done is doubt
    assert run.report.note.endswith("; an earlier attempt may have worked [permanent]") is doubt


def test_doubt_is_not_forgotten() -> None:
    """An attempt that was certainly not executed says nothing about the one before it."""
    run = begun()
    assert after(run, TRANSIENT) == 1
    assert after(run, NOT_EXECUTED) == 1
    assert after(run, PERMANENT, maybe_done=True) is None
    assert run.report is not None
    assert run.report.maybe_done


def test_a_first_response_means_what_it_says() -> None:
    """There was no earlier attempt."""
    run = begun()
    assert after(run, PERMANENT, maybe_done=True) is None
    assert run.report is None


class Reply:
    """A response with an empty body, which counts as false."""

    def __init__(self) -> None:
        self.extensions: dict[str, object] = {}

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("retry_exhausted", [False, True])
def test_a_response_that_was_retried_within(retry_exhausted: bool) -> None:
    """It carries the report of the inner run, and is not retried again unless told to."""
    run = begun(BUSY.replace(retry_exhausted=retry_exhausted))
    inner = begun(BUSY.with_attempts(1))
    assert after(inner) is None
    reply = Reply()
    reply.extensions["forbear_report"] = inner.report
    assert after(run, response=reply) == (1 if retry_exhausted else None)
    assert run.report is None


def test_an_error_is_looked_at_before_its_response() -> None:
    """A report on the error itself decides."""
    earlier = begun(BUSY.with_attempts(1))
    error = Busy()
    assert after(earlier, error=error) is None
    assert report(error) is earlier.report
    run = begun()
    assert after(run, error=error, response=Reply()) == 1  # from before this run
    assert earlier.report is not None
    attach(error, earlier.report.replace())  # as it comes from another process
    assert after(run, error=error, response=Reply()) is None


def test_time_is_counted_from_before_the_first_attempt() -> None:
    """An adapter may make the run only when an attempt has failed."""
    with virtual_time() as time:
        started = current.get().monotonic()
        time.advance(58)
        run = Run(BUSY.with_timeout(59), "upload", current.get(), started)
        assert after(run) == 1
        time.advance(1.5)
        assert after(run) is None
        assert reason(run) == (Reason.TIMEOUT, "timeout of 59 s reached")
