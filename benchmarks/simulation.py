"""Simulating a fleet: ten minutes in steps of a tenth of a second, without and with budgets, and a verdict."""

from functools import partial

from benchmarks.measure import Effort, race, repeated
from benchmarks.table import Table, Target
from forbear.core.backoff import Exponential
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.analysis.verdict import verdict
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.scenario import Clients, Scenario, Server, Window

_POLICY = Policy(OSError, Limits(attempts=5), Exponential())
_CLIENTS = Clients(rate=8000, count=10_000, attempt_timeout=1, policy=_POLICY)
_OUTAGE = Scenario(600, 0.1, _CLIENTS, Server(workers=1000, time=0.1), (Window("hold", 60, 60),))
_LIMIT = 1.0  # seconds


def cohort(effort: Effort) -> Table:
    """A minute without service for 8000 calls a second; the time does not depend on the number of clients."""
    budgets = {
        "no budget": None,
        "a ratio for the fleet": ClientBudget(Ratio(0.1), "fleet"),
        "a bucket for each client": ClientBudget(TokenBucket(), "client"),
    }
    samplers = {
        f"forbear: {name}": repeated(partial(simulate_cohort, _changed(budget))) for name, budget in budgets.items()
    }
    targets = tuple(Target(name, _LIMIT) for name in samplers)
    samplers["forbear: a verdict"] = repeated(partial(verdict, _OUTAGE))
    rounds = effort._replace(rounds=max(effort.rounds // 20, 1))
    return Table("simulate", "Simulate ten minutes of a fleet", "s", 1.0, race(samplers, rounds), targets=targets)


def _changed(budget: ClientBudget | None) -> Scenario:
    return Scenario(600, 0.1, _CLIENTS, _OUTAGE.service, _OUTAGE.windows, budget)
