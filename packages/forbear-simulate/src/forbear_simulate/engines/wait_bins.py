"""The waits of a policy for the cohort engine: the share of retries that come so many bins after a failure."""

from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from forbear import Limits
from forbear.verdicts import Kind, Verdict, Wait, decide
from forbear_simulate.engines.waits import KNOTS, MOST_ROWS, WaitTable, mean_waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forbear.policies import Backoff

    Counts = NDArray[np.float64]

_FINE = 64  # points between two knots of a wait table


class WaitKernels:
    """The waits after each attempt, in bins of `step` seconds; and those after an error with a Retry-After."""

    def __init__(
        self, limits: Limits, backoff: "Backoff", table: WaitTable, step: float, retry_after: float | None = None
    ) -> None:
        self._table = table
        self._step = step
        self._retry_after = retry_after
        self._kernels = [_kernel(row, step) for row in table.rows]
        self._sums = [np.cumsum(kernel).tolist() for kernel in self._kernels]
        self._limited, self._limited_sums = self._kernels, self._sums
        if retry_after is not None:
            rows = _rows_after(limits, backoff, retry_after, len(table.rows))
            self._limited = [_kernel(row, step) for row in rows]
            self._limited_sums = [np.cumsum(kernel).tolist() for kernel in self._limited]
        self.endless = endless_retries(table)
        """True if later retries use the row of the last one."""
        self.grown = len(table.rows)
        """The row from which on the waits do not grow, if the retries have no end."""
        self.last = self.grown if self.endless or table.attempts is None else table.attempts - 1
        """The row of the last attempt that has one of its own; the first attempt has row 0."""
        self.advance = 1.0
        """The share of the retries from the row `grown` on that go on to the next row."""
        wait = mean_waits(table)[-1]
        if self.endless and table.timeout is not None and 0 < wait < inf:
            # A row has one mean age. So calls that go on until their timeout need rows from young to old.
            more = ceil(table.timeout / wait)
            self.last += min(more, MOST_ROWS)
            self.advance = min(MOST_ROWS / more, 1.0)
        self.ends_at_timeout = table.clamp or retry_after is not None
        """True if waits may be cut to end at the timeout."""
        self.longest = max(map(len, (*self._kernels, *self._limited)))
        """The number of bins of the longest wait."""

    def after(self, row: int, age: float, *, limited: bool = False) -> "tuple[Counts, float, float]":
        """Return the share of retries that come 0, 1, 2 … bins later, its sum, and the share that comes at the timeout.

        `age` is the mean time in seconds since the begin of the calls. The rest gives up. `limited` is for errors with
        the Retry-After.
        """
        kernels, sums = (self._limited, self._limited_sums) if limited else (self._kernels, self._sums)
        row = min(row, len(kernels) - 1)
        kernel, known = kernels[row], sums[row]
        timeout = self._table.timeout
        if timeout is None:
            return kernel, known[-1], 0.0
        left = timeout - age
        if left <= 0 or (limited and self._retry_after is not None and self._retry_after > left):
            return kernel[:0], 0.0, 0.0
        bins = max(int(left / self._step + 0.5), 1)
        if bins >= len(known):
            return kernel, known[-1], 0.0
        past = known[-1] - known[bins - 1]
        if not self._table.clamp:  # only the jitter of a Retry-After is cut at the timeout, not the backoff
            plain = self._sums[row]
            past = past - (plain[-1] - plain[min(bins, len(plain)) - 1]) if limited else 0.0
        return kernel[:bins], known[bins - 1], max(past, 0.0)


def endless_retries(table: WaitTable) -> bool:
    """Return whether the retries of a policy have no end, or more than a table has rows."""
    return table.attempts is None or table.attempts > MOST_ROWS


def _rows_after(limits: Limits, backoff: "Backoff", retry_after: float, count: int) -> list[tuple[float, ...]]:
    """Return the rows of waits after an error with a Retry-After in seconds; infinity where the policy stops."""
    most = limits.max_retry_after if limits.timeout is None else max(limits.max_retry_after, retry_after)
    endless = limits.replace(attempts=None, timeout=None, max_retry_after=most, unlimited=True)
    verdict = Verdict(Kind.TRANSIENT, throttled=True, retry_after=retry_after)
    rows: list[tuple[float, ...]] = []
    for n in range(count):
        steps = [
            decide(endless, backoff, verdict, attempt=n + 1, elapsed=0.0, u=min(k / KNOTS, 1 - 1e-12), repeatable=True)
            for k in range(KNOTS + 1)
        ]
        rows.append(tuple(step.delay if isinstance(step, Wait) else inf for step in steps))
    return rows


def _kernel(row: tuple[float, ...], step: float) -> "Counts":
    """Return the share of the waits of a row that end 0, 1, 2 … bins later.

    A failure lies anywhere in its bin, so a wait of 2.3 bins ends in the second one with 70 %, in the third with 30 %.
    No wait ends in its own bin.
    """
    knots = np.asarray(row)
    if not np.isfinite(knots).all():
        return np.zeros(2)
    places = np.arange(len(row) - 1).repeat(_FINE) + (np.tile(np.arange(_FINE), len(row) - 1) + 0.5) / _FINE
    waits = np.maximum(np.interp(places, np.arange(len(row)), knots) / step, 1.0)
    low = np.floor(waits).astype(np.int64)
    size = ceil(float(waits.max())) + 2
    part = waits - low
    kernel = np.asarray(np.bincount(low, 1 - part, size) + np.bincount(low + 1, part, size), dtype=np.float64)
    return kernel / np.float64(len(waits))
