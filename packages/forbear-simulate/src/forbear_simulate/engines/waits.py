"""Wait tables: the waits and stops of a policy, read from `decide` once, for engines that cannot call it each time."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf, nextafter
from typing import TYPE_CHECKING

from forbear import Limits
from forbear.verdicts import TRANSIENT, Verdict, Wait, decide

if TYPE_CHECKING:
    from forbear.policies import Backoff

KNOTS = 256
"""The number of intervals of `u` in a table; between their ends, a wait is a straight line in `u`.

The backoffs of forbear are lines in `u` with one corner at most, so the error is below a 1024th of their jitter.
"""

MOST_ROWS = 64
"""The most retries with a row of their own; later ones use the last row."""

_SAMPLES = 64  # of the last delay and of `u`, for a backoff that reads the last delay
_LAST = nextafter(1.0, 0.0)  # the largest `u`


@dataclass(frozen=True, slots=True)
class WaitTable:
    """The waits of one policy after failures of one verdict, in seconds.

    Row n is for the wait after attempt n + 1: its value at index k is the wait for `u = k / KNOTS`, infinity for a
    stop. If the backoff reads the last delay, a row has the distribution of the wait over all last delays.
    """

    rows: tuple[tuple[float, ...], ...]
    attempts: int | None
    timeout: float | None
    clamp: bool
    reads_last: bool
    """True if the backoff reads the last delay: the waits of one call then depend on each other."""


def wait_table(limits: Limits, backoff: "Backoff", verdict: Verdict = TRANSIENT) -> WaitTable:
    """Return the table of a policy's limits and backoff for failures of `verdict`, which has no `retry_after`.

    The operation counts as repeatable. Raises ValueError for a verdict with a `retry_after`, whose wait depends on the
    time that is left.
    """
    if verdict.retry_after is not None:
        raise ValueError(f"`verdict` must have no retry_after, got {verdict!r}; call decide for such a failure")
    endless = limits.replace(attempts=None, timeout=None, unlimited=True)

    def probe(n: int, u: float, previous: float | None) -> float:
        step = decide(endless, backoff, verdict, attempt=n + 1, elapsed=0.0, u=u, repeatable=True, previous=previous)
        return step.delay if isinstance(step, Wait) else inf

    most = MOST_ROWS if limits.attempts is None else max(min(limits.attempts - 1, MOST_ROWS), 1)
    points = [k / KNOTS for k in range(KNOTS)] + [_LAST]
    rows = [tuple(probe(0, u, None) for u in points)]
    reads_last = False
    for n in range(1, most):
        last = rows[-1]
        if probe(n, 0.5, last[0]) == probe(n, 0.5, last[-1]) or last[0] == last[-1]:
            rows.append(tuple(probe(n, u, last[0]) for u in points))
            continue
        reads_last = True
        waits = sorted(
            probe(n, u, previous)
            for previous in _spread_evenly(last, _SAMPLES)
            for u in _spread_evenly((0.0, _LAST), _SAMPLES)
        )
        waits[0], waits[-1] = probe(n, 0.0, last[0]), probe(n, _LAST, last[-1])
        rows.append(tuple(_value_at(waits, u) for u in points))
    while len(rows) > 1 and rows[-1] == rows[-2]:
        rows.pop()
    return WaitTable(tuple(rows), limits.attempts, limits.timeout, limits.clamp, reads_last)


def mean_waits(table: WaitTable) -> tuple[float, ...]:
    """Return the mean of each row, in seconds."""
    return tuple(sum((low + high) / 2 for low, high in pairwise(row)) / KNOTS for row in table.rows)


def _spread_evenly(values: tuple[float, ...], count: int) -> list[float]:
    """Return `count` values spread evenly over a list of quantiles, each in the middle of its share."""
    return [_value_at(values, (i + 0.5) / count) for i in range(count)]


def _value_at(values: "tuple[float, ...] | list[float]", share: float) -> float:
    """Return the value at a share, from 0 to 1, of a sorted list, on a line between its neighbours."""
    place = share * (len(values) - 1)
    k = min(int(place), len(values) - 2)
    return values[k] + (values[k + 1] - values[k]) * (place - k)
