"""Contention: the figures of the published study of jitter, by its simulator and by ours."""

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.protocols import Backoff
from forbear.run.budget import Budget
from forbear.simulate.contention import Contention, ContentionCourse, simulate_contention
from forbear.simulate.fields import ScenarioError
from forbear.simulate.reading import read_contention

ENDLESS = Limits(None, None, unlimited=True)

# The study has base 5 ms and cap 2 s, and its first wait is one step further: up to 10 ms. Its decorrelated jitter
# begins at the base.
BACKOFFS: dict[str, Backoff] = {
    "none": Constant(0),
    "exponential": Exponential(0.010, 2, 2, "none"),
    "equal": Exponential(0.010, 2, 2, "equal"),
    "full": Exponential(0.010, 2, 2, "full"),
    "decorrelated": Exponential(0.005, 2, 2, "decorrelated"),
}

# Means of 300 runs of the published simulator (100 runs for 100 writers): seconds, writes.
# https://github.com/aws-samples/aws-arch-backoff-simulator
PUBLISHED = [
    (10, "none", 0.378, 50.5),
    (10, "exponential", 3.46, 50.6),
    (10, "equal", 0.727, 42.4),
    (10, "full", 0.467, 38.8),
    (10, "decorrelated", 0.440, 37.9),
    (50, "none", 1.138, 689.1),
    (50, "full", 2.88, 332.9),
]
PUBLISHED_LARGE = [
    (50, "exponential", 36.6, 626.3),
    (50, "equal", 4.23, 347.1),
    (50, "decorrelated", 2.20, 375.6),
    (100, "none", 2.031, 2423.2),
    (100, "exponential", 63.8, 1861.5),
    (100, "equal", 6.68, 812.6),
    (100, "full", 4.90, 796.7),
    (100, "decorrelated", 4.49, 1002.6),
]


def run(writers: int, backoff: Backoff, runs: int) -> list[ContentionCourse]:
    """Some runs without limits."""
    contention = Contention(writers, Policy(OSError, ENDLESS, backoff))
    return [simulate_contention(contention, seed=seed) for seed in range(runs)]


def check(writers: int, jitter: str, time: float, calls: float, runs: int) -> None:
    """Compare the mean of runs: writes within 4 %, and times, which vary more, within 15 %."""
    courses = run(writers, BACKOFFS[jitter], runs)
    assert sum(course.calls for course in courses) / runs == pytest.approx(calls, rel=0.04)
    assert sum(course.time for course in courses) / runs == pytest.approx(time, rel=0.15)
    assert all(course.calls == writers + course.conflicts for course in courses)


@pytest.mark.parametrize(("writers", "jitter", "time", "calls"), PUBLISHED)
def test_the_figures_of_the_study(writers: int, jitter: str, time: float, calls: float) -> None:
    """10 and 50 writers; with full jitter, fewer than half of the writes that no backoff needs."""
    check(writers, jitter, time, calls, 60 if writers == 10 else 12)


@pytest.mark.soak
@pytest.mark.parametrize(("writers", "jitter", "time", "calls"), PUBLISHED_LARGE)
def test_the_figures_of_the_study_for_more_writers(writers: int, jitter: str, time: float, calls: float) -> None:
    """50 and 100 writers."""
    check(writers, jitter, time, calls, 60)


def test_one_writer_and_limits() -> None:
    """A writer alone needs four messages; a limit of attempts ends writers, and a seed decides all."""
    course = simulate_contention(Contention(1, deviation=0))
    assert course.time == pytest.approx(0.04)
    assert (course.calls, course.gave_up) == (1, 0)
    contention = Contention(10, Policy(OSError, Limits(2), Constant(0)))
    course = simulate_contention(contention, seed=3)
    assert course == simulate_contention(contention, seed=3) != simulate_contention(contention, seed=4)
    assert course.gave_up > 0
    assert course.calls - course.conflicts + course.gave_up == 10


def test_a_contention_is_read_and_checked() -> None:
    """A table with units, options over it, and one line for what is wrong."""
    document = {"contention": {"writers": 50, "delay": "20ms", "policy": {"jitter": "equal"}}}
    contention = read_contention(document, ["contention.writers=20", "contention.deviation=0s"])
    assert (contention.writers, contention.delay, contention.deviation) == (20, 0.02, 0)
    assert contention.policy.backoff == Exponential(jitter="equal")
    for wrong, text in (
        ({"contention": {"writers": 0}}, "`contention.writers` must be a whole number of at least 1, got 0"),
        ({"clients": {}}, "`clients` must be one of the keys contention"),
    ):
        with pytest.raises(ScenarioError, match=text):
            read_contention(wrong)
    with pytest.raises(ScenarioError, match=r"`contention.policy` must be a policy without a budget"):
        Contention(policy=Policy(OSError, budget=Budget()))
