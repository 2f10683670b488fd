"""`Study`: a published result that the simulator repeats, and `Comparison`: one published figure beside ours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published figure beside ours, with the stated error.

    `error` is a share of the published figure, or an absolute number if that figure is 0. `relation` says how ours has
    to lie: about the published figure, at most that, or at least that; the error counts in all three.

    >>> Comparison("calls with jitter", published=0.5, ours=0.52, error=0.1).holds
    True
    """

    name: str
    published: float
    ours: float
    error: float
    unit: str = ""
    relation: Literal["about", "at most", "at least"] = "about"

    @property
    def tolerance(self) -> float:
        """The stated error in the unit of the figure."""
        return self.error * (abs(self.published) or 1.0)

    @property
    def holds(self) -> bool:
        """True if our figure lies as the published one says, within the stated error."""
        above, below = self.ours - self.published, self.published - self.ours
        if self.relation == "about":
            return max(above, below) <= self.tolerance
        return (above if self.relation == "at most" else below) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Study:
    """A published study: its `source`, what it shows, how its figures are known, and how ours are made.

    `compare` yields the comparisons. They are the same each time, since every run is seeded. Example: see `study`.
    """

    name: str
    title: str
    source: str
    shows: str
    published: str
    model: str
    compare: Callable[[], Iterator[Comparison]]

    def run(self) -> tuple[Comparison, ...]:
        """Simulate the study and return its comparisons; the longest study takes a few seconds."""
        return tuple(self.compare())


def show_figure(value: float, unit: str = "") -> str:
    """Return a figure with three digits, more only before the point, and its unit."""
    digits = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".rstrip()


def text_of_error(each: Comparison) -> str:
    """Return the stated error as a text: in percent, or in the unit if the published figure is 0."""
    return f"{each.error:.1%}".replace(".0%", "%") if each.published else show_figure(each.error, each.unit)


def text_of_published(each: Comparison) -> str:
    """Return the published figure as a text, after "at most" or "at least" if it is a limit."""
    text = show_figure(each.published, each.unit)
    return text if each.relation == "about" else f"{each.relation} {text}"
