"""Properties of every run there can be: thousands of random ones, by every driver, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential, Sequence
from forbear.core.decide import Reason
from forbear.core.limits import Limits
from forbear.core.report import report
from forbear.core.verdict import Kind, Verdict
from forbear.policy import Policy
from forbear.run.runtime import AttemptTimeout
from forbear.testing.virtual_clock import clock
from forbear_testkit.run.drivers import ASYNC, DRIVERS, Driver, Outcome

ROUNDING = 1e-9


class Failure(Exception):
    """A failed attempt that says what it means."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.kind.value)
        self.verdict = verdict


def meaning(error: Exception) -> Verdict:
    """The `on` of all policies here."""
    assert isinstance(error, Failure)
    return error.verdict


@dataclass
class Attempt:
    """The plan of one attempt, when it ended, and whether it was cut short."""

    verdict: Verdict | None
    takes: float
    ended: list[float] = field(default_factory=list)
    cut: bool = False

    def sync(self) -> str:
        """As a sync function."""
        clock().sleep(self.takes)
        return self._end()

    async def asynchronous(self) -> str:
        """As a coroutine function."""
        try:
            await clock().asleep(self.takes)
        except BaseException:
            self.cut = True
            self.ended.append(clock().elapsed)
            raise
        return self._end()

    def _end(self) -> str:
        self.ended.append(clock().elapsed)
        if self.verdict is not None:
            raise Failure(self.verdict)
        return "done"


seconds = st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0]) | st.floats(min_value=0, max_value=100)
positive = st.sampled_from([0.1, 1.0, 7.0, 30.0, 60.0]) | st.floats(min_value=0.01, max_value=200)
# Mostly what leads to another attempt, or runs would be short.
verdicts = st.builds(
    Verdict,
    kind=st.sampled_from([*(8 * [Kind.TRANSIENT]), *(4 * [Kind.NOT_EXECUTED]), *Kind]),
    retry_after=st.sampled_from([*(9 * [None]), 0, 0.5, 3, 10, 40, float("inf")]),
    delay=st.sampled_from([*(9 * [None]), 0, 0.5, 3, 10, 40]),
)
backoffs = (
    st.builds(Exponential, st.sampled_from([0.1, 1.0]), jitter=st.sampled_from(JITTERS))
    | st.builds(Constant, seconds, spread=seconds)
    | st.builds(Sequence, st.lists(seconds, min_size=1, max_size=4), spread=seconds)
)  # fmt: skip
limits = st.builds(
    Limits,
    attempts=st.none() | st.integers(min_value=1, max_value=6),
    timeout=st.none() | positive,
    clamp=st.booleans(),
    max_retry_after=seconds,
    unlimited=st.just(True),
)
policies = st.builds(Policy, st.just(meaning), limits, backoffs, repeatable=st.sampled_from([True, True, True, False]))
failures = st.integers(min_value=0, max_value=8).flatmap(
    lambda n: st.lists(st.tuples(verdicts, seconds), min_size=n, max_size=n)
)


def ride(drive: Driver, policy: Policy, plan: list[tuple[Verdict, float]], seed: int) -> tuple[Outcome, list[Attempt]]:
    """Run the plan, then success, under the policy."""
    attempts = [*(Attempt(verdict, takes) for verdict, takes in plan), Attempt(None, 0)]
    outcomes: list[Callable[[], object]] = [
        attempt.asynchronous if drive.backend else attempt.sync for attempt in attempts
    ]
    return drive(policy, *outcomes, seed=seed), attempts


def check(policy: Policy, outcome: Outcome, attempts: list[Attempt]) -> None:
    """The promises: safe, polite, bounded."""
    made = attempts[: len(outcome.calls)]
    allowed = policy.limits
    assert allowed.attempts is None or len(made) <= allowed.attempts
    if allowed.timeout is not None:
        assert all(start <= allowed.timeout + ROUNDING for start in outcome.starts)
    assert len(outcome.slept) == len(made) - 1

    for attempt, next_start, slept in zip(made, outcome.starts[1:], outcome.slept, strict=False):
        verdict = attempt.verdict
        assert verdict is not None
        assert next_start == pytest.approx(attempt.ended[0] + slept, abs=ROUNDING)
        if attempt.cut:
            assert policy.repeatable
            continue
        assert verdict.kind in (Kind.TRANSIENT, Kind.NOT_EXECUTED)
        assert policy.repeatable or verdict.kind is Kind.NOT_EXECUTED
        assert slept >= (verdict.retry_after or 0)

    if outcome.error is None:
        assert made[-1].verdict is None
    else:
        check_end(policy, outcome, made)


def check_end(policy: Policy, outcome: Outcome, made: list[Attempt]) -> None:
    """The error is the last attempt's own, and the reason given for stopping is true."""
    error = outcome.error
    assert error is not None
    last = made[-1].verdict
    if isinstance(error, AttemptTimeout):
        last = Verdict(Kind.TRANSIENT)
    else:
        assert isinstance(error, Failure)
        assert error.verdict is last
    assert last is not None
    found = report(error)
    if found is None:
        assert (last.kind, len(made)) == (Kind.PERMANENT, 1)
        return
    left = float("inf") if policy.limits.timeout is None else policy.limits.timeout - found.elapsed
    true = {
        Reason.PERMANENT: last.kind is Kind.PERMANENT,
        Reason.CONFLICT: last.kind is Kind.CONFLICT,
        Reason.UNSAFE: last.kind is Kind.TRANSIENT and not policy.repeatable,
        Reason.ATTEMPTS: len(made) == policy.limits.attempts,
        Reason.TIMEOUT: left <= 0 or not policy.limits.clamp,
        Reason.RETRY_AFTER: (last.retry_after or 0) > min(left, policy.limits.max_retry_after),
    }
    assert true[found.reason]
    assert len(found.attempts) == len(made)


@settings(max_examples=2 * settings().max_examples)  # times nine drivers
@given(policies, failures, st.integers(min_value=0, max_value=2**32))
def test_every_run_is_safe_polite_and_bounded(policy: Policy, plan: list[tuple[Verdict, float]], seed: int) -> None:
    """Never too many attempts, none past the deadline, none below Retry-After, none unsafe; all drivers alike."""
    starts: list[list[float]] = []
    for drive in DRIVERS:
        outcome, attempts = ride(drive, policy, plan, seed)
        check(policy, outcome, attempts)
        starts.append(outcome.starts)
    assert all(other == starts[0] for other in starts)


@given(policies, positive, failures, st.integers(min_value=0, max_value=2**32))
def test_every_run_with_attempt_timeouts_is_bounded(
    policy: Policy, attempt_timeout: float, plan: list[tuple[Verdict, float]], seed: int
) -> None:
    """No attempt outlasts its timeout or what is left of the whole, except a final one that starts at the deadline."""
    policy = policy.with_attempt_timeout(attempt_timeout)
    for drive in ASYNC:
        outcome, attempts = ride(drive, policy, plan, seed)
        check(policy, outcome, attempts)
        for start, attempt in zip(outcome.starts, attempts, strict=False):
            left = float("inf") if policy.limits.timeout is None else policy.limits.timeout - start
            longest = min(attempt_timeout, left) if left > 0 else attempt_timeout
            assert attempt.ended[0] - start <= longest + ROUNDING
