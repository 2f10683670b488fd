"""Numbers of any size: refused in words when something is made of them, or counted with to the end."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.check import LARGEST, shown
from forbear.core.decide import Reason, Stop, Wait, decide
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT, Kind, Verdict

HUGE = 10**400
EXTREMES = [
    0, 0.0, -0.0, 1, -1, 5e-324, 1e-308, 0.1, 0.5, 1e15, 1e16, 1e300, 1e308, LARGEST, -LARGEST, 10**308, HUGE, -HUGE,
    10**5000, math.inf, -math.inf, math.nan, True, None, "1", 1j, 2**63, 2**31,
]  # fmt: skip
numbers = st.one_of(st.sampled_from(EXTREMES), st.floats(), st.integers())
good = st.one_of(
    st.sampled_from([5e-324, 1e-300, 0.1, 1, 7, 1e9, 1e300, LARGEST, 10**308]), st.floats(1e-300, allow_infinity=False)
)
ratios = st.floats(min_value=0, max_value=1, exclude_max=True)


def sequence(delays: Any, spread: Any = 0) -> Sequence:
    """A sequence of one wait."""
    return Sequence([delays], spread)


def verdict(retry_after: Any, delay: Any = None) -> Verdict:
    """A transient verdict."""
    return Verdict(Kind.TRANSIENT, retry_after, delay)


PARAMETERS: dict[Callable[..., Any], tuple[str, ...]] = {
    Exponential: ("initial", "multiplier", "maximum", "spread"),
    Constant: ("seconds", "spread"),
    sequence: ("delays", "spread"),
    Limits: ("attempts", "timeout", "max_retry_after"),
    TokenBucket: ("capacity", "deposit", "cost"),
    Throttle: ("max_tokens", "token_ratio"),
    Ratio: ("ratio", "window", "floor"),
    RequestRatio: ("ratio", "window", "floor"),
    ActiveShare: ("share", "least"),
    ClientThrottle: ("k", "window"),
    verdict: ("retry_after", "delay"),
}


def made(make: Callable[..., Any], names: tuple[str, ...], values: list[Any]) -> Any:
    """Return the result for the values, None where they were refused by the name of one of them."""
    some = dict(zip(names, values, strict=False))
    text = ""
    try:
        return make(**some)
    except (TypeError, ValueError) as error:
        text = str(error)
    assert any(f"`{name}`" in text for name in names), text
    assert "must" in text
    assert len(text) < 600
    return None


@pytest.mark.parametrize("make", PARAMETERS, ids=lambda make: make.__name__)
@given(values=st.lists(numbers, min_size=1, max_size=4))
def test_extreme_numbers_are_taken_or_refused_in_words(make: Callable[..., Any], values: list[Any]) -> None:
    """Each takes a number or refuses it in words; what it made works."""
    thing = made(make, PARAMETERS[make], values)
    if isinstance(thing, Exponential | Constant | Sequence):
        for n in (0, 1, 63, 1024, 10**6, HUGE):
            for u in (0.0, 0.5, 1 - 2**-53):
                assert 0 <= thing.delay(n, u, LARGEST) <= LARGEST
    elif isinstance(thing, TokenBucket | Throttle | Ratio | ActiveShare | ClientThrottle):
        state = thing.start()
        for now in (0.0, 1e-9, 1.0, 1e9):
            thing.succeeded(state, now, 0)
            thing.succeeded(state, now, 5)
            assert (thing.take(state, now, TRANSIENT) or 0) >= 0
    elif isinstance(thing, Limits):
        step = decide(thing, Constant(0), TRANSIENT, attempt=1, elapsed=0.0, u=0.5, repeatable=True)
        assert isinstance(step, Wait) or step.text
    elif isinstance(thing, Verdict):
        step = decide(Limits(), Constant(0), thing, attempt=1, elapsed=0.0, u=0.5, repeatable=True)
        assert isinstance(step, Wait) or step.text


@given(good, good, good, good, ratios, st.integers(min_value=1), st.floats(min_value=0, allow_infinity=False))
def test_decisions_hold_for_extreme_numbers(
    a: float, b: float, c: float, d: float, u: float, attempt: int, elapsed: float
) -> None:
    """Whatever the numbers: a wait that a system can wait, or a stop that says why."""
    limits = [Limits(HUGE, timeout=a), Limits(HUGE, timeout=None, max_retry_after=LARGEST)]
    verdicts = [TRANSIENT, Verdict(Kind.TRANSIENT, retry_after=b), Verdict(Kind.TRANSIENT, delay=c)]
    backoffs: list[Constant | Exponential | Sequence] = [
        Constant(d, LARGEST),
        Exponential(1, LARGEST, LARGEST),
        Sequence([LARGEST], LARGEST),
    ]
    for limit in limits:
        for verdict in verdicts:
            for backoff in backoffs:
                step = decide(limit, backoff, verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=True)
                if isinstance(step, Wait):
                    assert 0 <= step.delay <= 100 * 366 * 86_400
                else:
                    assert step.text


@pytest.mark.parametrize(
    ("limits", "backoff", "verdict"),
    [
        (Limits(timeout=None), Constant(1e12), TRANSIENT),
        (Limits(timeout=1e300), Constant(1e12), TRANSIENT),
        (Limits(timeout=None), Constant(0), Verdict(Kind.TRANSIENT, delay=1e12)),
        (Limits(timeout=None, max_retry_after=1e13), Constant(0), Verdict(Kind.TRANSIENT, retry_after=1e12)),
    ],
)
def test_a_wait_that_no_system_can_wait_is_not_begun(limits: Limits, backoff: Constant, verdict: Verdict) -> None:
    """The run ends at once with the error at hand, and says why."""
    step = decide(limits, backoff, verdict, attempt=1, elapsed=0, u=0, repeatable=True)
    assert isinstance(step, Stop)
    assert step.reason is Reason.TIMEOUT
    assert step.text == "the next wait of 1000000000000 s would be longer than 100 years"


def test_steps_beyond_all_floats() -> None:
    """A step that does not grow stays what it is, however many attempts there were."""
    assert Exponential(3, 1, jitter="none").delay(HUGE, 0) == 3
    assert Exponential(3, 1, 10, jitter="documented").delay(HUGE, 0.5) == 3.5
    assert Exponential(3, 1.5, 10, jitter="none").delay(HUGE, 0) == 10
    assert Constant(LARGEST, LARGEST).delay(0, 0.9) == LARGEST
    assert Sequence([LARGEST], LARGEST).delay(HUGE, 0.9) == LARGEST


@given(st.decimals(min_value="0.000001", max_value=1000, places=6), st.decimals(min_value=0, max_value=10, places=6))
def test_buckets_count_exactly(capacity: Any, deposit: Any) -> None:
    """As one counts with decimals: no share is rounded away, none is added."""
    rule = TokenBucket(float(capacity), float(deposit), cost=float(capacity))
    state = rule.start()
    assert rule.take(state, 0, TRANSIENT)
    tokens, puts = 0, 0
    while tokens < capacity and puts < 50:
        assert rule.take(state, 0, TRANSIENT) is None
        rule.succeeded(state, 0, 0)
        tokens, puts = tokens + deposit, puts + 1
    assert (rule.take(state, 0, TRANSIENT) is not None) == (tokens >= capacity)


class Nameless:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise LookupError


def test_values_in_texts() -> None:
    """Values of any size and kind are shown, and not at length."""
    assert shown(5) == "5"
    assert shown("x" * 1000) == "'" + 199 * "x" + "..."
    assert shown(10**5000) == "a value of type int that cannot be shown"
    assert shown(Nameless()) == "a value of type Nameless that cannot be shown"
    with pytest.raises(ValueError, match=r"`timeout` must be positive and finite or None \(no limit\), got a value of"):
        Limits(timeout=10**5000)


@pytest.mark.parametrize("delay", ["1", None, 10**400, 1j])
def test_a_backoff_that_returns_no_seconds(delay: Any) -> None:
    """A backoff of somebody's own is named, with what it returned."""

    class Odd:
        """Returns what is no number of seconds."""

        def delay(self, n: int, u: float, previous: float | None = None) -> Any:
            """Return it."""
            return delay

        def __repr__(self) -> str:
            return "Odd()"

    with pytest.raises(ValueError, match=r"`backoff` must return finite numbers of seconds .*, got .* from Odd\(\)"):
        decide(Limits(), Odd(), TRANSIENT, attempt=1, elapsed=0, u=0, repeatable=True)


def test_whole_seconds_of_a_backoff_are_seconds() -> None:
    """A whole number is one, too."""

    class Whole:
        """Returns whole numbers."""

        def delay(self, n: int, u: float, previous: float | None = None) -> float:
            """Return five."""
            return 5

    step = decide(Limits(), Whole(), TRANSIENT, attempt=1, elapsed=0, u=0, repeatable=True)
    assert isinstance(step, Wait)
    assert (step.delay, type(step.delay)) == (5.0, float)
