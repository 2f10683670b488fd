"""`simulate`: run a scenario once or many times, on one core or several, and return the outcome."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Literal, NamedTuple, get_args

from forbear.cli.kit.processes import can_be_safe, end, submit_to, worker_pool
from forbear_simulate.analysis.figures import Figures, figures_of, mean_figures
from forbear_simulate.analysis.outcome import FleetOutcome
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.fields import refuse
from forbear_simulate.scenario.scenario import Scenario

Engine = Literal["cohort", "exact"]

_APART = 1_000_003  # between the seeds of two runs, so that the runs of seeds 0 and 1 differ


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation. `outcome` is what is known until then. Example: see `simulate`."""

    def __init__(self, outcome: FleetOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class RunResult(NamedTuple):
    """The part of a run that is kept: its figures, and its counts per bin."""

    figures: Figures
    bins: dict[str, list[float]]


def simulate(
    scenario: Scenario,
    *,
    engine: Engine = "cohort",
    runs: int = 1,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FleetOutcome:
    """Simulate a scenario and return its outcome.

    The engine "cohort" computes the mean of a large fleet, and its time does not depend on the number of clients.
    "exact" lets each call happen, with chance: `runs` times, on `workers` processes (None for one per core). The same
    seed gives the same outcome on any number of processes. `progress(done, runs)` is called after each run.

    Raises ScenarioError for wrong arguments, and for a scenario that the engine cannot run. Ctrl-C raises
    SimulationInterrupted, a KeyboardInterrupt whose `outcome` has what is known: the finished runs, or the beginning of
    the only one. A program that starts its processes by "spawn" must call this below `if __name__ == "__main__":`.

    >>> outcome = simulate(Scenario(duration=10, clients=Clients(rate=80), service=Server(workers=5)))
    >>> round(outcome.figures.goodput), outcome.figures.gave_up
    (80, 0.0)
    """
    _check(engine, runs, seed, workers)
    series = TimeSeries(scenario.step, scenario.bins)  # of the only run
    results: list[Figures] = []
    sums: dict[str, list[float]] = {}
    try:
        for result in _results(scenario, engine, runs, seed, workers, series):
            results.append(result.figures)
            _add(sums, result.bins)
            if progress is not None:
                progress(len(results), runs)
    except KeyboardInterrupt:
        if results:
            raise SimulationInterrupted(_outcome(scenario, engine, seed, results, sums)) from None
        if runs > 1 or not any(series.calls):
            raise
        part = _beginning(series)
        known = _outcome(scenario, engine, seed, [figures_of(scenario, part)], _bins(part), runs=0)
        raise SimulationInterrupted(known) from None
    return _outcome(scenario, engine, seed, results, sums)


def _check(engine: object, runs: object, seed: object, workers: object) -> None:
    if engine not in get_args(Engine):
        refuse("engine", "cohort or exact", engine, "write exact for single calls and their times")
    for name, value, least in (("runs", runs, 1), ("seed", seed, None), ("workers", workers or 1, 1)):
        if type(value) is not int or (least is not None and value < least):
            rule = "a whole number" if least is None else f"a whole number of at least {least}"
            refuse(name, rule, value, f"write {least or 0}")
    if engine == "cohort" and runs != 1:
        refuse("runs", "1 for the cohort engine, which has no chance", runs, "choose the engine exact for several runs")


def _results(
    scenario: Scenario, engine: str, runs: int, seed: int, workers: int | None, series: TimeSeries
) -> Iterator[RunResult]:
    """Yield the results of all runs in their order. A single run fills `series` in this process."""
    if runs == 1:
        yield _run(scenario, engine, seed, series)
        return
    seeds = [seed + _APART * i for i in range(runs)]
    processes = min(workers or os.cpu_count() or 1, runs)
    run = partial(_run, scenario, engine)
    if processes == 1 or not can_be_safe():
        yield from map(run, seeds)
        return
    # A fork is quick, but safe only without other threads; a spawned process imports the caller's main module.
    quick = sys.platform == "linux" and threading.active_count() == 1
    done = 0
    pool = worker_pool(processes, "fork" if quick else "spawn")
    try:
        pending = deque[Future[RunResult]]()
        with suppress(BrokenProcessPool):  # a process was killed, perhaps for want of memory: one alone needs less
            pending.extend(submit_to(pool, run, seed) for seed in seeds)
            while pending:
                yield pending[0].result()
                pending.popleft()
                done += 1
        yield from map(run, seeds[done:])
    finally:
        end(pool)


def _run(scenario: Scenario, engine: str, seed: int, series: TimeSeries | None = None) -> RunResult:
    """Simulate one run, fill `series` if there is one, and return the result."""
    if engine == "exact":
        series = simulate_exact(scenario, seed=seed, series=series)
    else:
        from forbear_simulate.engines.cohort import simulate_cohort

        series = simulate_cohort(scenario, series=series)
    return RunResult(figures_of(scenario, series), _bins(series))


def _bins(series: TimeSeries) -> dict[str, list[float]]:
    """Return the lists of a time series that have one number per bin."""
    lists = {item.name: getattr(series, item.name) for item in fields(TimeSeries)}
    return {name: values for name, values in lists.items() if isinstance(values, list) and name != "delays" and values}


def _beginning(series: TimeSeries) -> TimeSeries:
    """Return the part of an interrupted time series that is complete: the bins before that of the last new call."""
    last = max(i for i, count in enumerate(series.calls) if count)
    part = TimeSeries(series.step, max(last, 1))
    for name, values in _bins(series).items():
        setattr(part, name, values[: part.bins])
    part.delays = series.delays
    return part


def _add(sums: dict[str, list[float]], bins: dict[str, list[float]]) -> None:
    """Add the counts of a run to the sums, in the order of the runs, so that rounding is always the same."""
    for name, values in bins.items():
        before = sums.get(name)
        sums[name] = values if before is None else [a + b for a, b in zip(before, values, strict=True)]


def _outcome(
    scenario: Scenario,
    engine: str,
    seed: int,
    results: list[Figures],
    sums: dict[str, list[float]],
    runs: int | None = None,
) -> FleetOutcome:
    """Return the outcome of these results and sums; `runs` is the number of finished runs, None for all results."""
    figures, errors = mean_figures(results)
    count = len(results)
    bins = {name: [value / count for value in values] for name, values in sums.items()}
    reached = min(len(bins["calls"]) * scenario.step, scenario.duration)
    return FleetOutcome(scenario, engine, seed, count if runs is None else runs, reached, figures, errors, bins)
