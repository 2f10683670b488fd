"""`Figures`: the numbers that sum a simulation up, each with its unit and its meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import isinf, sqrt
from typing import Any

from forbear_simulate.analysis.recovery import drain_time, peak_to_mean, recovery_time
from forbear_simulate.engines.time_series import COUNTS, TimeSeries
from forbear_simulate.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class FigureRule:
    """The unit and the meaning of a figure."""

    unit: str
    text: str


def _figure(unit: str, text: str) -> Any:
    return field(metadata={"rule": FigureRule(unit, text)})


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run, or their means over several runs.

    A time is infinity if what it waits for did not happen before the end. None stands for a figure that the scenario or
    the engine does not have. Example: see `simulate`.
    """

    calls: float = _figure("calls", "new calls")
    first_attempts: float = _figure("attempts", "first attempts that were sent")
    retries: float = _figure("attempts", "retries that were sent")
    offered_load: float = _figure("attempts/s", "attempts for each second of the simulation")
    goodput: float = _figure("calls/s", "successful calls for each second of the simulation")
    successes: float = _figure("calls", "calls that succeeded")
    gave_up: float = _figure("calls", "calls that ended without a success")
    gave_up_share: float = _figure("share", "the share of the ended calls that had no success")
    amplification: float = _figure("ratio", "attempts for each first attempt")
    failures: float = _figure("attempts", "attempts whose response was a transient error")
    refusals: float = _figure("attempts", "attempts that the service refused because it was full or out")
    timeouts: float = _figure("attempts", "attempts whose client stopped waiting")
    budget_refusals: float = _figure("attempts", "retries and first attempts that a budget refused")
    wasted: float = _figure("attempts", "requests that were served after their client had stopped waiting")
    longest_queue: float = _figure("requests", "the longest queue, as the mean of a bin")
    peak_to_mean: float | None = _figure("ratio", "the most attempts in a second over their mean per second")
    recovery: float | None = _figure("seconds", "from the end of the trigger until the goodput is back")
    drain: float | None = _figure("seconds", "from the end of the trigger until 99 % of the open calls have ended")
    p50: float | None = _figure("seconds", "the time to success that half of the successful calls do not exceed")
    p99: float | None = _figure("seconds", "the time to success that 99 % of the successful calls do not exceed")
    longest: float | None = _figure("seconds", "the longest time to success")


def figure_rules() -> dict[str, FigureRule]:
    """Return the unit and the meaning of each figure by its name."""
    return {item.name: item.metadata["rule"] for item in fields(Figures)}


def figures_of(scenario: Scenario, series: TimeSeries) -> Figures:
    """Return the figures of the time series of one run."""
    totals = {name: series.total(name) for name in COUNTS}
    ended = totals["successes"] + totals["gave_up"]
    time = series.bins * series.step
    delays = sorted(series.delays)

    def delay(share: float) -> float | None:
        return delays[min(int(share * len(delays)), len(delays) - 1)] if delays else None

    return Figures(
        offered_load=(totals["first_attempts"] + totals["retries"]) / time,
        goodput=totals["successes"] / time,
        gave_up_share=totals["gave_up"] / ended if ended else 0.0,
        amplification=series.amplification,
        longest_queue=max(series.queued),
        peak_to_mean=peak_to_mean(series),
        recovery=recovery_time(scenario, series),
        drain=drain_time(scenario, series),
        p50=delay(0.5),
        p99=delay(0.99),
        longest=delay(1.0),
        **totals,
    )


def mean_figures(runs: Sequence[Figures]) -> tuple[Figures, dict[str, float | None]]:
    """Return the means of the figures over several runs, and their standard errors by name.

    A run that does not have a figure does not count for it. A mean is infinity if the figure of one run is. A standard
    error is None for an infinite mean, and for fewer than two runs.
    """
    means: dict[str, Any] = {}
    errors: dict[str, float | None] = {}
    for name in figure_rules():
        values = [value for run in runs if (value := getattr(run, name)) is not None]
        means[name] = mean = sum(values) / len(values) if values else None
        errors[name] = None
        if mean is not None and len(values) > 1 and not isinf(mean):
            variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
            errors[name] = sqrt(variance / len(values))
    return Figures(**means), errors
