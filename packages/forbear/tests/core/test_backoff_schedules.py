"""The schedules that the services' own pages and clients come to, row by row."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import Exponential
from forbear.core.decide import Reason
from forbear.core.limits import Limits
from forbear_testkit.core.pure import run

# Retry number, bounds of its wait, bounds of the sum up to it.
CAP_32 = [
    (0, 1, 2, 1, 2),
    (1, 2, 3, 3, 5),
    (2, 4, 5, 7, 10),
    (3, 8, 9, 15, 19),
    (4, 16, 17, 31, 36),
    (5, 32, 32, 63, 68),
    (6, 32, 32, 95, 100),
    (7, 32, 32, 127, 132),
    (8, 32, 32, 159, 164),
    (9, 32, 32, 191, 196),
    (12, 32, 32, 287, 292),
    (13, 32, 32, 319, 324),
    (14, 32, 32, 351, 356),
    (21, 32, 32, 575, 580),
    (22, 32, 32, 607, 612),
]
CAP_64 = [
    (0, 1, 2, 1, 2),
    (1, 2, 3, 3, 5),
    (2, 4, 5, 7, 10),
    (3, 8, 9, 15, 19),
    (4, 16, 17, 31, 36),
    (5, 32, 33, 63, 69),
    (6, 64, 64, 127, 133),
    (7, 64, 64, 191, 197),
    (8, 64, 64, 255, 261),
    (9, 64, 64, 319, 325),
    (12, 64, 64, 511, 517),
    (13, 64, 64, 575, 581),
    (14, 64, 64, 639, 645),
]
GSUTIL_SUMS = [1, 3, 7, 15, 31, 63, *range(123, 1084, 60)]
PYTHON_CLIENT_SUMS = [1, 3, 7, 15, 31, 63, 123]


@pytest.mark.parametrize(("maximum", "row"), [*((32, row) for row in CAP_32), *((64, row) for row in CAP_64)], ids=str)
def test_documented_schedule(maximum: float, row: tuple[int, float, float, float, float]) -> None:
    """`min(2^n + up to a second, maximum)`: each wait and each sum of waits is where the pages put it."""
    n, least, most, sum_least, sum_most = row
    backoff = Exponential(maximum=maximum, jitter="documented")
    assert (backoff.delay(n, 0), backoff.delay(n, 1)) == (least, most)
    sums = [sum(backoff.delay(k, u) for k in range(n + 1)) for u in (0, 1)]
    assert sums == [sum_least, sum_most]


def test_gsutil_as_documented() -> None:
    """23 retries of full jitter under 1, 2, 4 … 32, then 60 seconds: 1083 s at the most, 541.5 s on average."""
    backoff = Exponential(maximum=60)
    most = [backoff.delay(n, 1) for n in range(23)]
    assert most == [1, 2, 4, 8, 16, 32] + 17 * [60]
    assert [sum(most[: n + 1]) for n in range(23)] == GSUTIL_SUMS
    assert [backoff.delay(n, 0) for n in range(23)] == 23 * [0]
    assert sum(backoff.delay(n, 0.5) for n in range(23)) == 541.5
    assert len(run(Limits(attempts=24, timeout=None), backoff, 30 * [0.5])[0]) == 23


def test_python_client_as_shipped() -> None:
    """Full jitter under 1, 2, 4 … 32, then 60 seconds."""
    backoff = Exponential(maximum=60)
    assert [sum(backoff.delay(n, 1) for n in range(k + 1)) for k in range(7)] == PYTHON_CLIENT_SUMS


def test_python_client_within_its_deadline() -> None:
    """Instant failures within 120 seconds: some 8.6 retries on average, 7 to 18 but for the rarest draws."""
    draw = random.Random(0)
    counts = [
        len(run(Limits(None, 120), Exponential(maximum=60), (draw.random() for _ in range(100)))[0])
        for _ in range(2_000)
    ]
    assert sum(counts) / len(counts) == pytest.approx(8.6, abs=0.15)
    assert 6 <= min(counts) <= 7
    assert 11 <= max(counts) <= 25


@given(st.randoms(use_true_random=False))
@pytest.mark.parametrize(("maximum", "timeout", "retries"), [(32, 600, 22), (64, 600, 14), (32, 300, 13), (64, 300, 9)])
def test_instant_failures_within_a_deadline(maximum: float, timeout: float, retries: int, draw: random.Random) -> None:
    """The documented formula makes the same number of retries whatever the jitter draws."""
    backoff = Exponential(maximum=maximum, jitter="documented")
    waits, end = run(Limits(None, timeout), backoff, (draw.random() for _ in range(100)))
    assert len(waits) == retries
    assert end is not None
    assert end.reason is Reason.TIMEOUT
