"""Budget rules that count first attempts: Finagle's, Envoy's and Google SRE's, request by request."""

from collections.abc import Callable
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.budget import MICRO
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict


@pytest.mark.parametrize(("calls", "retries"), [(0, 100), (4, 100), (5, 101), (1000, 300)])
def test_finagle_funds_by_requests(calls: int, retries: int) -> None:
    """The floor of ten seconds, and one retry for every five calls, whether or not they succeed."""
    rule = RequestRatio()
    state = rule.start()
    assert all(rule.admit(state, 0, 0.5) for _ in range(calls))
    rule.succeeded(state, 0, 0)
    granted = 0
    while rule.take(state, 0, TRANSIENT) is not None:
        granted += 1
    assert granted == retries


@pytest.mark.parametrize(("active", "retries"), [(1, 3), (19, 3), (20, 4), (24, 4), (100, 20)])
def test_envoy_grants_a_share_of_the_active_calls(active: int, retries: int) -> None:
    """All active calls fail at once: a fifth of them is retried, at least three."""
    rule = ActiveShare()
    state = rule.start()
    for _ in range(active):
        assert rule.admit(state, 0, 0.5)
    granted = 0
    for _ in range(max(active, 3)):
        rule.release(state, 0, 0)
        granted += rule.take(state, 0, TRANSIENT) is not None
    assert granted == retries
    rule.succeeded(state, 0, MICRO)
    for _ in range(granted):
        rule.release(state, 0, MICRO)
    assert state == [0, 0]
    rule.release(state, 0, MICRO)
    assert state == [0, 0]


def test_envoys_retries_make_room_for_the_next() -> None:
    """A retry that fails may be followed by another: it counts only while it is active."""
    rule = ActiveShare(share=0, least=1)
    state = rule.start()
    for _ in range(5):
        assert rule.take(state, 0, TRANSIENT) == MICRO
        assert rule.take(state, 0, TRANSIENT) is None
        rule.release(state, 0, MICRO)


def counted(state: list[int]) -> tuple[int, int]:
    """Return the requests and the accepts in a throttle's counters."""
    return sum(state[1:11]), sum(state[11:])


def test_envoys_retries_that_wait_are_no_active_calls() -> None:
    """40 calls are active, and 8 of them fail: each retry that is granted waits for 5 s, and leaves fewer active."""
    rule = ActiveShare(share=0.2, least=0)
    state = rule.start()
    for _ in range(40):
        rule.admit(state, 0, 0.5)
    granted = 0
    for _ in range(8):
        rule.release(state, 0, 0)
        if rule.take(state, 0, TRANSIENT) is not None:
            rule.wait(state, 0, 5)
            granted += 1
    assert granted == 6  # the seventh fails when 34 are active, of which a fifth are 6
    assert rule.take(state, 4.9, TRANSIENT) is None
    assert len(state) == 2 + granted
    assert rule.take(state, 5.1, TRANSIENT) == MICRO  # 39 are active now, of which a fifth are 7
    assert len(state) == 2


def test_a_retry_that_is_cancelled_while_it_waits_is_not_counted_for_ever() -> None:
    """It leaves the counts at once, and its wait with its time."""
    rule = ActiveShare(share=1, least=0)
    state = rule.start()
    assert rule.take(state, 0, TRANSIENT) == MICRO
    rule.wait(state, 0, 60)
    rule.release(state, 1, MICRO)
    assert state[:2] == [0, 0]
    assert rule.take(state, 61, TRANSIENT) == MICRO
    assert state == [1, 1]


@pytest.mark.parametrize(
    ("requests", "accepts", "u", "admitted"),
    [
        (0, 0, 0.0, True),
        (9, 0, 0.0, True),  # fewer than ten requests
        (10, 0, 0.90, False),  # 10 of 11
        (10, 0, 0.91, True),
        (99, 0, 0.98, False),  # 99 of 100
        (99, 0, 0.99, True),
        (100, 50, 0.0, True),  # twice the accepts
        (103, 50, 0.0, False),
        (103, 50, 0.03, True),  # 3 of 104
    ],
)
def test_the_throttle_refuses_by_its_formula(requests: int, accepts: int, u: float, admitted: bool) -> None:
    """It refuses if u is below (requests - 2 accepts) / (requests + 1), and counts only what it refuses."""
    rule = ClientThrottle()
    state = rule.start()
    state[1], state[11] = requests, accepts
    assert rule.admit(state, 0, u) is admitted
    assert counted(state) == (requests + (not admitted), accepts)


