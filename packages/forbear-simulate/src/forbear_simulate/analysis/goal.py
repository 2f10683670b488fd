"""The goal of a search: a limit on a figure of a simulation, such as "recovery < 60 s"."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from operator import ge, gt, le, lt
from typing import Any

from forbear_simulate.analysis.figures import Figures, figure_rules
from forbear_simulate.scenario.fields import ScenarioError, duration, parse_rate, plain_number, refuse

MEASURES = {
    "recovery": "recovery",
    "drain": "drain",
    "amplification": "amplification",
    "goodput": "goodput",
    "gave_up": "gave_up_share",
    "peak_to_mean": "peak_to_mean",
    "p99": "p99",
}
"""The names that a goal can have, and the figure that each one reads."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_GOAL = re.compile(r"\s*([a-z0-9_]+)\s*(<=|>=|<|>)\s*(\S.*?)\s*", re.ASCII)
_UNITS = {"seconds": " s", "calls/s": "/s"}
_EXAMPLES = {
    "seconds": "a time with a unit, such as 60 s",
    "calls/s": "a rate with a unit, such as 100/s",
    "share": "a share, such as 5 % or 0.05",
    "ratio": "a number, such as 1.5",
}


@dataclass(frozen=True, slots=True)
class FigureGoal:
    """A figure and the limit that it must keep."""

    measure: str
    comparison: str
    limit: float
    unit: str

    def is_reached(self, figures: Figures) -> bool:
        """Return whether the figure keeps the limit. Raises ScenarioError if the scenario does not have the figure."""
        return _COMPARE[self.comparison](self.value(figures), self.limit)

    def value(self, figures: Figures) -> float:
        """Return the figure. Raises ScenarioError if the scenario or the engine does not have it."""
        value: float | None = getattr(figures, MEASURES[self.measure])
        if value is not None:
            return value
        cure = "choose the exact engine" if self.measure == "p99" else "add a window or a change of the rate"
        raise ScenarioError(f"`such_that` must be a goal that the scenario has, got {self.measure!r}; {cure}")

    def show(self, value: float) -> str:
        """Return a value of the figure with its unit."""
        if value == float("inf"):
            return "never"
        if self.unit == "share":
            return f"{value:.3%}".replace(".000%", "%")
        return f"{value:.4g}{_UNITS.get(self.unit, '')}"

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.show(self.limit)}"


def read_goal(text: str) -> FigureGoal:
    """Return the goal of a text such as "recovery < 60 s", "gave_up <= 5 %" or "goodput > 100/s".

    The names are those of `MEASURES`. Raises ScenarioError for any other text.
    """
    match = _GOAL.fullmatch(str(text))
    if match is None:
        refuse("such_that", "a figure, one of < <= > >=, and a limit", text, 'write "recovery < 60 s"')
    name, comparison, raw = match.groups()
    if name not in MEASURES:
        near = get_close_matches(name, MEASURES, 1)
        cure = f"did you mean {near[0]}?" if near else 'write "recovery < 60 s"'
        refuse("such_that", f"about one of {', '.join(MEASURES)}", name, cure)
    unit = figure_rules()[MEASURES[name]].unit
    limit = _limit(raw, unit)
    if limit is None or not 0 <= limit < float("inf"):
        refuse("such_that", f"{name} {comparison} {_EXAMPLES[unit]}", text, "correct the limit")
    return FigureGoal(name, comparison, limit, unit)


def _limit(raw: str, unit: str) -> float | None:
    """Return the number of a limit in the unit of its figure, None if it is none."""
    packed = raw.replace(" ", "")
    if unit == "seconds":
        return duration(packed)
    if unit == "calls/s":
        return parse_rate(packed)
    percent = unit == "share" and packed.endswith("%")
    value = plain_number(packed[:-1] if percent else packed)
    return float(value) / (100 if percent else 1) if isinstance(value, int | float) else None
