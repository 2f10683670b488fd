"""Our own study: the documented formula loses its jitter at the maximum wait, and a fleet stays in step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from forbear import Exponential, Limits, Policy
from forbear_simulate.analysis.recovery import drain_time, peak_to_mean
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.gallery.studies import Comparison, Study
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

if TYPE_CHECKING:
    from forbear.policies import Backoff

_Jitter = Literal["documented", "equal", "full"]

FLEET = 10_000
"""The number of clients; each one calls once, and all fail at the same time."""
OUTAGE = 60.0
"""The length of the outage, in seconds."""
SERVICE = Server(workers=10, time=10 / 185, queue=20)
"""The service after the outage: 185 calls per second."""
_STEP = 0.1  # seconds
_ENDLESS = Limits(attempts=None, timeout=None, unlimited=True)


def herd(backoff: "Backoff", outage: float, duration: float) -> Scenario:
    """Return the scenario of a fleet that fails at once and retries without end; `outage` and `duration` in seconds."""
    clients = Clients(arrivals="herd", count=FLEET, policy=Policy(OSError, _ENDLESS, backoff))
    return Scenario(duration, _STEP, clients, SERVICE, (Window("refuse", 0, outage),))


def _compare() -> Iterator[Comparison]:
    drains: tuple[tuple[_Jitter, float, float], ...] = (
        ("documented", 932, 1080), ("equal", 68, 180), ("full", 64, 180),
    )  # fmt: skip
    peaks: tuple[tuple[_Jitter, float], ...] = (("documented", 17.6), ("equal", 1.01), ("full", 1.01))
    for jitter, published, duration in drains:
        scenario = herd(_waits(jitter), OUTAGE, duration)
        ours = drain_time(scenario, simulate_cohort(scenario))
        yield Comparison(f"time to drain at p99, {jitter}", published, ours or 0.0, 0.04, "s")
    for jitter, peak in peaks:
        ours = peak_to_mean(simulate_cohort(herd(_waits(jitter), 1000, 664)), 600)
        yield Comparison(f"peak-to-mean from ten minutes on, {jitter}", peak, ours or 0.0, 0.02)


def _waits(jitter: _Jitter) -> Exponential:
    return Exponential(1, 2, 32, jitter)


OWN_JITTER = Study(
    "own-jitter",
    "forbear: the documented formula against equal and full jitter, after an outage of 60 s",
    "forbear's own design notes: 932 s against 68 s (equal) and 64 s (full), and a peak of 17.6 times the mean load",
    "`min(2^n + r, maximum)` has no jitter once 2^n passes the maximum. Clients that failed together stay in step: "
    "most of each wave is refused, and comes back as a wave. Jitter that lasts keeps the service busy all the time.",
    "The notes have the figures, but not the service. A maximum of 32 s follows from the peak: five random seconds in "
    "each 32 s have 17.6 times the mean load in their fullest second.",
    "10 000 clients fail at the start of an outage of 60 s. The service can then do 185 calls per second, which makes "
    "full jitter drain in 64 s; its queue has 20 places. The other figures follow. The documented formula drains in "
    "waves of 32 s, so its time has that grain.",
    _compare,
)
