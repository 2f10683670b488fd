"""The contract between runs and the rules of their budgets: what each published rule grants, and what it counts."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

import forbear
from forbear.core.decide import Reason
from forbear.core.events import Failed, GaveUp
from forbear.core.report import report
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.observe.prometheus import Prometheus
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.run.spending import Throttled
from forbear.testing.script import Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.budgets import Closed, begun
from forbear_testkit.run.cases import Busy

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


def failing(verdict: Verdict, budget: Budget, **options: Any) -> Policy:
    """Return a policy without limits but the budget, under which every error has this verdict."""
    policy: Policy = retry(
        on=lambda error: verdict,
        attempts=None,
        timeout=None,
        unlimited=True,
        backoff=forbear.Constant(0),
        budget=budget,
        **options,
    )
    return policy


def outage(policy: Policy, calls: int, error: type[Exception] = Busy) -> tuple[int, int]:
    """Make calls that all fail; return how many attempts were sent, and how many were refused at the first attempt."""
    sent, refused = 0, 0

    def fail() -> None:
        nonlocal sent
        sent += 1
        raise error

    for _ in range(calls):
        try:
            policy.call(fail)
        except Throttled:
            refused += 1
        except error:
            pass
    return sent, refused


@pytest.mark.parametrize(
    ("make", "verdict", "error", "calls", "retries"),
    [
        (Budget.aws, TRANSIENT, Busy, 50, 35),
        (Budget.aws, THROTTLED, Busy, 200, 100),
        (Budget.aws, TRANSIENT, TimeoutError, 50, 35),
        (Budget.aws_until_2026, TRANSIENT, Busy, 200, 100),
        (Budget.aws_until_2026, TRANSIENT, TimeoutError, 200, 50),
        (Budget.aws_until_2026, THROTTLED, Busy, 200, 100),
        (Budget.grpc, TRANSIENT, Busy, 50, 4),
        (Budget.brooker, TRANSIENT, Busy, 50, 10),
        (Budget.finagle, TRANSIENT, Busy, 1, 100),
        (Budget.finagle, TRANSIENT, Busy, 500, 200),
        (Budget.ratio, TRANSIENT, Busy, 50, 0),
        (lambda: Budget.ratio(floor=2), TRANSIENT, Busy, 50, 20),
    ],
)
def test_retries_in_a_total_outage(
    make: Callable[[], Budget], verdict: Verdict, error: type[Exception], calls: int, retries: int
) -> None:
    """Nothing succeeds: each preset grants exactly its published number of retries, however the calls share them."""
    with virtual_time():
        assert outage(failing(verdict, make()), calls, error) == (calls + retries, 0)


@pytest.mark.parametrize(("calls", "retries"), [(1, 1), (3, 3), (10, 3), (19, 3), (20, 4), (100, 20), (104, 20)])
def test_envoy_in_a_total_outage(calls: int, retries: int) -> None:
    """Calls that are under way together fail one after the other: a fifth of them is retried, or three."""
    budget = Budget.envoy()
    runs = begun(failing(TRANSIENT, budget), calls)
    going_on = [run for run in runs if run.failed(Busy()) is not None]
    assert len(going_on) == retries
    assert budget._state[:2] == [retries, retries]
    again = [run for run in going_on if run.failed(Busy()) is not None]  # a failed retry leaves its place to the next
    assert len(again) == min(retries, 3)
    for run in again:
        run.succeeded()
    assert budget._state[:2] == [0, 0]


def test_the_client_throttle_in_a_total_outage() -> None:
    """After 100 successes, 100 more attempts are sent as if nothing were wrong; then first attempts are refused."""
    budget = Budget.google_sre()
    policy = failing(TRANSIENT, budget)
    with virtual_time() as time:
        for _ in range(100):
            policy.call(Script("done"))
        assert outage(policy, 1) == (101, 0)  # one that is retried for as long as the budget grants it
        sent, refused = outage(policy, 400)
        assert sent + refused == 400
        assert 50 < refused < 350  # up to 400 of 602 requests, by lot
        time.advance(200)
        assert policy.call(Script("done")) == "done"


@given(
    st.sampled_from(
        [
            (Budget.aws, 14),
            (Budget.aws_until_2026, 10),
            (Budget.brooker, 10),
            (Budget.grpc, 61),
            (Budget.finagle, 0),  # its calls pay in by themselves, whatever becomes of them
        ]
    ),
    st.lists(st.sampled_from(["ok", "failed", "throttled", "late", "recovered"]), max_size=150),
)
def test_successes_grant_a_retry_again(preset: tuple[Callable[[], Budget], int], steps: list[str]) -> None:
    """From any state, the documented number of successes is enough for a retry."""
    make, successes = preset
    budget = make()
    with virtual_time():
        for step in steps:
            error = TimeoutError if step == "late" else Busy
            policy = failing(THROTTLED if step == "throttled" else TRANSIENT, budget)
            if step == "ok":
                policy.call(Script("done"))
            elif step == "recovered":
                outage(policy.with_attempts(2), 1)
            else:
                outage(policy, 1, error)
        policy = failing(TRANSIENT, budget)
        if make == Budget.finagle:
            for _ in range(5):
                outage(policy.with_attempts(1), 1)
        for _ in range(successes):
            policy.call(Script("done"))
        assert outage(policy, 1, TimeoutError)[0] >= 2


def test_a_refused_first_attempt_is_an_event_and_a_metric() -> None:
    """The error has a report with the reason BUDGET, a verdict that says it was not executed, and is counted."""
    events: list[forbear.events.Event] = []
    registry = CollectorRegistry()
    count = Prometheus(registry)

    def note(event: forbear.events.Event) -> None:
        events.append(event)
        count(event)

    policy = failing(TRANSIENT, Budget(Closed()), on_event=note, name="load")
    sent: list[int] = []
    with pytest.raises(Throttled, match="refused the first attempt, because the service refuses too many") as caught:
        policy.call(lambda: sent.append(1))
    assert sent == []
    assert caught.value.verdict is forbear.verdicts.NOT_EXECUTED
    given_up = report(caught.value)
    assert given_up is not None
    assert (given_up.reason, given_up.count) == (Reason.BUDGET, 1)
    assert given_up.text == "the retry budget refused the first attempt"
    assert [type(event) for event in events] == [Failed, GaveUp]
    labels = {"operation": "load", "reason": "budget"}
    assert registry.get_sample_value("forbear_give_ups_total", labels) == 1
    with pytest.raises(Busy):
        failing(TRANSIENT, Budget(forbear.budgets.TokenBucket(1, cost=2)), on_event=note, name="load").call(
            Script(Busy)
        )
    assert registry.get_sample_value("forbear_give_ups_total", labels) == 2


@pytest.mark.parametrize(
    "name", ["aws", "aws_until_2026", "brooker", "envoy", "finagle", "google_sre", "grpc", "ratio"]
)
def test_presets_are_pickled(name: str) -> None:
    """Another process gets a new budget by the same rule."""
    budget: Budget = getattr(Budget, name)()
    assert repr(pickle.loads(pickle.dumps(budget))) == repr(budget)
