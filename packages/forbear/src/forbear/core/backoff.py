"""Compute the delay before each retry. Pure: randomness is the argument `u`, state the argument `previous`."""

from forbear.core import check
from forbear.core.check import LARGEST
from forbear.core.record import UserRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta
    from typing import Literal

    Seconds = float | timedelta
    Jitter = Literal["full", "equal", "documented", "decorrelated", "none"]


JITTERS: "tuple[Jitter, ...]" = ("full", "equal", "documented", "decorrelated", "none")


class Exponential(UserRecord):
    """Truncated exponential backoff: the step before retry n is `min(initial * multiplier**n, maximum)` seconds.

    Retries count from 0. `jitter` says how the random number u, uniform in [0, 1), changes the delay. "full" (default)
    waits `u * step` (as google-api-core does, and gsutil by its documentation). "equal" waits `step * (1 + u) / 2`, the
    upper half of the step. "documented" waits `min(initial * multiplier**n + u * spread, maximum)`, the formula of the
    Google Cloud pages, whose "random number of milliseconds" is `spread` (1 s). Its delays have no jitter at the
    maximum, so choose another for many clients. "decorrelated" waits a random time between `initial` and three times
    the last delay, at most `maximum`; before the first retry, `initial` counts as the last delay. "none" waits the step
    itself.

    `initial` (1), `maximum` (64) and `spread` (1) are seconds or timedeltas, and `maximum` is at least `initial`.
    `multiplier` (2) is at least 1. Raises ValueError or TypeError for other values.

    >>> [forbear.Exponential(maximum=8, jitter="none").delay(n, 0.5, None) for n in range(5)]
    [1.0, 2.0, 4.0, 8.0, 8.0]
    """

    __slots__ = ("initial", "multiplier", "maximum", "jitter", "spread")

    initial: float
    multiplier: float
    maximum: float
    jitter: "Jitter"
    spread: float

    def __init__(
        self,
        initial: "Seconds" = 1,
        multiplier: float = 2,
        maximum: "Seconds" = 64,
        jitter: "Jitter" = "full",
        spread: "Seconds" = 1,
    ) -> None:
        first, most, random = check.in_seconds(initial), check.in_seconds(maximum), check.in_seconds(spread)
        check.positive_seconds("initial", first)
        check.at_least("multiplier", multiplier, 1)
        check.positive_seconds("maximum", most)
        check.seconds("spread", random)
        if most < first:
            raise ValueError(f"`maximum` must be at least `initial`, which is {first}, got {most}")
        if jitter not in JITTERS:
            raise ValueError(f"`jitter` must be one of {', '.join(JITTERS)}, got {check.shown(jitter)}")
        store = object.__setattr__
        store(self, "initial", float(first))
        store(self, "multiplier", float(multiplier))
        store(self, "maximum", float(most))
        store(self, "jitter", jitter)
        store(self, "spread", float(random))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Return the seconds before retry `n`; only "decorrelated" reads `previous`."""
        jitter, maximum = self.jitter, self.maximum
        try:
            step = self.initial * self.multiplier**n
        except OverflowError:  # `n` or the step is too large for a float
            step = maximum if self.multiplier > 1 else self.initial
        if step > maximum:
            step = maximum
        if jitter == "full":
            return u * step
        if jitter == "documented":
            return min(step + u * self.spread, maximum)
        if jitter == "decorrelated":
            longest = min(3 * (self.initial if previous is None else previous), LARGEST)
            return min(self.initial + u * max(longest - self.initial, 0.0), maximum)
        return step * ((1 + u) / 2) if jitter == "equal" else step


class Constant(UserRecord):
    """The same delay before every retry: `seconds`, plus up to `spread` seconds of jitter (default 0).

    Both may be timedeltas.

    >>> forbear.retry(OSError, backoff=forbear.Constant(2)).backoff
    Constant(seconds=2.0)
    """

    __slots__ = ("seconds", "spread")

    seconds: float
    spread: float

    def __init__(self, seconds: "Seconds", spread: "Seconds" = 0) -> None:
        wait, random = check.in_seconds(seconds), check.in_seconds(spread)
        check.seconds("seconds", wait)
        check.seconds("spread", random)
        self._set(seconds=float(wait), spread=float(random))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Return `seconds + u * spread`, for every `n`."""
        return min(self.seconds + u * self.spread, LARGEST)


class Sequence(UserRecord):
    """The listed `delays` in turn, then the last one for all further retries, each plus jitter.

    All are in seconds, or timedeltas. The jitter is random, up to `spread` (default 0). Raises ValueError if `delays`
    is empty.

    >>> [forbear.Sequence([1, 5, 30]).delay(n, 0.5, None) for n in range(4)]
    [1.0, 5.0, 30.0, 30.0]
    """

    __slots__ = ("delays", "spread")

    delays: tuple[float, ...]
    spread: float

    def __init__(self, delays: "Iterable[Seconds]", spread: "Seconds" = 0) -> None:
        if not hasattr(type(delays), "__iter__"):
            raise TypeError(f"`delays` must list waits in seconds, such as [1, 5, 30], got {check.shown(delays)}")
        listed = tuple(map(check.in_seconds, delays))
        random = check.in_seconds(spread)
        if not listed:
            raise ValueError("`delays` must name at least one wait in seconds, got none")
        for value in listed:
            check.seconds("delays", value)
        check.seconds("spread", random)
        self._set(delays=tuple(map(float, listed)), spread=float(random))

    def delay(self, n: int, u: float, previous: float | None = None) -> float:
        """Return `delays[n] + u * spread`; past the end, the last delay counts."""
        return min(self.delays[min(n, len(self.delays) - 1)] + u * self.spread, LARGEST)
