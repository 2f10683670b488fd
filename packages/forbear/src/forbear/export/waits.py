"""The waits of a policy as other systems express them: steps that grow by a factor up to a maximum, and jitter."""

from math import floor
from typing import TYPE_CHECKING, Literal

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence as Many

    from forbear.core.protocols import Backoff

_MEANS = {"full": 0.5, "equal": 0.75, "none": 1.0}
_COUNTED = 10  # retries after which a backoff is taken to grow no more
_COMPARED = 5
_DRAWS = 200
_STEEPEST = 10.0

Jitter = Literal["full", "equal", "documented", "decorrelated", "spread", "none"]


@dataclass(frozen=True, slots=True)
class Waits:
    """A backoff as most systems have it, in seconds: steps that grow by a factor up to a maximum, and their jitter."""

    initial: float
    multiplier: float
    maximum: float
    jitter: Jitter
    spread: float = 0.0

    @classmethod
    def from_backoff(cls, backoff: "Backoff") -> "Waits":
        """Return a backoff in these terms: Exponential and Constant exactly, any other approximately.

        An approximation starts with the medium first wait and doubles up to the longest of the first ten.
        """
        if isinstance(backoff, Exponential):
            spread = backoff.spread if backoff.jitter == "documented" else 0.0
            return cls(backoff.initial, backoff.multiplier, backoff.maximum, backoff.jitter, spread)
        if isinstance(backoff, Constant):
            kind: Jitter = "spread" if backoff.spread else "none"
            return cls(backoff.seconds, 1.0, backoff.seconds, kind, backoff.spread)
        spread = backoff.spread if isinstance(backoff, Sequence) else 0.0
        first, *others = (backoff.delay(n, 0.5, None) - spread / 2 for n in range(_COUNTED))
        return cls(first, 2.0, max(first, *others), "spread" if spread else "none", spread)

    def steps(self, count: int) -> list[float]:
        """Return the steps before the first `count` retries."""
        return [self.step(n) for n in range(count)]

    @property
    def longest(self) -> float:
        """The longest wait in seconds."""
        return self.maximum + (self.spread if self.jitter == "spread" else 0.0)

    def cap(self, maximum: float) -> "Waits":
        """Return these waits with a maximum, in whole milliseconds, that is at most `maximum` seconds."""
        maximum = self.maximum if self.maximum <= maximum else floor(maximum * 1000) / 1000
        return Waits(min(self.initial, maximum), self.multiplier, maximum, self.jitter, self.spread)

    def step(self, n: int) -> float:
        """Return the step in seconds before retry `n`, counted from 0: the wait without its jitter."""
        try:
            return min(self.initial * self.multiplier**n, self.maximum)
        except OverflowError:
            return self.maximum

    def __str__(self) -> str:
        if self.multiplier == 1:
            return f"{self.initial:g} s"
        return f"{self.initial:g} s, times {self.multiplier:g} up to {self.maximum:g} s"


def mean_delays(backoff: "Backoff", count: int) -> list[float]:
    """Return the mean delays in seconds before the first `count` retries, each after a mean delay, of 200 draws."""
    means: list[float] = []
    previous = None
    for n in range(count):
        previous = sum(backoff.delay(n, (draw + 0.5) / _DRAWS, previous) for draw in range(_DRAWS)) / _DRAWS
        means.append(previous)
    return means


def mean_of_draws(step: float, spread: float, maximum: float) -> float:
    """Return the mean wait in seconds of a step to which up to `spread` is added, cut to the maximum."""
    return sum(min(step + spread * (draw + 0.5) / 100, maximum) for draw in range(100)) / 100


def mean_waits(backoff: "Backoff", retries: int | None = None) -> Waits:
    """Return the mean waits of a backoff, for targets that have no jitter or one around a step.

    They are exact where the means grow by a factor, else the steps that differ least before the first `retries` (None:
    many).
    """
    if _is_geometric(backoff):
        waits = Waits.from_backoff(backoff)
        factor, added = _MEANS.get(waits.jitter, 1.0), waits.spread / 2
        return Waits(waits.initial * factor + added, waits.multiplier, waits.maximum * factor + added, "none")
    means = mean_delays(backoff, _COUNTED)
    return _fit(means[: _count_compared(retries)], max(means))


def full_waits(backoff: "Backoff", retries: int | None = None) -> Waits:
    """Return steps for full jitter, a draw from zero to the step, whose mean waits are the backoff's below its cap."""
    longest = Waits.from_backoff(backoff).longest
    if _is_geometric(backoff):
        mean = mean_waits(backoff)
        return Waits(min(2 * mean.initial, longest), mean.multiplier, longest, "full")
    doubled = [2 * each for each in mean_delays(backoff, _count_compared(retries))]
    return _fit([each for each in doubled if each <= longest] or [longest], longest, "full")


def _is_geometric(backoff: "Backoff") -> bool:
    """Return whether the mean delays of a backoff grow by a constant factor until they stay the same."""
    return isinstance(backoff, Constant) or (isinstance(backoff, Exponential) and backoff.jitter in _MEANS)


def _count_compared(retries: int | None) -> int:
    return _COUNTED if retries is None else max(min(retries, _COUNTED), 1)


def _fit(means: "Many[float]", maximum: float, jitter: Jitter = "none") -> Waits:
    """Return the steps up to `maximum` whose largest difference from the first five of `means` is least."""
    if means[0] <= 0:
        floor = [max(each, 0.001) for each in means]
        return Waits(0.0, 1.0, 0.0, jitter) if max(means) <= 0 else _fit(floor, maximum, jitter)
    growing = next((n for n, each in enumerate(means) if each >= maximum * (1 - 1e-9)), len(means))
    sizes = (min(growing + 1, len(means)), max(growing, 1), min(_COMPARED, len(means)))
    candidates = [_chord(means[:size], maximum, jitter) for size in sizes]
    first = means[:_COMPARED]
    return min(candidates, key=lambda waits: max(difference(waits.step(n), each) for n, each in enumerate(first)))


def _chord(means: "Many[float]", maximum: float, jitter: Jitter) -> Waits:
    """Return the steps that grow as `means` do from first to last, scaled so that they differ alike on both sides."""
    multiplier = (means[-1] / means[0]) ** (1 / max(len(means) - 1, 1))
    multiplier = _round(min(max(multiplier, 1.0), _STEEPEST))
    shares = [each / multiplier**n for n, each in enumerate(means)]
    initial = 2 / (1 / min(shares) + 1 / max(shares))
    return Waits(min(_round(initial), maximum), multiplier, maximum, jitter)


def difference(one: float, other: float) -> float:
    """Return how much a time differs from another, as a share of the other: 0.25 if it is a quarter longer."""
    return abs(one - other) / max(other, 1e-9)


def _round(value: float) -> float:
    """Return a number with four significant digits."""
    return float(f"{value:.4g}")
