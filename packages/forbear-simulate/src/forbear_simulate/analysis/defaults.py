"""The policies that forbear ships, in three scenarios of a fleet: an outage, a brown-out and a herd.

The goals say when a policy is polite enough for a large fleet. `docs/fleet.md` has the table of all figures.
"""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any

from forbear import Limits, Policy
from forbear.adapters import find_policy, policy_names
from forbear_simulate.analysis.recovery import drain_time, peak_to_mean
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

if TYPE_CHECKING:
    from forbear.policies import Backoff

FLEET = 10_000
BUDGET = ClientBudget(per="process", clients=200)
"""The recommended budgets: the default `forbear.budgets.Budget()` in each of 50 processes."""

OUTAGE = Window("refuse", 0, 60)
LATE = 600.0
"""Ten minutes in seconds: from then on, the load of a lasting outage has to be even."""

SERVICE = Server(workers=10, time=10 / 185, queue=20)
"""The service: 185 calls per second, and few places to wait."""
BROWN_OUT = Window("slow", 30, 300, factor=1.5)
LOAD = SERVICE.capacity / 1.5 * 1.2
"""The load of the brown-out: 148 calls per second, 1.2 times what the slow service can do."""

BEST_DRAIN = 64.0
"""The shortest drain time at p99 in this outage, in seconds: that of full jitter with a maximum of 32 s."""
GOALS = {"peak": 1.1, "drain": 1.5 * BEST_DRAIN, "amplification": 1.1}
"""The most that a policy may have: peak-to-mean load, seconds to drain at p99, and amplification with a budget."""

_ENDLESS = Limits(attempts=None, timeout=None, unlimited=True)
_STEP = 0.1  # seconds
_LONG = 2400.0  # seconds: by then, the fleet has drained with every policy that is shipped
_USUAL = 240.0


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    """The figures of one policy. Times are in seconds, and shares are of all calls.

    The first two are of the waits alone, without limits, as if every caller began again at once.
    """

    peak: float
    """The most attempts in a second over their mean, from ten minutes of an outage on."""
    drain: float
    """The time from the end of an outage of 60 s until 99 % of the fleet has succeeded."""
    outage_gave_up: float
    """The share that gives up in that outage, by the limits."""
    brown_out: float
    """Attempts for each call that begins in the brown-out."""
    brown_out_budget: float
    """The same with the budgets."""
    herd: float
    """The time until 99 % of a herd at a healthy service has ended, by success or by the limits."""
    herd_gave_up: float
    """The share of the herd that gives up, by the limits."""
    herd_budget: float
    """Attempts for each call of the herd, with the budgets."""

    @property
    def misses(self) -> tuple[str, ...]:
        """The goals that the policy misses, by name; figures count as they are printed."""
        reached = {
            "peak": round(self.peak, 2),
            "drain": round(self.drain),
            "amplification": round(max(self.brown_out_budget, self.herd_budget), 2),
        }
        return tuple(name for name, figure in reached.items() if figure > GOALS[name])


def list_policies() -> dict[str, Policy]:
    """Return all policies that forbear ships, by the names that commands and scenarios know."""
    return {name: policy for name in policy_names() if (policy := find_policy(name)) is not None}


def figures_of_policy(policy: Policy) -> PolicyFigures:
    """Simulate a policy in all scenarios and return its figures; it takes two or three seconds."""
    waits: Any = policy.backoff
    return _figures(policy.limits, waits)


def waits_alone(backoff: "Backoff") -> tuple[float, float]:
    """Return the peak-to-mean load and the drain time of a backoff without limits: `peak` and `drain`."""
    free = Policy(OSError, _ENDLESS, backoff)
    longest = backoff.delay(64, 0.5, None)
    end = LATE + max(2 * longest, 10.0)
    late = peak_to_mean(simulate_cohort(_herd(free, end, Window("refuse", 0, end))), LATE)
    drained: float | None = inf
    for duration in (_USUAL, _LONG):
        if drained == inf:
            outage = _herd(free, duration, OUTAGE)
            drained = drain_time(outage, simulate_cohort(outage))
    return (inf if late is None else late), (inf if drained is None else drained)


@cache
def _figures(limits: Limits, backoff: Any) -> PolicyFigures:
    policy = Policy(OSError, limits, backoff)
    peak, drain = waits_alone(backoff)
    herd = simulate_cohort(_herd(policy, 900))
    return PolicyFigures(
        peak=peak,
        drain=drain,
        outage_gave_up=simulate_cohort(_herd(policy, 900, OUTAGE)).total("gave_up") / FLEET,
        brown_out=_amplification(simulate_cohort(brown_out(policy))),
        brown_out_budget=_amplification(simulate_cohort(brown_out(policy, BUDGET))),
        herd=_end(herd),
        herd_gave_up=herd.total("gave_up") / FLEET,
        herd_budget=simulate_cohort(_herd(policy, 900, budget=BUDGET)).amplification,
    )


def brown_out(policy: Policy, budget: ClientBudget | None = None) -> Scenario:
    """Return the scenario of the brown-out: five minutes in which the load is 1.2 times the capacity, then ten more."""
    clients = Clients(rate=LOAD, count=FLEET, policy=policy)
    return Scenario(BROWN_OUT.end + 600, _STEP, clients, SERVICE, (BROWN_OUT,), budget)


def _herd(policy: Policy, duration: float, *windows: Window, budget: ClientBudget | None = None) -> Scenario:
    clients = Clients(arrivals="herd", count=FLEET, policy=policy)
    return Scenario(duration, _STEP, clients, SERVICE, windows, budget)


def _amplification(series: TimeSeries) -> float:
    """Return the attempts for each call of the brown-out, with the retries that follow after it."""
    return 1 + series.total("retries", BROWN_OUT.start) / series.total("first_attempts", BROWN_OUT.start, BROWN_OUT.end)


def _end(series: TimeSeries) -> float:
    """Return when 99 % of the fleet has succeeded or given up, in seconds; infinity if it has not."""
    ended = accumulate(a + b for a, b in zip(series.successes, series.gave_up, strict=True))
    return next(((i + 1) * series.step for i, calls in enumerate(ended) if calls >= 0.99 * FLEET), inf)
