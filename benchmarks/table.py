"""What a benchmark found: figures per contender, ratios to the yardsticks, and whether the targets are met."""

from math import ceil, floor, sqrt
from statistics import median, quantiles
from typing import NamedTuple

OURS = "forbear"
PEERS = "fastest peer"


class Target(NamedTuple):
    """A limit on a figure, or on its ratio to the figure of `against` ("fastest peer" picks the smallest peer)."""

    contender: str
    limit: float
    against: str | None = None


class Outcome(NamedTuple):
    """The median of what a target limits, and the bounds between which it lies with 95 % confidence."""

    median: float
    low: float
    high: float

    def judged(self, limit: float) -> str:
        """Met or missed, where the noise leaves no doubt."""
        if self.low <= limit < self.high:
            return "too close to call"
        return "met" if self.high <= limit else "MISSED"


class Table(NamedTuple):
    """The samples of every contender in a unit (`scale` of them make one of what was sampled), paired by round."""

    name: str
    title: str
    unit: str
    scale: float
    samples: dict[str, list[float]]
    yardsticks: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    peers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def figure(self, contender: str) -> float:
        """The median, in the unit of the table."""
        return median(self.samples[contender]) * self.scale

    def spread(self, contender: str) -> float:
        """Half the distance between the quartiles, relative to the median."""
        samples = self.samples[contender]
        if len(samples) < 2:
            return 0.0
        lower, _, upper = quantiles(samples, n=4)
        return (upper - lower) / 2 / median(samples)

    def ratio(self, contender: str, against: str) -> float:
        """The median of the ratios within each round: what slowed a whole round down cancels out."""
        return median(self._ratios(contender, against))

    def _ratios(self, contender: str, against: str) -> list[float]:
        return [a / b for a, b in zip(self.samples[contender], self.samples[against], strict=True)]

    def outcome(self, target: Target) -> Outcome:
        """What was reached of a target."""
        if target.against is None:
            measured = [self.scale * sample for sample in self.samples[target.contender]]
        else:
            against = min(self.peers, key=self.figure) if target.against == PEERS else target.against
            measured = self._ratios(target.contender, against)
        return Outcome(median(measured), *_interval(measured))

    def as_json(self) -> dict[str, object]:
        """Plain data for other programs."""
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "figures": {
                name: {
                    "median": self.figure(name),
                    "spread": self.spread(name),
                    **{f"ratio to {other}": self.ratio(name, other) for other in self.yardsticks},
                }
                for name in self.samples
            },
            "targets": [
                {**target._asdict(), **outcome._asdict(), "judged": outcome.judged(target.limit)}
                for target in self.targets
                for outcome in [self.outcome(target)]
            ],
            "notes": list(self.notes),
        }

    def as_text(self) -> str:
        """The table for people."""
        width = max(map(len, self.samples))
        columns = {other: max(12, len(f"x {other}")) for other in self.yardsticks}
        head = f"{'':{width}}  {self.unit:>9}  spread"
        head += "".join(f"  {f'x {other}':>{column}}" for other, column in columns.items())
        lines = [f"{self.title}  [{self.name}]", head]
        for name in self.samples:
            ratios = "".join(f"  {self.ratio(name, other):>{column}.2f}" for other, column in columns.items())
            figure = self.figure(name)
            lines.append(f"{name:{width}}  {figure:>9.{_places(figure)}f}  {self.spread(name):>6.0%}{ratios}")
        lines += [f"  {self._judged(target)}" for target in self.targets]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _judged(self, target: Target) -> str:
        found = self.outcome(target)
        what = self.unit if target.against is None else f"x {target.against}"
        bounds = f" ({found.low:.2f} to {found.high:.2f})" if found.low < found.high else ""
        verdict = found.judged(target.limit)
        return (
            f"target {verdict}: {target.contender} at most {target.limit:g} {what}, measured {found.median:.2f}{bounds}"
        )


def _interval(samples: list[float]) -> tuple[float, float]:
    """Bounds of the median by its neighbours in order, so many to either side (95 %, binomial); no shape is assumed."""
    ordered = sorted(samples)
    middle, reach = (len(ordered) - 1) / 2, 0.98 * sqrt(len(ordered))
    return ordered[max(0, floor(middle - reach))], ordered[min(len(ordered) - 1, ceil(middle + reach))]


def _places(figure: float) -> int:
    return 0 if figure >= 100 else 1 if figure >= 10 else 2
