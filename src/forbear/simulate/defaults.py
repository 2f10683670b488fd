"""The policies that forbear ships, in three scenarios of a fleet: an outage, a brown-out and a herd.

The goals say when a policy is polite enough for a large fleet. `docs/fleet.md` has the table of all figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from forbear.core.decide import Limits
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import registry
from forbear.simulate.cohort import MeanBucket, simulate_cohort
from forbear.simulate.course import Course
from forbear.simulate.policies import policy_named
from forbear.simulate.scenario import Clients, Scenario, Server, Window

if TYPE_CHECKING:
    from forbear.protocols import Backoff

FLEET = 10_000
PROCESSES = 50
"""The processes of the fleet; each one has a budget of its own, the default `Budget()`."""
OUTAGE = 60.0
SERVICE = Server(workers=10, time=10 / 185, queue=20)
"""The service: 185 calls per second, and few places to wait."""
BROWN_OUT = Window("slow", 30, 300, factor=1.5)
LOAD = 185 / 1.5 * 1.2
"""The load of the brown-out: 148 calls per second, 1.2 times what the slow service can do."""

BEST_DRAIN = 64.0
GOALS = {"peak": 1.1, "drain": 1.5 * BEST_DRAIN, "amplification": 1.1}
"""The most that a policy may have: peak-to-mean, seconds to drain at p99, and amplification with a budget."""

_ENDLESS = Limits(attempts=None, timeout=None, unlimited=True)
_STEP = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """The figures of one policy. Times are in seconds; shares are of all calls.

    The first two are of the waits alone, without limits, as if every caller called again at once.
    """

    peak: float
    """The peak-to-mean load in a second, from ten minutes of an outage on."""
    drain: float
    """The time from the end of an outage of 60 s until 99 % of the fleet has succeeded."""
    gave_up: float
    """The share that gives up in that outage, by the limits."""
    brown_out: float
    """Attempts for each call in the brown-out."""
    brown_out_budget: float
    """The same with the budgets."""
    recovery: float
    """The time from the end of the brown-out until retries are below 1 % of the load."""
    herd: float
    """The time until 99 % of a herd at a healthy service has succeeded, or has given up by the limits."""
    herd_gave_up: float
    """The share of the herd that gives up, by the limits."""
    herd_budget: float
    """Attempts for each call of the herd, with the budgets."""

    @property
    def misses(self) -> tuple[str, ...]:
        """The goals that the policy misses, by name."""
        amplification = max(self.brown_out_budget, self.herd_budget)
        figures = {"peak": self.peak, "drain": self.drain, "amplification": amplification}
        return tuple(name for name, figure in figures.items() if figure > GOALS[name] + 0.005)


def shipped() -> dict[str, Policy]:
    """Return all policies that forbear ships, by the names that commands and scenarios know."""
    return {name: policy_named("name", name) for name in _names()}


def figures(policy: Policy) -> PolicyFigures:
    """Simulate a policy in all three scenarios and return its figures; it takes one or two seconds."""
    return _figures(policy.limits, policy.backoff)


def _names() -> Iterator[str]:
    yield "default"
    for service in registry.names():
        yield from (service if name == "policy" else f"{service}.{name}" for name in registry.profiles(service))
    yield from PRESETS


@cache
def _figures(limits: Limits, backoff: "Backoff") -> PolicyFigures:
    outage, free = (Window("refuse", 0, OUTAGE),), Policy(OSError, _ENDLESS, backoff)
    limited = Policy(OSError, limits, backoff)
    longest = backoff.delay(64, 0.5, None)
    measured = 600 + max(2 * longest, 10)
    endless = _herd(free, measured, (Window("refuse", 0, measured),))
    drained = _herd(free, 1800 if longest < 100 else 3600, outage)
    given = _herd(limited, 900, outage)
    herd = _herd(limited, 900)
    poisson = Clients(rate=LOAD, count=FLEET, policy=limited)
    brown = Scenario(BROWN_OUT.end + 900, _STEP, poisson, SERVICE, (BROWN_OUT,))
    slow = simulate_cohort(brown)
    return PolicyFigures(
        peak_to_mean_load(endless, 600),
        time_of(drained, 0.99, ("successes",)) - OUTAGE,
        given.total("gave_up") / FLEET,
        _amplification(slow),
        _amplification(simulate_cohort(brown, budget=_budgets())),
        _recovery(slow),
        time_of(herd, 0.99, ("successes", "gave_up")),
        herd.total("gave_up") / FLEET,
        simulate_cohort(_herd_scenario(limited, 900), budget=_budgets()).amplification,
    )


def _budgets() -> MeanBucket:
    """Return the mean of the default budgets of all processes."""
    return MeanBucket(capacity=10 * PROCESSES)


def _herd(policy: Policy, duration: float, windows: tuple[Window, ...] = ()) -> Course:
    return simulate_cohort(_herd_scenario(policy, duration, windows))


def _herd_scenario(policy: Policy, duration: float, windows: tuple[Window, ...] = ()) -> Scenario:
    clients = Clients(arrivals="herd", count=FLEET, policy=policy)
    return Scenario(duration, _STEP, clients, SERVICE, windows)


def time_of(course: Course, share: float, ends: tuple[str, ...]) -> float:
    """Return when a share of the fleet has come to one of these ends, in seconds; infinity if it has not."""
    counts: list[list[float]] = [getattr(course, end) for end in ends]
    done = accumulate(map(sum, zip(*counts, strict=True)))
    return next(((i + 1) * course.step for i, calls in enumerate(done) if calls >= share * FLEET), float("inf"))


def peak_to_mean_load(course: Course, start: float) -> float:
    """Return the largest load of any second as a multiple of the mean load, from `start` (in seconds) on."""
    width = round(1 / course.step)
    first = round(start / course.step)
    load = [first + again for first, again in zip(course.first_attempts, course.retries, strict=True)][first:]
    sums = [sum(load[i : i + width]) for i in range(0, len(load) - width + 1, width)]
    return max(sums) * len(sums) / sum(sums)


def _amplification(course: Course) -> float:
    """Return the attempts for each call, over the brown-out and what follows from it."""
    first = course.total("first_attempts", BROWN_OUT.start, BROWN_OUT.end)
    return 1 + course.total("retries", BROWN_OUT.start) / first


def _recovery(course: Course) -> float:
    """Return the seconds from the end of the brown-out to the last second with more than 1 % of retries."""
    last = round(BROWN_OUT.end / course.step)
    for i in range(last, course.bins):
        if course.retries[i] > 0.01 * LOAD * course.step:
            last = i
    return last * course.step - BROWN_OUT.end
