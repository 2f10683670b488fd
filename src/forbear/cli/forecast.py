"""When retries would come: ranges from the backoff, ends from the decision itself. It prints nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forbear.core.decide import Limits, Stop, decide
from forbear.core.verdict import TRANSIENT

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff

MOST = 1000
"""Retries that are foreseen; a run whose waits may all be zero has no end."""


@dataclass(frozen=True)
class Retry:
    """Retry `number` (from 1): the range of the wait before it and of all waits up to it, in seconds.

    `certain` says that it is made whatever the draws are; all others only where the waits before were short enough.
    """

    number: int
    wait: tuple[float, float]
    total: tuple[float, float]
    certain: bool


@dataclass(frozen=True)
class End:
    """Where a run ends: after so many retries (None where they are more than MOST), and why."""

    retries: int | None
    text: str


@dataclass(frozen=True)
class Forecast:
    """The retries, and the ends of the runs with the longest, with medium and with the shortest waits."""

    retries: tuple[Retry, ...]
    earliest: End
    medium: End
    latest: End


def forecast(limits: Limits, backoff: "Backoff") -> Forecast:
    """Foresee a run all of whose attempts fail and take no time."""
    earliest, medium, latest = (_end(limits, backoff, u) for u in (1.0, 0.5, 0.0))
    ends = (end.retries for end in (latest, medium, earliest))
    shown = next((count for count in ends if count is not None), MOST)
    certain = shown if earliest.retries is None else earliest.retries
    longest = float("inf") if limits.timeout is None else float(limits.timeout)
    retries: list[Retry] = []
    low = high = None
    total_low = total_high = 0.0
    for n in range(shown):
        low, high = backoff.delay(n, 0.0, low), backoff.delay(n, 1.0, high)
        total_low += low
        total_high = min(total_high + high, longest)
        retries.append(Retry(n + 1, (low, high), (total_low, total_high), n < certain))
    return Forecast(tuple(retries), earliest, medium, latest)


def _end(limits: Limits, backoff: "Backoff", u: float) -> End:
    """The end of the run in which every draw is `u`."""
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
