"""Forecast the retries of a policy: the range of each wait, and where the run ends, as figures and in words."""

from typing import TYPE_CHECKING

from forbear.core.backoff import Constant, Exponential
from forbear.core.dataclass import dataclass
from forbear.core.decide import Stop, decide
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT
from forbear.text.duration import show

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff


MOST = 1000
"""The maximum number of retries in a forecast: a run whose waits may all be zero has no end."""


@dataclass(frozen=True, slots=True)
class ForecastRetry:
    """Retry `number` (from 1), the ranges of its wait and of all up to it in seconds, and whether it is certain."""

    number: int
    wait: tuple[float, float]
    total: tuple[float, float]
    certain: bool


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run: the number of retries (None if there are more than MOST), and the reason."""

    retries: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """The retries, and the ends of three runs: with the longest waits (`earliest`), medium, and the shortest."""

    retries: tuple[ForecastRetry, ...]
    earliest: End
    medium: End
    latest: End


def forecast(limits: Limits, backoff: "Backoff") -> Forecast:
    """Return the forecast of a run whose attempts all fail at once with transient errors.

    Its retries go up to the end of the longest of the three runs that ends within `MOST` retries.
    """
    earliest, medium, latest = (_end(limits, backoff, u) for u in (1.0, 0.5, 0.0))
    ends = (end.retries for end in (latest, medium, earliest))
    shown = next((count for count in ends if count is not None), MOST)
    certain = shown if earliest.retries is None else earliest.retries
    longest = float("inf") if limits.timeout is None else float(limits.timeout)
    retries: list[ForecastRetry] = []
    low = high = None
    total_low = total_high = 0.0
    for n in range(shown):
        low, high = backoff.delay(n, 0.0, low), backoff.delay(n, 1.0, high)
        total_low += low
        total_high = min(total_high + high, longest)
        retries.append(ForecastRetry(n + 1, (low, high), (total_low, total_high), n < certain))
    return Forecast(tuple(retries), earliest, medium, latest)


def _end(limits: Limits, backoff: "Backoff", u: float) -> End:
    """Return the end of the run in which every random draw is `u` (0: the shortest waits, 1: the longest)."""
    elapsed = 0.0
    previous: float | None = None
    for retries in range(MOST + 1):
        step = decide(
            limits,
            backoff,
            TRANSIENT,
            attempt=retries + 1,
            elapsed=elapsed,
            u=u,
            repeatable=True,
            previous=previous,
        )
        if isinstance(step, Stop):
            return End(retries, step.text)
        elapsed += step.delay
        previous = step.delay
    return End(None, f"more than {MOST} retries")


def range_text(seconds: tuple[float, float]) -> str:
    """Describe a range of waits in seconds: "1 to 2 s", or "32 s" if both ends look the same."""
    low, high = (show(value) for value in seconds)
    return high if low == high else f"{low.removesuffix(' s')} to {high}"


def backoff_text(backoff: "Backoff") -> str:
    """Describe a backoff in one line: "steps of 1 s, times 2, at most 64 s; jitter: full", or "always 1 to 2 s"."""
    if isinstance(backoff, Exponential):
        steps = f"steps of {show(backoff.initial)}, times {backoff.multiplier:g}, at most {show(backoff.maximum)}"
        return f"{steps}; jitter: {backoff.jitter}"
    if isinstance(backoff, Constant):
        return f"always {range_text((backoff.seconds, backoff.seconds + backoff.spread))}"
    return repr(backoff)


def limits_text(limits: Limits) -> str:
    """Describe the limits in one line, such as "at most 5 attempts, timeout 60 s"."""
    attempts = "any number of attempts" if limits.attempts is None else f"at most {limits.attempts} attempts"
    return f"{attempts}, {'no timeout' if limits.timeout is None else f'timeout {show(limits.timeout)}'}"


def end_text(forecast: Forecast) -> str:
    """Describe after how many retries a run ends, and why."""
    earliest, medium, latest = (end.retries for end in (forecast.earliest, forecast.medium, forecast.latest))
    reason = forecast.earliest.text
    if earliest is None:
        return f"does not end within {len(forecast.retries)} retries"
    if earliest == latest:
        return f"ends after {_retries(earliest)}: {reason}"
    if latest is not None:
        return f"ends after {earliest} to {_retries(latest)}: {reason}"
    usual = "" if medium is None else f", {medium} with medium waits"
    return f"ends after {_retries(earliest)} at the earliest{usual}, more if the waits are short: {reason}"


def _retries(count: int) -> str:
    return f"{count} retr{'y' if count == 1 else 'ies'}"
