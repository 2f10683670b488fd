"""From any state that a rule can reach, the number of successes in its docstring grants a retry again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.budget import MICRO, SLOTS, Ratio, Throttle, TokenBucket, micro
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
LATE = Verdict(Kind.TRANSIENT, timed_out=True)
WORTH_IT = (TRANSIENT, THROTTLED, LATE)
VERDICTS = (*WORTH_IT, PERMANENT)


def ceil_of(number: int, divisor: int) -> int:
    """Return the quotient of two whole numbers, rounded up, at least 0."""
    return max(0, -(-number // divisor))


class Calls:
    """Calls under a rule, reported to it as a run does; `refused` counts first attempts that it did not admit."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.state: list[int] = rule.start()
        self.now = 0.0
        self.refused = 0

    def begin(self) -> None:
        """Begin a first attempt; the rule's lot is the luckiest."""
        if hasattr(self.rule, "admit"):
            self.refused += not self.rule.admit(self.state, self.now, 1 - 1e-9)

    def fail(self, verdict: Verdict, cost: int = 0) -> int | None:
        """End an attempt with a failure, and return what a retry costs; None if it is refused."""
        self.end(cost)
        if hasattr(self.rule, "failed"):
            self.rule.failed(self.state, self.now, verdict)
        if verdict.kind is not Kind.TRANSIENT:
            return None
        granted: int | None = self.rule.take(self.state, self.now, verdict)
        return granted

    def succeed(self, cost: int = 0) -> None:
        """End an attempt with a success, after a retry of this cost."""
        self.end(cost)
        self.rule.succeeded(self.state, self.now, cost)

    def end(self, cost: int) -> None:
        """End an attempt."""
        if hasattr(self.rule, "release"):
            self.rule.release(self.state, self.now, cost)


@dataclass
class Step:
    """A call of a history: its failures, whether it succeeds after those, and the seconds that pass before."""

    pause: float
    failures: list[Verdict]
    succeeds: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0.0, 0.0, 0.0, 0.3, 4.0, 30.0]),
        st.lists(st.sampled_from(VERDICTS), max_size=4),
        st.booleans(),
    ),
    max_size=40,
)


def live(calls: Calls, steps: list[Step]) -> None:
    """Make the calls of a history, one after the other."""
    for step in steps:
        calls.now += step.pause
        calls.begin()
        cost: int | None = 0
        for verdict in step.failures:
            cost = calls.fail(verdict, cost or 0)
            if cost is None:
                break
        if cost is not None:
            calls.succeed(cost) if step.succeeds else calls.end(cost)


def recovers(rule: Any, steps: list[Step], successes: Callable[[list[int]], int], verdict: Verdict = TRANSIENT) -> None:
    """Check that after a history and so many successes, which follow from the counters, a call is granted a retry."""
    calls = Calls(rule)
    live(calls, steps)
    calls.begin()
    calls.end(0)  # a call that was cancelled, so that old slots are cleared
    for _ in range(successes(calls.state)):
        calls.begin()
        calls.succeed()
    calls.begin()
    assert calls.fail(verdict) is not None


COSTS = st.sampled_from([0.1, 0.5, 1, 5, 14])


@given(st.builds(TokenBucket, st.sampled_from([14, 20, 500]), st.sampled_from([0.01, 0.1, 0.3, 1, 2.5]), COSTS), STEPS)
def test_token_bucket(rule: TokenBucket, steps: list[Step]) -> None:
    """ceil(cost / deposit) of them, at the first attempt."""
    recovers(rule, steps, lambda _: ceil_of(micro(rule.cost), micro(rule.deposit)))


@given(STEPS, st.sampled_from(WORTH_IT), st.booleans())
def test_token_bucket_by_the_failure(steps: list[Step], verdict: Verdict, refund: bool) -> None:
    """The cost is that of the failure, as in the quotas of the AWS SDKs."""
    rule = TokenBucket(20, 1, 14, refund=refund, throttled_cost=5, timeout_cost=10)
    cost = 5 if verdict.throttled else 10 if verdict.timed_out else 14
    recovers(rule, steps, lambda _: cost, verdict)


@given(st.builds(Throttle, st.sampled_from([2.5, 4, 10, 100]), st.sampled_from([0.01, 0.1, 0.5, 1, 3])), STEPS)
def test_a_throttle_grants_again_after_so_many_successes(rule: Throttle, steps: list[Step]) -> None:
    """floor((max_tokens / 2 + 1) / token_ratio) + 1 of them."""
    most, ratio = micro(rule.max_tokens), micro(rule.token_ratio)
    recovers(rule, steps, lambda _: (most // 2 + MICRO) // ratio + 1)


@given(
    st.builds(Ratio, st.sampled_from([0.01, 0.1, 0.2, 1, 3]), st.sampled_from([1, 10]), st.sampled_from([0, 1])), STEPS
)
def test_a_ratio_grants_again_after_so_many_successes(rule: Ratio, steps: list[Step]) -> None:
    """At most ceil((R + 1) / ratio) of them for R retries in the window."""
    recovers(rule, steps, lambda state: ceil_of((sum(state[1 + SLOTS :]) + 1) * MICRO, micro(rule.ratio)))


@given(st.builds(RequestRatio, st.sampled_from([0.01, 0.1, 0.2, 1]), st.just(10), st.sampled_from([0, 1, 10])), STEPS)
def test_request_ratio(rule: RequestRatio, steps: list[Step]) -> None:
    """As many first attempts, which succeed here."""
    recovers(rule, steps, lambda state: ceil_of((sum(state[1 + SLOTS :]) + 1) * MICRO, micro(rule.ratio)))


@given(st.builds(ActiveShare, st.sampled_from([0, 0.2, 1]), st.sampled_from([1, 3])), STEPS)
def test_active_share(rule: ActiveShare, steps: list[Step]) -> None:
    """None: once the retries under way have ended, one is granted."""
    recovers(rule, steps, lambda _: 0)


@given(st.builds(ClientThrottle, st.sampled_from([1.1, 1.5, 2, 10]), st.sampled_from([10, 120])), STEPS)
def test_client_throttle(rule: ClientThrottle, steps: list[Step]) -> None:
    """ceil((requests + 1 - k * accepts) / (k - 1)) of them."""
    k = micro(rule.k)

    def successes(state: list[int]) -> int:
        requests, accepts = sum(state[1 : 1 + SLOTS]), sum(state[1 + SLOTS :])
        return ceil_of((requests + 1) * MICRO - k * accepts, k - MICRO)

    recovers(rule, steps, successes)
