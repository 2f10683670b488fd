"""A whole run as pure arithmetic: instant failures, decided one after the other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from forbear.core.decide import Stop, decide
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT, Verdict

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff


def run(
    limits: Limits, backoff: "Backoff", draws: Iterable[float], verdict: Verdict = TRANSIENT
) -> tuple[list[float], Stop | None]:
    """The waits of a run whose attempts all fail at once, and its end (None where the draws ran out before)."""
    waits: list[float] = []
    elapsed, previous = 0.0, None
    for attempt, u in enumerate(draws, start=1):
        step = decide(
            limits, backoff, verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=True, previous=previous
        )
        if isinstance(step, Stop):
            return waits, step
        previous = step.delay
        waits.append(previous)
        elapsed += previous
    return waits, None
