"""Scenarios that both exact engines simulate, for a process of its own: it may have numba compile, or not.

Run as a script, it prints one line for each scenario whose courses are not equal, and then "done".
"""

import sys
from dataclasses import replace

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import TokenBucket
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear_simulate.budgets import fleet_budget
from forbear_simulate.compiled import simulate_compiled
from forbear_simulate.course import COUNTS, Course
from forbear_simulate.exact import simulate_exact
from forbear_simulate.scenario import ClientBudget, Clients, RateChange, Scenario, Server, Window

STEPS = Policy(OSError, Limits(5, 20), Exponential(jitter="none"))
CLAMPED = Policy(OSError, Limits(None, 7, clamp=True), Sequence([0.3, 1, 2]))
SERVER = Server(workers=3, time=0.04, times="constant")
REGULAR = Clients(arrivals="regular", rate=60, count=1, policy=STEPS, attempt_timeout=0.5)
OUT = (Window("refuse", 2, 3), Window("slow", 6, 2, 4.0), Window("hold", 9, 1), Window("drop", 11, 2))

QUOTA = ClientBudget(TokenBucket(50, 1, 14, refund=True, throttled_cost=5, timeout_cost=10))

# Nothing here is left to chance, so both engines must have the same course, bit by bit.
CERTAIN = {
    "windows, done": Scenario(20, 0.1, REGULAR, SERVER, OUT),
    "windows, dropped": Scenario(20, 0.1, REGULAR, replace(SERVER, abandoned="dropped"), OUT),
    "a queue bound": Scenario(20, 0.1, REGULAR, replace(SERVER, queue=5), OUT),
    "clamped": Scenario(20, 0.1, replace(REGULAR, policy=CLAMPED), SERVER, OUT),
    "no timeouts": Scenario(20, 0.3, replace(REGULAR, attempt_timeout=None), SERVER, OUT[:3]),
    "a budget": Scenario(20, 0.1, REGULAR, SERVER, OUT, ClientBudget(TokenBucket(5, 0.1), "fleet")),
    "the quota of AWS": Scenario(20, 0.1, REGULAR, replace(SERVER, queue=5), OUT, QUOTA),
    "a rate limit": Scenario(20, 0.1, REGULAR, replace(SERVER, rate_limit=30, burst=4), OUT),
    "failures": Scenario(20, 0.1, replace(REGULAR, rate=9), replace(SERVER, failure=1)),
    "changes": Scenario(20, 0.1, replace(REGULAR, changes=(RateChange(5, 200, 2), RateChange(9, 0))), SERVER),
    "herd": Scenario(20, 0.1, replace(REGULAR, arrivals="herd", count=300), replace(SERVER, queue=50), OUT),
}

# Enough calls that totals differ by a few percent at most.
RANDOM = {
    "open": Scenario(
        60, 1, Clients(rate=400, count=9, policy=Policy(OSError, Limits(4), Exponential(0.2)), attempt_timeout=1),
        Server(workers=60, time=0.1, failure=0.1), (Window("refuse", 20, 10),),
        ClientBudget(TokenBucket(90), "process"),
    ),
    "closed": Scenario(
        60, 1, Clients(arrivals="closed", count=900, think_time=2, policy=Policy(OSError, Limits(4), Constant(1, 1))),
        Server(workers=50, time=0.1, queue=200, times="lognormal", failure=0.05), (Window("slow", 20, 10, 3.0),),
    ),
}  # fmt: skip


def differences(scenario: Scenario) -> list[str]:
    """The lists in which the courses of both engines are not equal."""
    plain = simulate_exact(scenario, budget=fleet_budget(scenario))
    compiled = simulate_compiled(scenario)
    return [name for name in (*COUNTS, "in_system", "queued", "delays") if _list(plain, name) != _list(compiled, name)]


def totals_apart(scenario: Scenario, error: float) -> list[str]:
    """The totals that differ by more than `error`, a share, in means of some seeds."""
    apart = []
    plain = [simulate_exact(scenario, seed=seed, budget=fleet_budget(scenario)) for seed in range(3)]
    compiled = [simulate_compiled(scenario, seed=seed) for seed in range(3)]
    for name in (*COUNTS, "in_system", "queued", "delays"):
        sums = [sum(sum(_list(course, name)) for course in courses) / 3 for courses in (plain, compiled)]
        if abs(sums[0] - sums[1]) > error * max(sums) + 30:
            apart.append(f"{name} {sums}")
    return apart


def _list(course: Course, name: str) -> list[float]:
    values: list[float] = getattr(course, name)
    return values


if __name__ == "__main__":
    for title, certain in CERTAIN.items():
        if lists := differences(certain):
            print(title, *lists)  # a script
    for title, chance in RANDOM.items() if "random" in sys.argv else ():
        if totals := totals_apart(chance, 0.06):
            print(title, *totals)  # a script
    print("done")  # a script
