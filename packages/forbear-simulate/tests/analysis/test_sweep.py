"""Sweeps: success and load against the failure rate are those of theory, and wrong texts name their cure."""

import pytest

from forbear_simulate.analysis.sweep import read_values, sweep
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.reading import read_mapping

CALM = {
    "duration": "100s",
    "step": "1s",
    "clients": {"rate": "50/s", "policy": {"name": "default", "attempts": 3, "maximum": "1s"}},
    "service": {"workers": 1000, "time": "10ms"},
}


def test_success_and_load_of_independent_failures() -> None:
    """With three attempts that fail with chance p, 1 - p³ of the calls succeed, with 1 + p + p² attempts each."""
    rates = (0.0, 0.25, 0.5, 1.0)
    swept = sweep(read_mapping(CALM), "service.failure", rates)
    assert (swept.key, swept.values) == ("service.failure", rates)
    assert swept.success == pytest.approx([1 - p**3 for p in rates], abs=0.01)
    assert swept.amplification == pytest.approx([1 + p + p * p for p in rates], rel=0.03)
    assert swept.load == pytest.approx([50 * (1 + p + p * p) for p in rates], rel=0.03)


def test_more_clients_have_more_tokens() -> None:
    """With a bucket for each client, many clients retry all failures of the run, and few cannot: their load is less."""
    scenario = read_mapping(CALM, ["budget=brooker"])
    assert sweep(scenario, "clients.count", (1, 1.2, 5000)).values == (1, 5000)
    changed = sweep(read_mapping(CALM, ["budget=brooker", "service.failure=0.5"]), "clients.count", (1, 5000))
    assert changed.load[0] < 60 < changed.load[1]
    assert changed.success[0] < changed.success[1]


def test_runs_and_progress() -> None:
    """In the exact engine every value has all runs, and progress counts them all."""
    steps: list[tuple[int, int]] = []
    scenario = read_mapping(CALM, ["duration=5s"])
    sweep(scenario, "attempts", (1, 2), engine="exact", runs=2, workers=1, progress=lambda a, b: steps.append((a, b)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_range_has_eleven_values() -> None:
    """A range has eleven values, a list has its own; limits of the policy need no table."""
    key, values = read_values("service.failure=0..1")
    assert key == "service.failure"
    assert values == pytest.approx([i / 10 for i in range(11)])
    assert read_values("attempts = 1,2, 5") == ("clients.policy.attempts", (1, 2, 5))


@pytest.mark.parametrize("text", ["", "x", "=1", "x=", "x=1..", "x=a..b", "x=1s..5s", "x=nan,1", "x=0..inf", "x=1..1"])
def test_wrong_values(text: str) -> None:
    """A text of another form is an error that shows the form."""
    with pytest.raises(ScenarioError, match=r"`sweep` must be .*; write service\.failure=0\.\.1"):
        read_values(text)


def test_a_wrong_key_or_value() -> None:
    """A key that has no numbers, and a value that a key cannot have, are errors with that key."""
    with pytest.raises(ScenarioError, match="`key` must be a number of the scenario"):
        sweep(read_mapping(CALM), "servce.failure", (0.1,))
    with pytest.raises(ScenarioError, match=r"failure.* got 2"):
        sweep(read_mapping(CALM), "service.failure", (0.1, 2))
