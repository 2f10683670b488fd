"""The fleet part of the demo: what a budget does for a fleet after an outage."""

import pytest

from examples.demo.fleet import FLEETS, compare, share_after
from examples.demo.show import show_fleets
from forbear_testkit.cli.demo import fleets


@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(10, 20))])
def test_a_budget_ends_the_outage(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a budget the retries keep the service overloaded; with one, it is well as soon as it is up."""
    outcomes = dict(compare(seed))
    without, with_budget = (share_after(outcome) for outcome in outcomes.values())
    assert without < 0.2
    assert with_budget > 0.95
    assert len({outcome.figures.calls for outcome in outcomes.values()}) == 1
    show_fleets(outcomes)
    shown = capsys.readouterr().out
    assert all(f"A fleet in an outage, {name}" in shown for name in FLEETS)
    assert f"After the outage {100 * without:.0f} % of the calls succeed without a budget" in shown


def test_both_engines_agree() -> None:
    """The mean of a large fleet shows the same, so the picture is no accident of one seed."""
    shares = [share_after(outcome) for _, outcome in fleets()]
    assert shares[0] < 0.2
    assert shares[1] > 0.95
