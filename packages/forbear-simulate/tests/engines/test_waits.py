"""Wait tables: as near to `decide` as they say."""

import random
from collections.abc import Callable
from functools import cache
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential, Sequence
from forbear.core.decide import Limits, Wait, decide
from forbear.core.protocols import Backoff
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear_simulate.engines.waits import KNOTS, WaitTable, exact_table, mean_waits, wait_table

BACKOFFS: list[Backoff] = [
    *(Exponential(0.7, 1.9, 20, jitter) for jitter in JITTERS if jitter != "decorrelated"),
    Constant(3, spread=2),
    Sequence([1, 1, 8, 2], spread=0.5),
]
LIMITS = [Limits(), Limits(attempts=None, timeout=40), Limits(attempts=200, timeout=90, clamp=True), Limits(1, None)]
CASES = [(limits, backoff) for limits in LIMITS for backoff in BACKOFFS]

# Each table is made once, by the test that needs it: at import, every worker would make all of them.
tabled = cast("Callable[[Limits, Backoff], WaitTable]", cache(wait_table))
tabled_exactly = cast("Callable[[Limits, Backoff], WaitTable | None]", cache(exact_table))


def is_exact(case: tuple[Limits, Backoff]) -> bool:
    """Return whether the table of a case is exact."""
    return tabled_exactly(*case) is not None


@given(
    st.sampled_from(CASES),
    st.integers(1, 250),
    st.floats(0, 100),
    st.floats(0, 1, exclude_max=True),
)
def test_a_table_is_decide_within_its_error(
    case: tuple[Limits, Backoff], attempt: int, elapsed: float, u: float
) -> None:
    """For any attempt, time and `u`: the same stop, and a wait within a 1024th of its jitter."""
    limits, backoff = case
    table = tabled(limits, backoff)
    assert not table.reads_last
    step = decide(limits, backoff, TRANSIENT, attempt=attempt, elapsed=elapsed, u=u, repeatable=True)
    wait = table.wait(attempt, elapsed, u)
    expected = step.delay if isinstance(step, Wait) else None
    error = 2 / (4 * KNOTS) + 1e-9  # the largest jitter of a wait with a corner is 2 s
    if expected is None or wait is None:
        # Only a wait that ends within the error of the deadline may be decided otherwise.
        near = wait if expected is None else expected
        assert near is None or (limits.timeout is not None and elapsed + near > limits.timeout - error)
    else:
        assert wait == pytest.approx(expected, abs=error)
        if not isinstance(backoff, Exponential) or backoff.jitter != "documented":
            assert wait == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_decorrelated_waits_have_their_distribution() -> None:
    """Without the last delay, each row is the distribution of that wait: quantiles of 20 000 runs within 4 %."""
    limits, backoff = Limits(attempts=6, timeout=None), Exponential(1, 2, 30, "decorrelated")
    table, draw = wait_table(limits, backoff), random.Random(7).random
    runs: list[list[float]] = [[] for _ in range(5)]
    for _ in range(20_000):
        previous = None
        for n, waits in enumerate(runs):
            step = decide(
                limits, backoff, TRANSIENT, attempt=n + 1, elapsed=0, u=draw(), repeatable=True, previous=previous
            )
            assert isinstance(step, Wait)
            previous = step.delay
            waits.append(previous)
    assert table.reads_last
    for n, waits in enumerate(runs):
        waits.sort()
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            assert table.wait(n + 1, 0, share) == pytest.approx(waits[int(share * 20_000)], rel=0.04)
        assert mean_waits(table)[n] == pytest.approx(sum(waits) / 20_000, rel=0.02)


def test_rows_end_where_waits_stop_growing() -> None:
    """1, 2, 4 … 64 s are seven rows; a verdict with its own delay has one; later retries use the last."""
    endless = Limits(attempts=None, timeout=1e6)
    assert len(wait_table(endless, Exponential()).rows) == 7
    table = wait_table(endless, Exponential(), Verdict(Kind.TRANSIENT, delay=3))
    assert table.rows == ((3.0,) * (KNOTS + 1),)
    assert table.wait(999, 0, 0.9) == 3
    assert wait_table(endless, Exponential(), Verdict(Kind.PERMANENT)).wait(1, 0, 0.5) is None
    with pytest.raises(ValueError, match="must have no retry_after"):
        wait_table(endless, Exponential(), Verdict(Kind.TRANSIENT, retry_after=3))


@given(
    st.sampled_from(CASES).filter(is_exact),
    st.integers(1, 250),
    st.floats(0, 1, exclude_max=True),
)
def test_an_exact_table_is_decide_but_for_rounding(case: tuple[Limits, Backoff], attempt: int, u: float) -> None:
    """The engines that must be exact use only tables without error: from the two ends of a row follow all waits."""
    limits, backoff = case
    table = tabled_exactly(limits, backoff)
    assert table is not None
    step = decide(limits, backoff, TRANSIENT, attempt=attempt, elapsed=0.0, u=u, repeatable=True)
    row = table.rows[min(attempt, len(table.rows)) - 1]
    line = row[0] + (row[-1] - row[0]) * u
    if isinstance(step, Wait):
        assert step.delay == pytest.approx(line, rel=1e-9, abs=1e-12)
    else:
        assert table.wait(attempt, 0.0, u) is None
