"""Backoff: how long to hold back before each retry. Pure: randomness comes in as `u`, state as `previous`."""

from forbear.core import check
from forbear.core.check import LARGEST
from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, Protocol

    Jitter = Literal["full", "equal", "documented", "decorrelated", "none"]

    class Backoff(Protocol):
        """A sequence of delays."""

        def delay(self, n: int, u: float, previous: float | None = None) -> float:
            """Seconds to wait before retry `n` (from 0); `u` is uniform in [0, 1), `previous` the last delay."""
            ...


JITTERS: "tuple[Jitter, ...]" = ("full", "equal", "documented", "decorrelated", "none")


class Exponential(Record):
    """Truncated exponential backoff: the step before retry n is `min(initial * multiplier**n, maximum)` seconds.

    `jitter` says how randomness enters. With u uniform in [0, 1): "full" (default) waits `u * step` (gsutil as
    documented, google-api-core). "equal" waits `step * (1 + u) / 2`, the upper half of the step. "documented" waits
    `min(initial * multiplier**n + u * spread, maximum)`, the formula of the Google Cloud pages with their "random
    number of milliseconds" as `spread` (1 s); it loses all jitter once truncated, so prefer another for fleets.
    "decorrelated" waits between `initial` and three times the delay before, at most `maximum`. "none" waits the step
    itself.

    Seconds, all of them; defaults 1, doubled, truncated at 64. Raises ValueError or TypeError for other values.
    """

    __slots__ = ("initial", "multiplier", "maximum", "jitter", "spread")

    initial: float
    multiplier: float
    maximum: float
    jitter: "Jitter"
    spread: float

    def __init__(
        self,
        initial: float = 1,
        multiplier: float = 2,
        maximum: float = 64,
        jitter: "Jitter" = "full",
        spread: float = 1,
    ) -> None:
        check.positive_seconds("initial", initial)
        check.at_least("multiplier", multiplier, 1)
        check.positive_seconds("maximum", maximum)
        check.seconds("spread", spread)
        if maximum < initial:
            raise ValueError(f"`maximum` must be at least `initial`, which is {initial}, got {maximum}")
        if jitter not in JITTERS:
            raise ValueError(f"`jitter` must be one of {', '.join(JITTERS)}, got {check.shown(jitter)}")
        store = object.__setattr__
        store(self, "initial", float(initial))
        store(self, "multiplier", float(multiplier))
        store(self, "maximum", float(maximum))
        store(self, "jitter", jitter)
        store(self, "spread", float(spread))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Seconds to wait before retry `n`, from 0; only "decorrelated" looks at `previous`, the last delay."""
        jitter = self.jitter
        maximum = self.maximum
        if jitter == "decorrelated":
            longest = min(3 * (self.initial if previous is None else previous), LARGEST)
            return min(self.initial + u * max(longest - self.initial, 0.0), maximum)
        try:
            step = self.initial * self.multiplier**n
        except OverflowError:  # `n` or the step is beyond every float, so the step is beyond the maximum if it grows
            step = maximum if self.multiplier > 1 else self.initial
        if jitter == "documented":
            return min(step + u * self.spread, maximum)
        if step > maximum:
            step = maximum
        if jitter == "full":
            return u * step
        return step * ((1 + u) / 2) if jitter == "equal" else step


class Constant(Record):
    """The same wait before every retry: `seconds` plus up to `spread` of jitter (default 0)."""

    __slots__ = ("seconds", "spread")

    seconds: float
    spread: float

    def __init__(self, seconds: float, spread: float = 0) -> None:
        check.seconds("seconds", seconds)
        check.seconds("spread", spread)
        self._set(seconds=float(seconds), spread=float(spread))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Return the seconds to wait before any retry."""
        return min(self.seconds + u * self.spread, LARGEST)


class Sequence(Record):
    """The listed waits in turn, then the last one for ever, each plus up to `spread` seconds of jitter (default 0)."""

    __slots__ = ("delays", "spread")

    delays: tuple[float, ...]
    spread: float

    def __init__(self, delays: "Iterable[float]", spread: float = 0) -> None:
        listed = tuple(delays)
        if not listed:
            raise ValueError("`delays` must name at least one wait in seconds, got none")
        for value in listed:
            check.seconds("delays", value)
        check.seconds("spread", spread)
        self._set(delays=tuple(map(float, listed)), spread=float(spread))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Return the seconds to wait before retry `n`, counted from 0."""
        return min(self.delays[min(n, len(self.delays) - 1)] + u * self.spread, LARGEST)
