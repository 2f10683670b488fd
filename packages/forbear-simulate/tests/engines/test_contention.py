"""Contention: writers, limits and messages; `test_gallery` compares its figures with those of the published study."""

import pytest

from forbear.core.backoff import Constant
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear.run.budget import Budget
from forbear_simulate.engines.contention import Contention, simulate_contention
from forbear_simulate.scenario.fields import ScenarioError


def test_one_writer_and_limits() -> None:
    """A writer alone needs four messages; a limit of attempts ends writers, and a seed decides all."""
    counts = simulate_contention(Contention(1, deviation=0))
    assert counts.time == pytest.approx(0.04)
    assert (counts.calls, counts.gave_up) == (1, 0)
    contention = Contention(10, Policy(OSError, Limits(2), Constant(0)))
    counts = simulate_contention(contention, seed=3)
    assert counts == simulate_contention(contention, seed=3) != simulate_contention(contention, seed=4)
    assert counts.gave_up > 0
    assert counts.calls - counts.conflicts + counts.gave_up == 10


def test_wrong_values_of_a_contention_are_refused() -> None:
    """A value that is out of range is refused, in one line."""
    with pytest.raises(ScenarioError, match=r"`contention.writers` must be a whole number of at least 1, got 0"):
        Contention(0)
    with pytest.raises(ScenarioError, match=r"`contention.policy` must be a policy without a budget"):
        Contention(policy=Policy(OSError, budget=Budget()))
