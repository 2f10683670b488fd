"""Budget rules: what they count and when they refuse, token by token and slot by slot."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forbear
from forbear.core.budget import MICRO, Ratio, Throttle, TokenBucket, check_rule
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict

Rule = TokenBucket | Throttle | Ratio


def takes(rule: Rule, state: list[int], now: float = 0, at_most: int = 10_000, verdict: Verdict = TRANSIENT) -> int:
    """Return how many retries are granted in a row, each after a failure."""
    granted = 0
    while granted < at_most:
        if isinstance(rule, Throttle):
            rule.failed(state, now, verdict)
        if rule.take(state, now, verdict) is None:
            break
        granted += 1
    return granted


def puts(rule: Rule, state: list[int], times: int, now: float = 0, cost: int = 0) -> None:
    """Enter so many successes, after a last retry that took `cost`."""
    for _ in range(times):
        rule.succeeded(state, now, cost)


def test_token_bucket_defaults() -> None:
    """Ten tokens; a retry takes one, ten successes earn one."""
    rule = TokenBucket()
    assert rule == TokenBucket(capacity=10, deposit=0.1, cost=1, refund=False)
    state = rule.start()
    assert takes(rule, state) == 10
    puts(rule, state, 9)
    assert takes(rule, state) == 0
    puts(rule, state, 1)
    assert takes(rule, state) == 1
    puts(rule, state, 1000, cost=MICRO)
    assert takes(rule, state) == 10


def test_token_bucket_with_refund() -> None:
    """A success after a retry gives back what one took; one at the first attempt puts in the deposit."""
    rule = TokenBucket(capacity=500, deposit=1, cost=5, refund=True)
    state = rule.start()
    assert takes(rule, state) == 100
    puts(rule, state, 1, cost=5 * MICRO)
    assert takes(rule, state) == 1
    puts(rule, state, 4)
    assert takes(rule, state) == 0
    puts(rule, state, 1)
    assert takes(rule, state) == 1


def test_a_full_bucket_stays_full() -> None:
    """Successes do not add up beyond the capacity."""
    rule = TokenBucket(capacity=2, deposit=0.5)
    state = rule.start()
    puts(rule, state, 1)
    assert takes(rule, state) == 2
    puts(rule, state, 5)
    assert takes(rule, state) == 2


def test_a_bucket_too_small_for_its_price() -> None:
    """A retry that costs more than the bucket holds is never granted."""
    rule = TokenBucket(capacity=1, cost=2)
    assert takes(rule, rule.start()) == 0


def test_throttle_defaults() -> None:
    """Ten tokens; each failure takes one, and retries stop while half or less are left."""
    rule = Throttle()
    assert rule == Throttle(max_tokens=10, token_ratio=0.1)
    state = rule.start()
    assert takes(rule, state) == 4
    puts(rule, state, 9)
    assert takes(rule, state) == 0  # 5 + 0.9 - 1 are left after the refused one counted, too
    puts(rule, state, 21)
    assert takes(rule, state, at_most=1) == 1


def test_throttle_counts_in_thousandths() -> None:
    """As gRPC does: a failure takes one token, not a thousandth more."""
    rule = Throttle(max_tokens=4.002)
    assert takes(rule, rule.start()) == 2


def test_throttle_bottoms_out() -> None:
    """Refused failures count, but there are no debts: six tokens' worth of successes bring retries back."""
    rule = Throttle()
    state = rule.start()
    for _ in range(100):
        rule.failed(state, 0, TRANSIENT)
    puts(rule, state, 60)
    assert takes(rule, state) == 0
    puts(rule, state, 11)
    assert takes(rule, state, at_most=1) == 1


def test_throttle_fills_up_to_its_maximum() -> None:
    """More successes than tokens change nothing."""
    rule = Throttle(max_tokens=4, token_ratio=1)
    state = rule.start()
    puts(rule, state, 100)
    assert takes(rule, state) == 1


def test_ratio_defaults() -> None:
    """A retry for every five successes of the last ten seconds, and none without any."""
    rule = Ratio()
    assert rule == Ratio(ratio=0.2, window=10, floor=0)
    state = rule.start()
    assert state == 21 * [0]
    assert takes(rule, state) == 0
    puts(rule, state, 4)
    assert takes(rule, state) == 0
    puts(rule, state, 1)
    assert takes(rule, state) == 1
    puts(rule, state, 20, cost=MICRO)
    assert takes(rule, state) == 4


