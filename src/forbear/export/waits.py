"""A backoff as most systems know it: steps that grow by a factor up to a maximum, and how they are spread."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forbear.core.backoff import Constant, Exponential, Sequence

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff

Jitter = Literal["full", "equal", "documented", "decorrelated", "spread", "none"]

_MEANS: dict[Jitter, float] = {"full": 0.5, "equal": 0.75}


@dataclass(frozen=True, slots=True)
class Waits:
    """The upper ends of the waits, in seconds; `spread` is what is added at random ("documented" and "spread")."""

    initial: float
    multiplier: float
    maximum: float
    jitter: Jitter
    spread: float = 0.0

    @classmethod
    def of(cls, backoff: "Backoff") -> "Waits":
        """The nearest to a backoff; of others the first wait and the longest of ten, growing by powers."""
        if isinstance(backoff, Exponential):
            spread = backoff.spread if backoff.jitter == "documented" else 0.0
            return cls(backoff.initial, backoff.multiplier, backoff.maximum, backoff.jitter, spread)
        if isinstance(backoff, Constant):
            kind: Jitter = "spread" if backoff.spread else "none"
            return cls(backoff.seconds, 1.0, backoff.seconds, kind, backoff.spread)
        spread = backoff.spread if isinstance(backoff, Sequence) else 0.0
        first, *others = (backoff.delay(n, 0.5, None) - spread / 2 for n in range(10))
        return cls(first, 2.0, max(first, *others), "spread" if spread else "none", spread)

    @property
    def mean(self) -> "Waits":
        """The same without jitter, for systems that have none or spread around a middle: each wait is our mean one."""
        factor = _MEANS.get(self.jitter, 1.0)
        added = self.spread / 2
        return Waits(self.initial * factor + added, self.multiplier, self.maximum * factor + added, "none")

    def __str__(self) -> str:
        if self.multiplier == 1:
            return f"{self.initial:g} s"
        return f"{self.initial:g} s, times {self.multiplier:g} up to {self.maximum:g} s"
