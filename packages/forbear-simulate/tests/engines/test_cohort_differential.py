"""The two engines against each other: random large fleets, in which chance hardly matters, have one result in both."""

from dataclasses import replace
from random import Random

import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window
from forbear_testkit.rows import sampled

DURATION = 40  # seconds
COUNTS = ("first_attempts", "retries", "successes", "failures", "refusals", "timeouts", "gave_up", "wasted")

# No time is a multiple of another one, and no load is one that retries of failures make critical: at such an edge,
# chance alone decides between two results. Regular calls, a herd, and equal waits meet the same luck again each time,
# which no mean has. Nor has it the ages of single calls, which decide whether a long random wait passes the timeout.
TIMES = (0.05, 0.1, 0.3, 1.0)
LIMITS = (
    Limits(attempts=3, timeout=None), Limits(attempts=5), Limits(attempts=None, timeout=19.7, clamp=True),
    Limits(attempts=6, timeout=7.7),
)  # fmt: skip
WAITS = (
    Exponential(), Exponential(0.2, 2, 4, "equal"), Exponential(1, 2, 8, "documented"), Constant(0.5, spread=0.5),
    Constant(1),
)  # fmt: skip


def fleet(seed: int) -> Scenario:
    """Return a random scenario of a service that does 500 or 1000 requests a second."""
    chance = Random(seed)
    pick = chance.choice
    arrivals = pick(["poisson", "poisson", "regular", "closed", "herd"])
    time, capacity = pick(TIMES), pick([500, 1000])
    server = Server(
        workers=round(capacity * time), queue=pick([None, None, capacity // 2]), time=time,
        times=pick(["exponential", "constant", "lognormal"]), failure=pick([0, 0, 0.1, 0.3]),
        abandoned=pick(["done", "dropped"]),
    )  # fmt: skip
    waits = pick(WAITS[: 4 if arrivals in ("regular", "herd") else 5])
    if chance.random() < 0.2 and arrivals != "regular" and waits.delay(1, 0.0, None) != waits.delay(1, 0.5, None):
        server = replace(server, rate_limit=capacity * pick([0.5, 0.9]), burst=capacity)
    policy = Policy(OSError, pick(LIMITS[: 3 if waits in WAITS[:2] else 4]), waits)
    timeout = pick([None, 1.1, 2.6] if time < 0.3 else [None, 3.3])
    load, think = pick([0.3, 0.6, 0.8, 1.5]) * capacity, pick([0.5, 2.0])
    count = {"closed": round(load * (think + time)), "herd": 4 * capacity}.get(arrivals, 1000)
    clients = Clients(arrivals, load, count=count, think_time=think, attempt_timeout=timeout, policy=policy)
    kind = pick(["slow", "refuse", "hold", "drop"][: 3 + (timeout is not None)])
    trigger = Window(kind, 8, pick([2.0, 6.0]), factor=pick([2, 5]))
    budget = pick([None, None, None, TokenBucket(200, 0.1), Ratio(0.2)])
    return Scenario(
        DURATION, pick([0.1, 0.1, 0.25, 0.5, 1.0]), clients, server, pick([(), (trigger,)]),
        None if budget is None else ClientBudget(budget, per="fleet"),
    )  # fmt: skip


@pytest.mark.parametrize("seed", sampled(range(200), 2))
def test_random_fleets_have_one_series(seed: int) -> None:
    """Each count differs by 3 % and 4 % of the attempts at most: in all, and in each five seconds."""
    scenario = fleet(seed)
    exact, cohort = simulate_exact(scenario, seed=1), simulate_cohort(scenario)
    attempts = exact.total("first_attempts") + exact.total("retries")
    for count in COUNTS:
        error = 0.03 * exact.total(count) + 0.04 * attempts
        assert cohort.total(count) == pytest.approx(exact.total(count), abs=error), count
        for start in range(0, DURATION, 5):
            expected = pytest.approx(exact.total(count, start, start + 5), abs=error)
            assert cohort.total(count, start, start + 5) == expected, (count, start)
