"""`FleetOutcome`, the result of `simulate`: figures with their standard errors, and counts per time bin."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import isinf
from typing import Any

from forbear import Policy
from forbear.adapters import Record, field_names
from forbear_simulate.analysis.figures import Figures, figure_rules
from forbear_simulate.analysis.recovery import peak_to_mean
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Scenario

NOT_MODELLED = (
    "networks: a request and a response take no time on the way, and none is lost but in a window of kind drop",
    "several servers: there is one service with one queue, without load balancing, health checks or autoscaling",
    "circuit breakers, hedged requests, and load shedding other than a full queue",
    "priorities: the queue is first in, first out, and all requests need the same kind of work",
    "new clients or restarts: the number of clients is constant",
    "what calls do to data: all operations may be repeated",
)
"""The list of what a simulation does not model, with any engine."""

_COHORT = (
    "chance, with the cohort engine: a queue forms only when more arrives than the workers can serve",
    "tokens that a rate limit wastes, with the cohort engine: with a burst of a few requests, chance wastes many",
    "times of single calls, with the cohort engine: it has means of many calls only",
)


@dataclass(frozen=True, slots=True)
class FleetOutcome:
    """The outcome of a simulation: figures as means over all runs, their standard errors, counts per bin.

    Example: see `simulate`.
    """

    scenario: Scenario
    engine: str
    """"cohort" or "exact"."""
    seed: int
    runs: int
    """The number of runs that were finished; 0 if the only run was interrupted."""
    reached: float
    """The seconds of virtual time that all runs reached: the whole duration, or less after an interruption."""
    figures: Figures
    """The means over the runs."""
    standard_errors: Mapping[str, float | None]
    """The standard errors of the means by the name of the figure; None with fewer than two runs."""
    bins: Mapping[str, list[float]]
    """The lists of a `TimeSeries` by name, as means over the runs: one number per time bin."""

    @property
    def times(self) -> list[float]:
        """The begin of each time bin, in seconds."""
        return [i * self.scenario.step for i in range(len(self.bins["calls"]))]

    @property
    def offered_load(self) -> list[float]:
        """The attempts per second, in each time bin."""
        step, bins = self.scenario.step, self.bins
        return [(a + b) / step for a, b in zip(bins["first_attempts"], bins["retries"], strict=True)]

    @property
    def goodput(self) -> list[float]:
        """The successful calls per second, in each time bin."""
        return [count / self.scenario.step for count in self.bins["successes"]]

    @property
    def budget_level(self) -> list[float] | None:
        """The mean share of tokens left in the clients' buckets, at the end of each time bin.

        None if the rule of the budget has no tokens; those of `TokenBucket` and `Throttle` have.
        """
        return self.bins.get("budget_level")

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """The list of what this simulation does not model."""
        return (*NOT_MODELLED, *(_COHORT if self.engine == "cohort" else ()))

    def peak_to_mean(self, start: float = 0.0, end: float | None = None) -> float | None:
        """Return the most attempts in a second over their mean, from `start` to `end` in seconds; None without any.

        It is that of the means over the runs, whose chance is smaller than that of one run.
        """
        series = TimeSeries(self.scenario.step, len(self.bins["calls"]))
        series.first_attempts, series.retries = self.bins["first_attempts"], self.bins["retries"]
        return peak_to_mean(series, start, end)

    def document(self) -> dict[str, Any]:
        """Return all that is known as a document for JSON; an infinite time is the text "never"."""
        rules = figure_rules()
        return {
            "engine": self.engine,
            "seed": self.seed,
            "runs": self.runs,
            "reached": self.reached,
            "scenario": _plain(self.scenario),
            "figures": {
                name: {
                    "value": _plain(getattr(self.figures, name)),
                    "standard_error": self.standard_errors[name],
                    "unit": rule.unit,
                    "meaning": rule.text,
                }
                for name, rule in rules.items()
            },
            "step": self.scenario.step,
            "bins": dict(self.bins),
            "not_modelled": list(self.not_modelled),
        }

    def csv(self) -> str:
        """Return a CSV table with a row for each time bin: its begin, load and goodput per second, then its counts.

        The amplification of a bin without first attempts is empty.
        """
        names = list(self.bins)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("time", "offered_load_per_s", "goodput_per_s", "amplification", *names))
        columns = (self.times, self.offered_load, self.goodput, *(self.bins[name] for name in names))
        first, retries = self.bins["first_attempts"], self.bins["retries"]
        for i, (time, load, goodput, *counts) in enumerate(zip(*columns, strict=True)):
            ratio = f"{(first[i] + retries[i]) / first[i]:.6g}" if first[i] else ""
            writer.writerow((f"{time:.10g}", f"{load:.6g}", f"{goodput:.6g}", ratio, *(f"{n:.6g}" for n in counts)))
        return text.getvalue()


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON: a policy by its name, limits and backoff."""
    if isinstance(value, float):
        return "never" if isinf(value) else value
    if isinstance(value, Policy):
        return {"name": value.name, "limits": _plain(value.limits), "backoff": _plain(value.backoff)}
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Record):
        return {"kind": type(value).__name__, **{name: _plain(getattr(value, name)) for name in field_names(value)}}
    if isinstance(value, tuple):
        return list(map(_plain, value))  # pyright: ignore[reportUnknownArgumentType] - of a tuple of anything
    return value if value is None or isinstance(value, str | int) else repr(value)