def test_ratio_with_a_floor() -> None:
    """So many retries per second are granted without any success."""
    rule = Ratio(floor=0.5)
    assert takes(rule, rule.start()) == 5


@pytest.mark.parametrize(("later", "granted"), [(0, 2), (5, 2), (8.9, 2), (9, 2), (9.9, 2), (10, 0), (1000, 0)])
def test_successes_leave_the_window(later: float, granted: int) -> None:
    """A success is forgotten with its slot, a tenth of the window."""
    rule = Ratio()
    state = rule.start()
    puts(rule, state, 10, now=100)
    assert takes(rule, state, now=100 + later) == granted


@pytest.mark.parametrize(("later", "granted"), [(0, 0), (9.9, 0), (10, 3), (1000, 3)])
def test_retries_leave_the_window(later: float, granted: int) -> None:
    """Retries are forgotten as successes are; the floor stays."""
    rule = Ratio(floor=0.3)
    state = rule.start()
    assert takes(rule, state, now=100) == 3
    assert takes(rule, state, now=100 + later) == granted


def test_the_window_moves_slot_by_slot() -> None:
    """Successes of every second: the sum is that of the last ten."""
    rule = Ratio(ratio=1)
    state = rule.start()
    for second in range(30):
        puts(rule, state, 1, now=second)
    assert takes(rule, state, now=29) == 10
    assert takes(rule, state, now=33) == 0
    puts(rule, state, 5, now=39)
    assert takes(rule, state, now=39.5) == 5


def test_a_clock_that_jumps_back_is_survived() -> None:
    """Another clock, as in virtual time, may be behind: what it brings counts as of the newest slot."""
    rule = Ratio(ratio=1)
    state = rule.start()
    puts(rule, state, 3, now=1000)
    assert takes(rule, state, now=5) == 3
    puts(rule, state, 1, now=5)
    assert takes(rule, state, now=1009) == 1


def test_another_window() -> None:
    """The slots are tenths of whatever the window is."""
    rule = Ratio(ratio=1, window=1)
    state = rule.start()
    puts(rule, state, 2, now=5)
    assert takes(rule, state, now=5.85, at_most=1) == 1
    assert takes(rule, state, now=6.05) == 0


@given(
    st.integers(min_value=10, max_value=1000),
    st.lists(st.tuples(st.floats(min_value=0, max_value=3), st.booleans()), max_size=60),
)
def test_a_ratio_is_never_exceeded(thousandths: int, steps: list[tuple[float, bool]]) -> None:
    """Whatever comes when: within the window as it is kept, retries never outnumber their share of the successes."""
    rule = Ratio(thousandths / 1000)
    state = rule.start()
    now = 0.0
    events: list[tuple[int, bool]] = []
    for pause, success in steps:
        now += pause
        slot = int(now / 10 * 10)
        if success:
            rule.succeeded(state, now, 0)
            events.append((slot, True))
        else:
            recent = [kind for at, kind in events if at > slot - 10]
            successes, retries = recent.count(True), recent.count(False)
            granted = rule.take(state, now, TRANSIENT) is not None
            assert granted == (1000 * (retries + 1) <= thousandths * successes)
            if granted:
                events.append((slot, False))


@pytest.mark.parametrize(
    ("verdict", "cost"),
    [
        (TRANSIENT, 14),
        (Verdict(Kind.NOT_EXECUTED, throttled=True), 5),
        (Verdict(Kind.TRANSIENT, timed_out=True), 10),
        (Verdict(Kind.TRANSIENT, throttled=True, timed_out=True), 5),
    ],
)
def test_a_retry_costs_by_its_failure(verdict: Verdict, cost: int) -> None:
    """Throttling first, then timeouts; a success gives back exactly what the last retry took."""
    rule = TokenBucket(500, 1, 14, refund=True, throttled_cost=5, timeout_cost=10)
    state = rule.start()
    full = list(state)
    assert rule.take(state, 0, verdict) == cost * MICRO
    assert state[0] == (500 - cost) * MICRO
    rule.succeeded(state, 0, cost * MICRO)
    assert state == full
    assert takes(rule, state, verdict=verdict) == 500 // cost


