"""Backoff: the delays are exact, for any retry number, and stay within their bounds."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential, Sequence

if TYPE_CHECKING:
    from forbear.core.backoff import Jitter
    from forbear.core.protocols import Backoff

ratios = st.floats(min_value=0, max_value=1, exclude_max=True)
numbers = st.integers(min_value=0, max_value=10**9)


@st.composite
def exponentials(draw: st.DrawFn, largest: float = 1e300) -> Exponential:
    """Any exponential backoff that its constructor accepts."""
    initial = draw(st.floats(min_value=1e-9, max_value=largest))
    maximum = draw(st.floats(min_value=initial, max_value=1.7976931348623157e308))
    multiplier = draw(st.floats(min_value=1, max_value=1e300))
    spread = draw(st.floats(min_value=0, max_value=1e300))
    return Exponential(initial, multiplier, maximum, draw(st.sampled_from(JITTERS)), spread)


@pytest.mark.parametrize(
    ("jitter", "n", "u", "delay"),
    [
        ("none", 0, 0.9, 1),
        ("none", 3, 0.9, 8),
        ("none", 6, 0.9, 64),
        ("none", 7, 0.9, 64),
        ("full", 0, 0.5, 0.5),
        ("full", 3, 0.25, 2),
        ("full", 6, 0.5, 32),
        ("full", 7, 0.5, 32),
        ("equal", 0, 0, 0.5),
        ("equal", 0, 0.5, 0.75),
        ("equal", 3, 0.25, 5),
        ("equal", 7, 0.5, 48),
        ("documented", 0, 0, 1),
        ("documented", 0, 0.5, 1.5),
        ("documented", 3, 0.25, 8.25),
        ("documented", 5, 0.75, 32.75),
        ("documented", 6, 0.75, 64),
    ],
)
def test_each_jitter_spreads_the_step_in_its_way(jitter: "Jitter", n: int, u: float, delay: float) -> None:
    """The defaults double from 1 to 64 seconds; the jitter says which part of that is waited."""
    assert Exponential(jitter=jitter).delay(n, u) == delay


def test_the_default_jitter_is_full() -> None:
    """`Exponential()` waits from nothing up to 1, 2, 4 … 64 seconds."""
    assert Exponential() == Exponential(1, 2, 64, "full", 1)


@pytest.mark.parametrize(
    ("previous", "u", "delay"),
    [(None, 0, 1), (None, 0.5, 2), (10, 0, 1), (10, 0.5, 15.5), (64, 0.5, 64), (0.1, 0.5, 1), (0.5, 0.5, 1.25)],
)
def test_decorrelated_looks_at_the_delay_before(previous: float | None, u: float, delay: float) -> None:
    """Between `initial` and three times the delay before, at most `maximum`, whatever the number of the retry."""
    backoff = Exponential(jitter="decorrelated")
    assert backoff.delay(0, u, previous) == backoff.delay(50, u, previous) == delay


def test_other_initial_multiplier_maximum_and_spread() -> None:
    """All the numbers of the formula can be chosen."""
    backoff = Exponential(initial=0.5, multiplier=3, maximum=5, jitter="documented", spread=0.25)
    assert [backoff.delay(n, 0.5) for n in range(4)] == [0.625, 1.625, 4.625, 5]


def test_the_maximum_may_be_the_initial() -> None:
    """A backoff that does not grow is allowed."""
    assert Exponential(3, maximum=3, jitter="none").delay(5, 0) == 3


@pytest.mark.parametrize("n", [1023, 1024, 10_000, 10**9])
@pytest.mark.parametrize(
    ("jitter", "delay"), [("none", 64), ("documented", 64), ("full", 16), ("equal", 40), ("decorrelated", 1.5)]
)
def test_late_retries_do_not_overflow(n: int, jitter: "Jitter", delay: float) -> None:
    """Retry number a billion waits as the truncated ones before it do."""
    assert Exponential(jitter=jitter).delay(n, 0.25) == delay


def test_a_step_that_never_grows_stays_exact() -> None:
    """With a multiplier of 1 the billionth wait is the first one."""
    assert Exponential(3, multiplier=1, jitter="none").delay(10**9, 0) == 3


@given(exponentials(), numbers, ratios, st.none() | st.floats(min_value=0, max_value=1.7976931348623157e308))
def test_delays_are_between_zero_and_the_maximum(
    backoff: Exponential, n: int, u: float, previous: float | None
) -> None:
    """Never negative, never NaN, never above the maximum; so for every backoff that can be made."""
    assert 0 <= backoff.delay(n, u, previous) <= backoff.maximum


@given(exponentials(), numbers, ratios)
def test_bounds_never_shrink(backoff: Exponential, n: int, u: float) -> None:
    """For the same draw, a later retry waits at least as long as an earlier one."""
    assert backoff.delay(n, u) <= backoff.delay(n + 1, u)


@given(exponentials(largest=1e3), st.integers(min_value=0, max_value=60), ratios)
def test_delays_follow_the_formulas(backoff: Exponential, n: int, u: float) -> None:
    """The documented formulas, written down once more, give the same numbers."""
    step = backoff.initial * math.pow(backoff.multiplier, n) if backoff.multiplier < 1e4 else math.inf
    if step == math.inf:
        return
    truncated = min(step, backoff.maximum)
    expected = {
        "none": truncated,
        "full": u * truncated,
        "equal": truncated * (1 + u) / 2,
        "documented": min(step + u * backoff.spread, backoff.maximum),
        "decorrelated": min(backoff.initial + u * 2 * backoff.initial, backoff.maximum),
    }[backoff.jitter]
    assert backoff.delay(n, u) == pytest.approx(expected, rel=1e-12)


@given(st.lists(ratios, min_size=1, max_size=50))
def test_decorrelated_walks_within_its_bounds(draws: list[float]) -> None:
    """Fed with its own delays it stays between `initial` and `maximum`."""
    backoff = Exponential(0.5, maximum=20, jitter="decorrelated")
    previous = None
    for n, u in enumerate(draws):
        longest = min(20, 3 * (0.5 if previous is None else previous))
        previous = backoff.delay(n, u, previous)
        assert 0.5 <= previous <= longest


def test_constant_waits_the_same_every_time() -> None:
    """`Constant` knows no numbers; jitter comes on top."""
    assert [Constant(2).delay(n, 0.5) for n in (0, 1, 10**9)] == [2, 2, 2]
    assert Constant(2, spread=1).delay(7, 0.25) == 2.25
    assert Constant(0).delay(0, 0.9) == 0


def test_sequence_repeats_its_last_wait() -> None:
    """`Sequence` plays its waits in turn, then the last one for ever; jitter comes on top."""
    backoff = Sequence([1, 3, 2])
    assert [backoff.delay(n, 0.5) for n in (0, 1, 2, 3, 10**9)] == [1, 3, 2, 2, 2]
    assert Sequence(iter([1, 3]), spread=2).delay(1, 0.25) == 3.5
    assert Sequence([0]).delay(0, 0.5) == 0


@pytest.mark.unmutated
@pytest.mark.parametrize(
    ("backoff", "text"),
    [
        (Exponential(maximum=9, jitter="none"), "Exponential(maximum=9.0, jitter='none')"),
        (Constant(2), "Constant(seconds=2.0)"),
        (Sequence([1, 3]), "Sequence(delays=(1.0, 3.0))"),
    ],
)
def test_backoffs_keep_floats(backoff: "Backoff", text: str) -> None:
    """Whatever numbers they are given, so that equal backoffs print the same."""
    assert repr(backoff) == text


NAN, INFINITY = float("nan"), float("inf")
NOT_SECONDS = "must be a number of seconds, got"
POSITIVE = "must be positive and finite, got"
ZERO_OR_MORE = "must be zero or more and finite, got"
ONE_OR_MORE = "must be 1 or more and finite, got"
A_JITTER = "must be one of full, equal, documented, decorrelated, none, got"


@pytest.mark.parametrize(
    ("make", "arguments", "error", "text"),
    [
        (Exponential, {"initial": 0}, ValueError, f"`initial` {POSITIVE} 0"),
        (Exponential, {"initial": -1}, ValueError, f"`initial` {POSITIVE} -1"),
        (Exponential, {"initial": INFINITY}, ValueError, f"`initial` {POSITIVE} inf"),
        (Exponential, {"initial": NAN}, TypeError, f"`initial` {NOT_SECONDS} nan"),
        (Exponential, {"initial": True}, TypeError, f"`initial` {NOT_SECONDS} True"),
        (Exponential, {"initial": "1"}, TypeError, f"`initial` {NOT_SECONDS} '1'"),
        (Exponential, {"initial": None}, TypeError, f"`initial` {NOT_SECONDS} None"),
        (Exponential, {"multiplier": 0.99}, ValueError, f"`multiplier` {ONE_OR_MORE} 0.99"),
        (Exponential, {"multiplier": -2}, ValueError, f"`multiplier` {ONE_OR_MORE} -2"),
        (Exponential, {"multiplier": INFINITY}, ValueError, f"`multiplier` {ONE_OR_MORE} inf"),
        (Exponential, {"multiplier": NAN}, TypeError, "`multiplier` must be a number, got nan"),
        (Exponential, {"multiplier": True}, TypeError, "`multiplier` must be a number, got True"),
        (Exponential, {"multiplier": "2"}, TypeError, "`multiplier` must be a number, got '2'"),
        (Exponential, {"maximum": 0}, ValueError, f"`maximum` {POSITIVE} 0"),
        (Exponential, {"maximum": INFINITY}, ValueError, f"`maximum` {POSITIVE} inf"),
        (Exponential, {"maximum": NAN}, TypeError, f"`maximum` {NOT_SECONDS} nan"),
        (
            Exponential,
            {"initial": 2, "maximum": 1},
            ValueError,
            "`maximum` must be at least `initial`, which is 2, got 1",
        ),
        (Exponential, {"spread": -0.1}, ValueError, f"`spread` {ZERO_OR_MORE} -0.1"),
        (Exponential, {"spread": INFINITY}, ValueError, f"`spread` {ZERO_OR_MORE} inf"),
        (Exponential, {"spread": False}, TypeError, f"`spread` {NOT_SECONDS} False"),
        (Exponential, {"jitter": "some"}, ValueError, f"`jitter` {A_JITTER} 'some'"),
        (Exponential, {"jitter": None}, ValueError, f"`jitter` {A_JITTER} None"),
        (Constant, {"seconds": -1}, ValueError, f"`seconds` {ZERO_OR_MORE} -1"),
        (Constant, {"seconds": INFINITY}, ValueError, f"`seconds` {ZERO_OR_MORE} inf"),
        (Constant, {"seconds": NAN}, TypeError, f"`seconds` {NOT_SECONDS} nan"),
        (Constant, {"seconds": True}, TypeError, f"`seconds` {NOT_SECONDS} True"),
        (Constant, {"seconds": 1, "spread": -1}, ValueError, f"`spread` {ZERO_OR_MORE} -1"),
        (Constant, {"seconds": 1, "spread": "1"}, TypeError, f"`spread` {NOT_SECONDS} '1'"),
        (Sequence, {"delays": []}, ValueError, "`delays` must name at least one wait in seconds, got none"),
        (Sequence, {"delays": [1, -1]}, ValueError, f"`delays` {ZERO_OR_MORE} -1"),
        (Sequence, {"delays": [1, NAN]}, TypeError, f"`delays` {NOT_SECONDS} nan"),
        (Sequence, {"delays": "12"}, TypeError, f"`delays` {NOT_SECONDS} '1'"),
        (Sequence, {"delays": [1], "spread": INFINITY}, ValueError, f"`spread` {ZERO_OR_MORE} inf"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    make: "Callable[..., Backoff]", arguments: dict[str, object], error: type[Exception], text: str
) -> None:
    """Every text names the parameter, the rule and the value."""
    with pytest.raises(error) as caught:
        make(**arguments)
    assert str(caught.value) == text


@pytest.mark.parametrize("delays", [5, None, list])
def test_a_sequence_lists_its_delays(delays: Any) -> None:
    """A number alone is no list: the error says what to write."""
    with pytest.raises(TypeError, match=r"`delays` must list waits in seconds, such as \[1, 5, 30\]"):
        Sequence(delays)
