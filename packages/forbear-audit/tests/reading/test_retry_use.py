"""Numbers of retries that are computed."""

import math

import pytest

from forbear_audit.reading.retry_use import grows_to


@pytest.mark.parametrize(
    ("first", "multiplier", "attempts", "longest"),
    [(1, 2, 5, 8), (1, 2, None, None), (1, -2, 3.5, None), (1, 10, 65, math.inf), (10, 1e300, 60, math.inf)],
)
def test_the_longest_wait(first: float, multiplier: float, attempts: float | None, longest: float | None) -> None:
    """A backoff grows to a number of seconds; one that changes its sign has none."""
    assert grows_to(first, multiplier, attempts) == longest
