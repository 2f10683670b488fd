"""What a benchmark found: figures per contender, ratios to the yardsticks, and whether the targets are met."""

from statistics import median, quantiles
from typing import NamedTuple

OURS = "forbear"
PEERS = "fastest peer"


class Target(NamedTuple):
    """A limit on a figure, or on its ratio to the figure of `against` ("fastest peer" picks the smallest peer)."""

    contender: str
    limit: float
    against: str | None = None


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
        return median(a / b for a, b in zip(self.samples[contender], self.samples[against], strict=True))

    def reached(self, target: Target) -> float:
        """What a target limits."""
        if target.against is None:
            return self.figure(target.contender)
        against = target.against
        if against == PEERS:
            against = min(self.peers, key=self.figure)
        return self.ratio(target.contender, against)

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
                {**target._asdict(), "reached": self.reached(target), "met": self.reached(target) <= target.limit}
                for target in self.targets
            ],
            "notes": list(self.notes),
        }

    def as_text(self) -> str:
        """The table for people."""
        width = max(map(len, self.samples))
        head = f"{'':{width}}  {self.unit:>9}  spread" + "".join(f"  {f'x {other}':>12}" for other in self.yardsticks)
        lines = [f"{self.title}  [{self.name}]", head]
        for name in self.samples:
            ratios = "".join(f"  {self.ratio(name, other):>12.2f}" for other in self.yardsticks)
            figure = self.figure(name)
            lines.append(f"{name:{width}}  {figure:>9.{_places(figure)}f}  {self.spread(name):>6.0%}{ratios}")
        lines += [f"  {self._judged(target)}" for target in self.targets]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _judged(self, target: Target) -> str:
        reached = self.reached(target)
        verdict = "met" if reached <= target.limit else "MISSED"
        what = self.unit if target.against is None else f"x {target.against}"
        return f"target {verdict}: {target.contender} at most {target.limit:g} {what}, measured {reached:.2f}"


def _places(figure: float) -> int:
    return 0 if figure >= 100 else 1 if figure >= 10 else 2
