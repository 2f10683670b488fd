"""Wait tables: as near to `decide` as they say."""

import random
from collections.abc import Callable
from functools import cache
from math import inf
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import JITTERS, Constant, Exponential, Sequence
from forbear.core.decide import Wait, decide
from forbear.core.limits import Limits
from forbear.core.protocols import Backoff
from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear_simulate.engines.waits import KNOTS, WaitTable, mean_waits, wait_table

BACKOFFS: list[Backoff] = [
    *(Exponential(0.7, 1.9, 20, jitter) for jitter in JITTERS if jitter != "decorrelated"),
    Constant(3, spread=2),
    Sequence([1, 1, 8, 2], spread=0.5),
]
LIMITS = [Limits(), Limits(attempts=None, timeout=40), Limits(attempts=200, timeout=90, clamp=True), Limits(1, None)]
CASES = [(limits, backoff) for limits in LIMITS for backoff in BACKOFFS]

# Each table is made once, by the test that needs it: at import, every worker would make all of them.
tabled = cast("Callable[[Limits, Backoff], WaitTable]", cache(wait_table))


def wait_at(table: WaitTable, attempt: int, u: float) -> float:
    """Return the wait after an attempt: a straight line between two values of its row."""
    row, k = table.rows[min(attempt, len(table.rows)) - 1], int(u * KNOTS)
    return row[k] + (row[k + 1] - row[k]) * (u * KNOTS - k)


@given(st.sampled_from(CASES), st.integers(1, 250), st.floats(0, 1, exclude_max=True))
def test_a_table_is_decide_within_its_error(case: tuple[Limits, Backoff], attempt: int, u: float) -> None:
    """For any attempt before the last one and any `u`, a wait is within a 1024th of its jitter."""
    limits, backoff = case
    table = tabled(limits, backoff)
    assert not table.reads_last
    attempt = max(min(attempt, (limits.attempts or 251) - 1), 1)
    endless = limits.replace(attempts=None, timeout=None, unlimited=True)
    step = decide(endless, backoff, TRANSIENT, attempt=attempt, elapsed=0, u=u, repeatable=True)
    assert isinstance(step, Wait)
    wait = wait_at(table, attempt, u)
    assert wait == pytest.approx(step.delay, abs=2 / (4 * KNOTS) + 1e-9)  # the largest jitter with a corner is 2 s
    if not isinstance(backoff, Exponential) or backoff.jitter != "documented":
        assert wait == pytest.approx(step.delay, rel=1e-9, abs=1e-12)


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
            assert wait_at(table, n + 1, share) == pytest.approx(waits[int(share * 20_000)], rel=0.04)
        assert mean_waits(table)[n] == pytest.approx(sum(waits) / 20_000, rel=0.02)


def test_rows_end_where_waits_stop_growing() -> None:
    """1, 2, 4 … 64 s are seven rows; a verdict with its own delay has one; later retries use the last."""
    endless = Limits(attempts=None, timeout=1e6)
    assert len(wait_table(endless, Exponential()).rows) == 7
    table = wait_table(endless, Exponential(), Verdict(Kind.TRANSIENT, delay=3))
    assert table.rows == ((3.0,) * (KNOTS + 1),)
    assert wait_table(endless, Exponential(), Verdict(Kind.PERMANENT)).rows == ((inf,) * (KNOTS + 1),)
    with pytest.raises(ValueError, match="must have no retry_after"):
        wait_table(endless, Exponential(), Verdict(Kind.TRANSIENT, retry_after=3))
