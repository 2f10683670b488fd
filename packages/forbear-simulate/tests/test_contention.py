"""Contention: writers, limits and messages; `test_gallery` compares its figures with those of the published study."""

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.run.budget import Budget
from forbear_simulate.contention import Contention, simulate_contention
from forbear_simulate.fields import ScenarioError
from forbear_simulate.reading import read_contention


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
