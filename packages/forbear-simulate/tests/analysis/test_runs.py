"""`simulate`: one call for both engines, any number of runs and of processes, and Ctrl-C."""

import csv
import io
import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate import (
    Clients,
    Scenario,
    ScenarioError,
    Server,
    SimulationInterrupted,
    Window,
    simulate,
)
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.service_queue import Agenda

SMALL = Scenario(20, 0.5, Clients(rate=20), Server(workers=4, time=0.05), (Window("refuse", 5, 5),))


def test_one_run_is_that_of_the_engine() -> None:
    """One exact run has the counts of the engine with the same seed, and times; the cohort engine has no times."""
    series, outcome = simulate_exact(SMALL, seed=3), simulate(SMALL, engine="exact", seed=3)
    assert outcome.bins["retries"] == series.retries
    assert outcome.figures.retries == sum(series.retries) > 0
    assert outcome.figures.p50 == sorted(series.delays)[len(series.delays) // 2]
    assert outcome.offered_load[12] == (series.first_attempts[12] + series.retries[12]) / 0.5
    assert outcome.goodput[0] == series.successes[0] / 0.5
    assert (outcome.runs, outcome.reached, outcome.times[3]) == (1, 20, 1.5)
    mean = simulate(SMALL)
    assert (mean.engine, mean.figures.p50) == ("cohort", None)
    assert mean.figures.first_attempts == pytest.approx(400)


def test_runs_are_the_same_on_any_number_of_processes() -> None:
    """Several runs differ, have standard errors, and add up to the same outcome on one process and on two."""
    seen: list[tuple[int, int]] = []

    def note(done: int, runs: int) -> None:
        seen.append((done, runs))

    one = simulate(SMALL, engine="exact", runs=3, seed=1, workers=1, progress=note)
    two = simulate(SMALL, engine="exact", runs=3, seed=1, workers=2)
    assert one == two
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert one.standard_errors["retries"]
    assert one.figures.retries == pytest.approx(sum(one.bins["retries"]))
    assert one != simulate(SMALL, engine="exact", runs=3, seed=2, workers=1)
    assert one.peak_to_mean(0, 5) != one.peak_to_mean()


def test_ctrl_c_keeps_the_finished_runs() -> None:
    """An interruption between runs raises a KeyboardInterrupt that has the outcome of the runs before."""

    def stop(done: int, runs: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(SimulationInterrupted) as caught:
        simulate(SMALL, engine="exact", runs=5, workers=1, progress=stop)
    known = caught.value.outcome
    assert (known.runs, known.reached) == (2, 20)
    assert replace(known, runs=0) == replace(simulate(SMALL, engine="exact", runs=2, workers=1), runs=0)


def test_ctrl_c_keeps_the_beginning_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption of the only run leaves its first bins; if there is nothing, it is a plain KeyboardInterrupt."""
    stops = 12.2

    def run(self: Agenda, end: float) -> None:
        whole(self, min(end, stops))
        raise KeyboardInterrupt

    uninterrupted, whole = simulate_exact(SMALL), Agenda.run
    monkeypatch.setattr(Agenda, "run", run)
    with pytest.raises(SimulationInterrupted) as caught:
        simulate(SMALL, engine="exact")
    known = caught.value.outcome
    assert known.runs == 0
    assert 11 <= known.reached <= 12
    assert known.bins["calls"] == uninterrupted.calls[: len(known.times)]
    stops = 0.0
    with pytest.raises(KeyboardInterrupt) as plain:
        simulate(SMALL, engine="exact")
    assert not isinstance(plain.value, SimulationInterrupted)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"engine": "fast"}, "`engine` must be cohort or exact, got 'fast'; write exact"),
        ({"runs": 0}, "`runs` must be a whole number of at least 1, got 0; write 1"),
        ({"runs": True}, "`runs` must be a whole number of at least 1, got True"),
        ({"runs": 3}, "`runs` must be 1 for the cohort engine, which has no chance, got 3; choose the engine exact"),
        ({"engine": "exact", "seed": 0.5}, "`seed` must be a whole number, got 0.5; write 0"),
        ({"workers": -2}, "`workers` must be a whole number of at least 1, got -2; write 1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    """An error names the argument, its rule, the value and the cure."""
    with pytest.raises(ScenarioError) as error:
        simulate(SMALL, **arguments)
    assert str(error.value).startswith(text)


def test_the_document_and_the_table() -> None:
    """JSON has all that is known with units, CSV has a row per bin; both have numbers that a program can read."""
    policy = Policy(OSError, Limits(attempts=9, timeout=None), Exponential(), name="mine")
    scenario = replace(SMALL, clients=replace(SMALL.clients, policy=policy))
    outcome = simulate(scenario, engine="exact", seed=5)
    outcome = replace(outcome, figures=replace(outcome.figures, drain=inf))
    document = json.loads(json.dumps(outcome.document(), allow_nan=False))
    assert document["scenario"]["clients"]["policy"]["limits"]["attempts"] == 9
    assert document["scenario"]["clients"]["policy"]["backoff"]["kind"] == "Exponential"
    assert document["scenario"]["windows"] == [{"kind": "refuse", "start": 5, "length": 5, "factor": 1.0}]
    assert document["figures"]["drain"]["value"] == "never"
    assert document["figures"]["retries"]["value"] == outcome.figures.retries
    assert document["figures"]["p99"]["unit"] == "seconds"
    assert len(document["bins"]["calls"]) == scenario.bins
    rows = list(csv.DictReader(io.StringIO(outcome.csv())))
    assert [float(row["time"]) for row in rows] == outcome.times
    assert sum(float(row["retries"]) for row in rows) == outcome.figures.retries
    assert float(rows[3]["offered_load_per_s"]) == outcome.offered_load[3]
    assert simulate(SMALL).csv() == simulate(SMALL).csv() != outcome.csv()


def test_each_engine_says_what_it_does_not_model() -> None:
    """The cohort engine leaves out chance, too."""
    assert set(simulate(SMALL, engine="exact").not_modelled) < set(simulate(SMALL).not_modelled)
