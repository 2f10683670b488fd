"""The budgets of a fleet in a simulation: the rules that forbear's own budgets count by."""

from typing import TYPE_CHECKING, Any, Protocol

from forbear import Throttle, TokenBucket, Verdict
from forbear_simulate.engines.shared_budgets import SharedBudgets
from forbear_simulate.scenario.budgets import ClientBudget, SharedBucket
from forbear_simulate.scenario.scenario import Scenario

if TYPE_CHECKING:
    from forbear.adapters import BudgetRule


class FleetBudget(Protocol):
    """The budgets of a fleet. `client` is the number of the client, from 0, and `now` the virtual time in seconds.

    One object answers for all clients. Whether each client has its own counters, the clients of a process share theirs,
    or the whole fleet does, is up to it. Costs are in micro-tokens. It may have one more method:
    `wait(client, now, delay)` counts a granted retry, which is sent in `delay` seconds.
    """

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return whether a first attempt may be sent; `u` is a random number, uniform in [0, 1)."""
        ...

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count a failed attempt, before the decision about a retry."""
        ...

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry that is granted, None if it is refused."""
        ...

    def release(self, client: int, now: float, cost: int) -> None:
        """Count the end of an attempt that took `cost`, 0 for a first attempt."""
        ...

    def succeeded(self, client: int, now: float, cost: int) -> None:
        """Count a success; `cost` is that of the last retry of the call, 0 for a first attempt."""
        ...


class RuleBudgets:
    """Budgets of one rule, one for every `clients` clients: 1, those of a process, or the whole fleet."""

    def __init__(self, rule: "BudgetRule", clients: int = 1) -> None:
        self._rule: Any = rule
        self._clients = clients
        self._states: dict[int, list[int]] = {}
        self._has_tokens = isinstance(self._rule, TokenBucket | Throttle)  # the first counter; the second is the most
        self._missing = 0  # micro-tokens in all buckets together
        self._admit = getattr(rule, "admit", None)
        self._failed = getattr(rule, "failed", None)
        self._release = getattr(rule, "release", None)
        self._wait = getattr(rule, "wait", None)

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return whether the rule admits a first attempt; a rule that counts retries only always does."""
        return self._admit is None or self._admit(self._state(client), now, u)

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count a failure, if the rule counts failures."""
        if self._failed is not None:
            state = self._state(client)
            before = state[0]
            self._failed(state, now, verdict)
            self._missing += before - state[0]

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry in micro-tokens if the rule grants one, otherwise None."""
        cost: int | None = self._rule.take(self._state(client), now, verdict)
        self._missing += cost or 0
        return cost

    def wait(self, client: int, now: float, delay: float) -> None:
        """Count a granted retry that is sent in `delay` seconds, if the rule counts active attempts."""
        if self._wait is not None:
            self._wait(self._state(client), now, delay)

    def release(self, client: int, now: float, cost: int) -> None:
        """Count the end of an attempt, if the rule counts active ones."""
        if self._release is not None:
            self._release(self._state(client), now, cost)

    def succeeded(self, client: int, now: float, cost: int) -> None:
        """Count a success by the rule."""
        state = self._state(client)
        before = state[0]
        self._rule.succeeded(state, now, cost)
        self._missing += before - state[0]

    def level(self, clients: int) -> float | None:
        """Return the mean share of tokens left in the buckets of so many clients; None if the rule has no tokens."""
        if not self._has_tokens:
            return None
        most: int = self._rule.start()[1] * -(-clients // self._clients)
        return 1 - self._missing / most

    def _state(self, client: int) -> list[int]:
        """Return the counters of a client; they are made when they are first needed."""
        group = client // self._clients
        state = self._states.get(group)
        if state is None:
            state = self._states[group] = self._rule.start()
        return state


class BothBudgets:
    """A retry budget and a throttle: a first attempt and a retry need both of them. Costs are those of the budget."""

    def __init__(self, budget: "RuleBudgets | SharedBudgets", throttle: "RuleBudgets | SharedBudgets") -> None:
        self._budget = budget
        self._throttle = throttle

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return whether the throttle admits a first attempt, and the budget, too."""
        return self._throttle.admit(client, now, u) and self._budget.admit(client, now, u)

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count a failure in both."""
        self._budget.failed(client, now, verdict)
        self._throttle.failed(client, now, verdict)

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry that both grant. What the budget has taken is released if the throttle refuses."""
        cost = self._budget.take(client, now, verdict)
        if cost is not None and self._throttle.take(client, now, verdict) is None:
            self._budget.release(client, now, cost)
            return None
        return cost

    def wait(self, client: int, now: float, delay: float) -> None:
        """Count a granted retry in both."""
        self._budget.wait(client, now, delay)
        self._throttle.wait(client, now, delay)

    def release(self, client: int, now: float, cost: int) -> None:
        """Count the end of an attempt in both."""
        self._budget.release(client, now, cost)
        self._throttle.release(client, now, cost)

    def succeeded(self, client: int, now: float, cost: int) -> None:
        """Count a success in both."""
        self._budget.succeeded(client, now, cost)
        self._throttle.succeeded(client, now, cost)

    def level(self, clients: int) -> float | None:
        """Return the level of the retry budget."""
        return self._budget.level(clients)


def fleet_budget(scenario: Scenario, seed: int = 0) -> FleetBudget | None:
    """Return new budgets for the clients of a scenario, with its throttle if it has one; None if it has neither."""
    throttle = None if scenario.throttle is None else scenario.throttle.budget
    gates = [budgets_of(gate, scenario, seed) for gate in (scenario.budget, throttle) if gate is not None]
    return BothBudgets(*gates) if len(gates) == 2 else gates[0] if gates else None


def budgets_of(budget: ClientBudget, scenario: Scenario, seed: int = 0) -> RuleBudgets | SharedBudgets:
    """Return new budgets for the clients of a scenario, or for a layer, which counts the clients it works for.

    `seed` is for what a SharedBudget draws by lot.
    """
    rule, clients = budget.counts, budget.group(scenario.clients.count)
    return SharedBudgets(rule, clients, seed=seed) if isinstance(rule, SharedBucket) else RuleBudgets(rule, clients)