@pytest.mark.parametrize(
    ("verdict", "left"), [(TRANSIENT, 9), (NOT_EXECUTED, 9), (PERMANENT, 10), (CONFLICT, 10)], ids=str
)
def test_a_throttle_counts_what_could_be_retried(verdict: Verdict, left: int) -> None:
    """Failures that no retry can help say nothing about the load."""
    rule = Throttle()
    state = rule.start()
    rule.failed(state, 0, verdict)
    assert state[0] == left * MICRO


@pytest.mark.parametrize(
    ("make", "arguments", "error", "text"),
    [
        (TokenBucket, {"capacity": 0}, ValueError, "`capacity` must be positive and finite, got 0"),
        (TokenBucket, {"capacity": float("inf")}, ValueError, "`capacity` must be positive and finite, got inf"),
        (TokenBucket, {"capacity": "10"}, TypeError, "`capacity` must be a number, got '10'"),
        (TokenBucket, {"deposit": -0.1}, ValueError, "`deposit` must be 0 or more and finite, got -0.1"),
        (TokenBucket, {"deposit": float("nan")}, TypeError, "`deposit` must be a number, got nan"),
        (TokenBucket, {"cost": 0}, ValueError, "`cost` must be positive and finite, got 0"),
        (TokenBucket, {"cost": True}, TypeError, "`cost` must be a number, got True"),
        (TokenBucket, {"capacity": 1e-9}, ValueError, "`capacity` must be at least 0.000001, got 1e-09"),
        (TokenBucket, {"deposit": 1e-9}, ValueError, "`deposit` must be at least 0.000001 or 0, got 1e-09"),
        (TokenBucket, {"throttled_cost": 0}, ValueError, "`throttled_cost` must be positive and finite, got 0"),
        (TokenBucket, {"timeout_cost": "5"}, TypeError, "`timeout_cost` must be a number, got '5'"),
        (TokenBucket, {"refund": 1}, TypeError, "`refund` must be True or False, got 1"),
        (Throttle, {"max_tokens": 0}, ValueError, "`max_tokens` must be positive and finite, got 0"),
        (Throttle, {"token_ratio": 0}, ValueError, "`token_ratio` must be positive and finite, got 0"),
        (Ratio, {"ratio": 0}, ValueError, "`ratio` must be positive and finite, got 0"),
        (Ratio, {"ratio": None}, TypeError, "`ratio` must be a number, got None"),
        (Ratio, {"window": 0}, ValueError, "`window` must be positive and finite, got 0"),
        (Ratio, {"window": "10"}, TypeError, "`window` must be a number of seconds, got '10'"),
        (Ratio, {"floor": -1}, ValueError, "`floor` must be 0 or more and finite, got -1"),
    ],
)
def test_bad_values_are_refused_by_name(
    make: Callable[..., Any], arguments: dict[str, object], error: type[Exception], text: str
) -> None:
    """Every text names the parameter, the rule and the value."""
    with pytest.raises(error) as caught:
        make(**arguments)
    assert str(caught.value) == text


def test_zero_deposits_and_floors_are_allowed() -> None:
    """A bucket that never fills again, a window without a floor."""
    rule = TokenBucket(1, deposit=0)
    state = rule.start()
    assert takes(rule, state) == 1
    puts(rule, state, 1000)
    assert takes(rule, state) == 0
    assert Ratio(floor=0).floor == 0


METHODS = r"`rule` must have the methods start\(\), take\(state, now, verdict\) and succeeded"


class Blind(forbear.budgets.TokenBucket):
    """A bucket that does not accept the verdict."""

    __slots__ = ()

    def take(self, state: list[int], now: float) -> bool:  # type: ignore[override]
        """Grant nothing."""
        return False


class Half:
    """A rule that lacks `start` and `succeeded`."""

    def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
        """Grant nothing."""
        return None


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Half(), METHODS),
        (Blind(), METHODS),
        (forbear.budgets.TokenBucket, r"`rule` must be a rule such as forbear.budgets.TokenBucket\(\)"),
        (0.1, r"`rule` must be a rule such as forbear.budgets.TokenBucket\(\)"),
    ],
)
def test_rules_that_cannot_work_are_refused(rule: Any, text: str) -> None:
    """The text says which methods a rule must have."""
    with pytest.raises(TypeError, match=text):
        check_rule(rule)
    with pytest.raises(TypeError, match=text):
        forbear.budgets.Budget(rule)
