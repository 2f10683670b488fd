"""The jitter study of AWS, 2015: writers that contend for one record, under five kinds of backoff."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from forbear import Constant, Exponential, Limits, Policy
from forbear_simulate.engines.contention import Contention, simulate_contention
from forbear_simulate.gallery.studies import Comparison, Study

if TYPE_CHECKING:
    from forbear.policies import Backoff

_ENDLESS = Limits(attempts=None, timeout=None, unlimited=True)
_TWICE, _CAP = 0.010, 2.0
"""The first step and the largest, in seconds: the program has a base of 5 ms and begins with its double."""

BACKOFFS: "dict[str, Backoff]" = {
    "none": Constant(0),
    "exponential": Exponential(_TWICE, 2, _CAP, "none"),
    "equal jitter": Exponential(_TWICE, 2, _CAP, "equal"),
    "full jitter": Exponential(_TWICE, 2, _CAP, "full"),
    "decorrelated": Exponential(_TWICE / 2, 2, _CAP, "decorrelated"),
}
"""The backoffs of the study by name, as backoffs of forbear."""


class _Means(NamedTuple):
    """The means of many runs: the time of the last writer, in milliseconds, and the calls (tried writes)."""

    time: float
    calls: float


PUBLISHED = {
    (10, "none"): _Means(376, 50.5),
    (10, "exponential"): _Means(3516, 50.9),
    (10, "equal jitter"): _Means(727, 42.4),
    (10, "full jitter"): _Means(453, 38.8),
    (10, "decorrelated"): _Means(431, 37.7),
    (50, "none"): _Means(1135, 687),
    (50, "exponential"): _Means(36932, 628),
    (50, "equal jitter"): _Means(4251, 347),
    (50, "full jitter"): _Means(2932, 333),
    (50, "decorrelated"): _Means(2250, 375),
    (100, "none"): _Means(2027, 2425),
    (100, "exponential"): _Means(63013, 1854),
    (100, "equal jitter"): _Means(6594, 811),
    (100, "full jitter"): _Means(4894, 796),
    (100, "decorrelated"): _Means(4516, 1002),
}
"""Means of 200 runs of the program of the study, by the number of writers and the backoff.

Their standard errors are at most 1.6 % of a time (2.7 % for 10 exponential writers), and at most 0.6 % of the calls.
"""


def contend(writers: int, backoff: str, runs: int) -> _Means:
    """Return the means of `runs` simulations of so many writers with the backoff of that name."""
    contention = Contention(writers, Policy(OSError, _ENDLESS, BACKOFFS[backoff]))
    results = [simulate_contention(contention, seed=seed) for seed in range(runs)]
    return _Means(
        1000 * sum(counts.time for counts in results) / runs,
        sum(counts.calls for counts in results) / runs,
    )


def compare(writers: int, backoff: str, runs: int, error: float, error_of_calls: float) -> Iterator[Comparison]:
    """Yield the comparisons of time and calls for one number of writers and one backoff."""
    published, ours = PUBLISHED[writers, backoff], contend(writers, backoff, runs)
    text = f"{writers} writers, {backoff}"
    yield Comparison(f"{text}: time", published.time, ours.time, error, "ms")
    yield Comparison(f"{text}: calls", published.calls, ours.calls, error_of_calls)


def _compare() -> Iterator[Comparison]:
    calls: dict[str, float] = {}
    for writers, backoff in PUBLISHED:
        runs = max(1000 // writers, 20)
        for each in compare(writers, backoff, runs, 0.1, 0.03):
            yield each
            calls[each.name] = each.ours
    half = calls["100 writers, full jitter: calls"] / calls["100 writers, exponential: calls"]
    yield Comparison("100 writers: calls with full jitter against none", 0.5, half, 0, relation="at most")


AWS_JITTER = Study(
    "aws-jitter-2015",
    "AWS 2015: jitter halves the calls of 100 writers that contend for one record",
    "M. Brooker: Exponential Backoff And Jitter, AWS Architecture Blog, 2015; "
    "github.com/aws-samples/aws-arch-backoff-simulator, src/backoff_simulator.py",
    "Backoff without jitter takes longest. Jitter spreads the writers: more than half of the calls are saved with 100 "
    "of them, and all are done in a tenth of the time.",
    "The post says that 100 writers need less than half of the calls. It shows the other figures as plots only. So "
    "they are what its published program gives: means of 200 runs of its classes, without its plots, seed 2015.",
    "The policies of forbear, by `decide`, in our model of contention; means of 20 to 100 runs. Times vary more from "
    "run to run than calls: 10 % and 3 % are about three standard errors.",
    _compare,
)
