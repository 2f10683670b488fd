"""The level of the budgets per time bin: full before an outage, empty in it, and the same in both engines."""

import csv
from typing import Any

import pytest

from forbear_simulate import FleetOutcome, read_mapping, simulate
from forbear_simulate.analysis.runs import Engine

DOCUMENT: dict[str, Any] = {
    "duration": "40s",
    "step": "1s",
    "clients": {"rate": "50/s", "count": 20},
    "service": {"workers": 100, "time": "10ms"},
    "windows": [{"kind": "refuse", "start": "10s", "length": "10s"}],
}


def run(engine: Engine, *options: str) -> FleetOutcome:
    """Simulate the fleet with these changes."""
    return simulate(read_mapping(DOCUMENT, options), engine=engine)


@pytest.mark.parametrize("per", ["client", "fleet"])
@pytest.mark.parametrize("budget", ["brooker", "grpc"])
def test_the_level_of_a_bucket(budget: str, per: str) -> None:
    """It is 1 until the outage begins; the means of both engines are close to each other."""
    options = (f"budget={budget}", f"budget.per={per}")
    mean, exact = run("cohort", *options).budget_level, run("exact", *options).budget_level
    assert mean is not None
    assert exact is not None
    assert len(mean) == len(exact) == 40
    assert mean[:9] == exact[:9] == pytest.approx([1.0] * 9)
    assert min(mean) < 0.2
    assert min(exact) < 0.2
    assert mean[39] > 2 * min(mean)
    assert all(0 <= level <= 1 for level in (*mean, *exact))
    assert mean == pytest.approx(exact, abs=0.15)


def test_tokens_by_hand() -> None:
    """Without a success, each retry takes one of the 100 tokens of the fleet, and the level says how many are left."""
    options = (
        "clients.arrivals=regular", "clients.rate=2/s", "service.failure=1", "windows=[]", "duration=10s",
        "budget=brooker", "budget.capacity=100", "budget.deposit=0", "budget.per=fleet",
        "clients.policy.attempts=2", "clients.policy.maximum=1ms", "clients.policy.initial=1ms",
    )  # fmt: skip
    outcome = run("exact", *options)
    assert outcome.budget_level is not None
    taken = 0.0
    for level, retries in zip(outcome.budget_level, outcome.bins["retries"], strict=True):
        taken += retries
        assert level == pytest.approx(1 - taken / 100, abs=0.0101)  # a retry may wait over the end of the bin
    assert taken >= 18


@pytest.mark.parametrize("engine", ["cohort", "exact"])
def test_only_buckets_have_a_level(engine: Engine) -> None:
    """Without tokens there is no level and no column; with them the CSV has one."""
    for options in ((), ("budget=google_sre",)):
        outcome = run(engine, *options)
        assert outcome.budget_level is None
        assert "budget_level" not in outcome.csv().splitlines()[0]
        assert "budget_level" not in outcome.document()["bins"]
    outcome = run(engine, "budget=brooker")
    rows = list(csv.DictReader(outcome.csv().splitlines()))
    assert [float(row["budget_level"]) for row in rows] == pytest.approx(outcome.budget_level, abs=1e-5)


def test_the_mean_of_several_runs() -> None:
    """Several runs have the mean of their levels."""
    scenario = read_mapping(DOCUMENT, ["budget=brooker", "duration=20s"])
    both = simulate(scenario, engine="exact", runs=2, workers=1).budget_level
    assert both is not None
    assert both[0] == 1
    assert 0 <= min(both) < 0.3
