"""The budgets of a scenario in either engine: those of its clients, with its throttle, and those of a layer."""

from typing import TYPE_CHECKING

from forbear.budgets import ActiveShare, ClientThrottle, Ratio, RequestRatio, Throttle, TokenBucket
from forbear.verdicts import Verdict
from forbear_simulate.engines.budgets.active_share import SimulatedActiveShare
from forbear_simulate.engines.budgets.base import FleetBudget, MeanBudget, SimulatedRule
from forbear_simulate.engines.budgets.client_throttle import SimulatedClientThrottle
from forbear_simulate.engines.budgets.ratio import SimulatedRatio, SimulatedRequestRatio
from forbear_simulate.engines.budgets.shared_bucket import SimulatedSharedBucket
from forbear_simulate.engines.budgets.throttle import SimulatedThrottle
from forbear_simulate.engines.budgets.token_bucket import SimulatedTokenBucket
from forbear_simulate.scenario.budgets import ClientBudget, SharedBucket
from forbear_simulate.scenario.scenario import Scenario

if TYPE_CHECKING:
    from forbear.adapters import BudgetRule

RULES: dict[type, type[SimulatedRule]] = {
    ActiveShare: SimulatedActiveShare,
    ClientThrottle: SimulatedClientThrottle,
    Ratio: SimulatedRatio,
    RequestRatio: SimulatedRequestRatio,
    SharedBucket: SimulatedSharedBucket,
    Throttle: SimulatedThrottle,
    TokenBucket: SimulatedTokenBucket,
}
"""The rules that have all three forms."""


def simulate_rule(rule: "BudgetRule | SharedBucket") -> SimulatedRule:
    """Return a rule in its three forms; one of the user, also a subclass of ours, has the exact form only."""
    return RULES.get(type(rule), SimulatedRule)(rule)


def make_exact_budgets(budget: ClientBudget, clients: int, seed: int = 0) -> FleetBudget:
    """Return new budgets for so many clients in the exact engine; a layer counts the clients it works for."""
    return simulate_rule(budget.counts).make_exact(budget.group(clients), seed)


def make_fleet_budget(scenario: Scenario, seed: int = 0) -> FleetBudget | None:
    """Return new budgets for the clients of a scenario in the exact engine; None without budget and throttle."""
    gates = [make_exact_budgets(each, scenario.clients.count, seed) for each in scenario.budgets]
    return _BothBudgets(*gates) if len(gates) == 2 else gates[0] if gates else None


def make_mean_budget(scenario: Scenario, step: float) -> MeanBudget | None:
    """Return new budgets for the clients of a scenario in the cohort engine; None without budget and throttle.

    `step` is the width of a bin in seconds. Raises ScenarioError for a rule of the user, and where a mean says too
    little.
    """
    clients = scenario.clients
    rate = max(clients.rate, *(change.rate for change in clients.changes), 0.0)
    if clients.arrivals == "closed":
        rate = clients.count / (clients.think_time + scenario.service.time)
    elif clients.arrivals == "herd":
        rate = clients.count / max(scenario.windows[-1].end if scenario.windows else 0.0, step)
    gates = [
        simulate_rule(each.counts).make_mean(max(clients.count / each.group(clients.count), 1.0), rate, step)
        for each in scenario.budgets
    ]
    return _MeanBoth(*gates) if len(gates) == 2 else gates[0] if gates else None


class _BothBudgets(FleetBudget):
    """A retry budget and a throttle: a first attempt and a retry need both of them. Costs are those of the budget."""

    def __init__(self, budget: FleetBudget, throttle: FleetBudget) -> None:
        self._budget, self._throttle = budget, throttle

    def admit(self, client: int, now: float, u: float) -> bool:
        return self._throttle.admit(client, now, u) and self._budget.admit(client, now, u)

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        self._budget.failed(client, now, verdict)
        self._throttle.failed(client, now, verdict)

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        cost = self._budget.take(client, now, verdict)
        if cost is not None and self._throttle.take(client, now, verdict) is None:
            self._budget.release(client, now, cost)
            return None
        return cost

    def wait(self, client: int, now: float, delay: float) -> None:
        self._budget.wait(client, now, delay)
        self._throttle.wait(client, now, delay)

    def release(self, client: int, now: float, cost: int) -> None:
        self._budget.release(client, now, cost)
        self._throttle.release(client, now, cost)

    def succeeded(self, client: int, now: float, cost: int) -> None:
        self._budget.succeeded(client, now, cost)
        self._throttle.succeeded(client, now, cost)

    def level(self, clients: int) -> float | None:
        return self._budget.level(clients)


class _MeanBoth(MeanBudget):
    """A retry budget and a throttle in the mean."""

    def __init__(self, budget: MeanBudget, throttle: MeanBudget) -> None:
        self._budget, self._throttle = budget, throttle

    def admit(self, now: float, calls: float) -> float:
        return self._budget.admit(now, self._throttle.admit(now, calls))

    def failed(self, now: float, first: float, retried: float) -> None:
        self._budget.failed(now, first, retried)
        self._throttle.failed(now, first, retried)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        return self._throttle.grant(now, self._budget.grant(now, retries, throttled, timed_out))

    def succeeded(self, now: float, first: float, retried: float) -> None:
        self._budget.succeeded(now, first, retried)
        self._throttle.succeeded(now, first, retried)

    def sent(self, retries: float) -> None:
        self._budget.sent(retries)
        self._throttle.sent(retries)

    def level(self) -> float | None:
        return self._budget.level()