@pytest.mark.parametrize("before", [0, 1000], ids=["new", "after a quiet window"])
@pytest.mark.parametrize("u", [0.0, 0.5])
def test_attempts_under_way_are_not_refused_ones(before: int, u: float) -> None:
    """However many begin before the first response, the throttle admits them; it judges by the responses."""
    rule = ClientThrottle()
    state = rule.start()
    for _ in range(before):
        rule.succeeded(state, 0, 0)
    later = 120.0 if before else 0.0
    assert all(rule.admit(state, later, u) for _ in range(1000))
    assert counted(state) == (0, 0)
    for _ in range(1000):
        rule.succeeded(state, later + 1, 0)
    assert counted(state) == (1000, 1000)
    assert rule.admit(state, later + 2, u)


@pytest.mark.parametrize(("least", "granted"), [(0, 0), (1, 0), (3, 2), (10, 9)])
def test_a_few_failures_refuse_nothing(least: int, granted: int) -> None:
    """Below the least number of requests a retry is granted, and a first attempt may be sent."""
    rule = ClientThrottle(least=least)
    state = rule.start()
    for number in range(1, 20):
        rule.failed(state, 0, TRANSIENT)
        assert (rule.take(state, 0, TRANSIENT) is not None) == (number <= granted)
        assert rule.admit([*state], 0, 0.0) == (number <= granted)


@pytest.mark.parametrize(
    ("verdict", "accepts"), [(TRANSIENT, 0), (NOT_EXECUTED, 0), (PERMANENT, 1), (CONFLICT, 1)], ids=str
)
def test_a_clear_no_is_a_request_accepted(verdict: Verdict, accepts: int) -> None:
    """A service that finds no such object is not overloaded."""
    rule = ClientThrottle()
    state = rule.start()
    rule.failed(state, 0, verdict)
    assert counted(state) == (1, accepts)


def test_the_throttle_forgets() -> None:
    """After its window, it admits everything and grants a retry."""
    rule = ClientThrottle(window=10)
    state = rule.start()
    for _ in range(50):
        rule.failed(state, 0, TRANSIENT)
    assert rule.take(state, 9, TRANSIENT) is None
    assert not rule.admit(state, 9, 0.5)
    assert rule.take(state, 20, TRANSIENT) == MICRO


@given(st.sampled_from([1.1, 1.5, 2, 10]), st.integers(0, 200), st.integers(0, 200))
def test_successes_open_the_throttle(k: float, requests: int, accepts: int) -> None:
    """From any state, the documented number of successes grants a retry to the next call that fails."""
    rule = ClientThrottle(k)
    state = rule.start()
    state[1], state[11] = requests, accepts
    for _ in range(max(0, ceil((requests + 1 - k * accepts) / (k - 1) - 1e-9))):
        rule.succeeded(state, 0, 0)
    rule.failed(state, 0, TRANSIENT)
    assert rule.take(state, 0, TRANSIENT) == MICRO


@pytest.mark.parametrize(
    ("make", "arguments", "error", "text"),
    [
        (RequestRatio, {"ratio": 0}, ValueError, "`ratio` must be positive and finite, got 0"),
        (ActiveShare, {"share": -1}, ValueError, "`share` must be 0 or more and finite, got -1"),
        (ActiveShare, {"share": 20}, ValueError, "`share` must be at most 1, which is 100 %, got 20"),
        (ActiveShare, {"least": 1.5}, TypeError, "`least` must be a whole number of retries, got 1.5"),
        (ActiveShare, {"least": -1}, ValueError, "`least` must be 0 or more, got -1"),
        (ClientThrottle, {"k": 1}, ValueError, "`k` must be more than 1, or the throttle never opens again, got 1"),
        (ClientThrottle, {"k": "2"}, TypeError, "`k` must be a number, got '2'"),
        (ClientThrottle, {"window": 0}, ValueError, "`window` must be positive and finite, got 0"),
        (ClientThrottle, {"least": -1}, ValueError, "`least` must be 0 or more, got -1"),
        (ClientThrottle, {"least": 0.5}, TypeError, "`least` must be a whole number of requests, got 0.5"),
    ],
)
def test_bad_values_are_refused_by_name(
    make: Callable[..., Any], arguments: dict[str, object], error: type[Exception], text: str
) -> None:
    """Every text names the parameter, the rule and the value."""
    with pytest.raises(error) as caught:
        make(**arguments)
    assert str(caught.value) == text
