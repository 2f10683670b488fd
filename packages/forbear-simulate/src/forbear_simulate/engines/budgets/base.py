"""The bases of budgets in a simulation. A rule has three forms, and `SimulatedRule` is all of them side by side.

- In the exact engine, a `FleetBudget` counts each attempt of each client.
- In the cohort engine, a `MeanBudget` counts fractions of attempts. One budget for the whole fleet, or budgets of
  groups that each have many calls in a bin, are a fluid: tokens and counts are means. Small groups, down to single
  clients, differ from each other by chance. For them the rule has shares of groups: at each level of tokens
  (`token_levels`), or with so many free places (`counts`). That the retries of one call meet one budget, one after the
  other, is left out. So single clients are given up more often than this says.
- In the long run, in a state that lasts, a budget grants a share of the retries. What a full bucket has stored is gone
  by then. The Markov chain of a verdict asks for it.
"""

from dataclasses import dataclass
from typing import Any

from forbear.verdicts import Verdict
from forbear_simulate.scenario.fields import refuse

_MANY = 5.0  # calls of one group in a bin, from which on its chance does not matter


class FleetBudget:
    """The budgets of a fleet. `client` is the number of the client, from 0, and `now` the virtual time in seconds.

    One object answers for all clients. Whether each client has its own counters, the clients of a process share theirs,
    or the whole fleet does, is up to it. Costs are in micro-tokens. This one grants all, and counts nothing.
    """

    def admit(self, client: int, now: float, u: float) -> bool:
        """Return whether a first attempt may be sent; `u` is a random number, uniform in [0, 1)."""
        return True

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        """Count a failed attempt, before the decision about a retry."""

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        """Return the cost of a retry that is granted, None if it is refused."""
        return 0

    def wait(self, client: int, now: float, delay: float) -> None:
        """Count a granted retry, which is sent in `delay` seconds."""

    def release(self, client: int, now: float, cost: int) -> None:
        """Count the end of an attempt that took `cost`, 0 for a first attempt."""

    def succeeded(self, client: int, now: float, cost: int) -> None:
        """Count a success; `cost` is that of the last retry of the call, 0 for a first attempt."""

    def level(self, clients: int) -> float | None:
        """Return the mean share of tokens left in the buckets of so many clients; None if there are no tokens."""
        return None


class _RuleBudgets(FleetBudget):
    """Budgets that count by the rule itself, one for every `clients` clients: 1, those of a process, or the fleet."""

    def __init__(self, rule: Any, clients: int = 1, *, has_tokens: bool = False) -> None:
        self._rule = rule
        self._clients = clients
        self._states: dict[int, list[int]] = {}
        self._has_tokens = has_tokens  # the first counter; the second is the most
        self._missing = 0  # micro-tokens in all buckets together
        self._admit, self._failed, self._release, self._wait = (
            getattr(rule, name, None) for name in ("admit", "failed", "release", "wait")
        )

    def admit(self, client: int, now: float, u: float) -> bool:
        return self._admit is None or self._admit(self._state(client), now, u)

    def failed(self, client: int, now: float, verdict: Verdict) -> None:
        if self._failed is not None:
            state = self._state(client)
            before = state[0]
            self._failed(state, now, verdict)
            self._missing += before - state[0]

    def take(self, client: int, now: float, verdict: Verdict) -> int | None:
        cost: int | None = self._rule.take(self._state(client), now, verdict)
        self._missing += cost or 0
        return cost

    def wait(self, client: int, now: float, delay: float) -> None:
        if self._wait is not None:
            self._wait(self._state(client), now, delay)

    def release(self, client: int, now: float, cost: int) -> None:
        if self._release is not None:
            self._release(self._state(client), now, cost)

    def succeeded(self, client: int, now: float, cost: int) -> None:
        state = self._state(client)
        before = state[0]
        self._rule.succeeded(state, now, cost)
        self._missing += before - state[0]

    def level(self, clients: int) -> float | None:
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


class MeanBudget:
    """The mean of the budgets of a fleet, in numbers of calls that need not be whole. `now` is in seconds.

    This one grants all, and counts nothing.
    """

    def admit(self, now: float, calls: float) -> float:
        """Return how many of `calls` may send their first attempt."""
        return calls

    def failed(self, now: float, first: float, retried: float) -> None:
        """Count failures of first attempts and of retries, before the decision about more retries."""

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Return how many of `retries` are granted; so many follow a throttling error, and so many a timeout."""
        return retries

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Count successes of first attempts and of retries."""

    def sent(self, retries: float) -> None:
        """Count retries that are sent, after their wait."""

    def level(self) -> float | None:
        """Return the mean share of tokens that are left, None if the budgets have no tokens."""
        return None


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A state of a fleet that lasts: rates per second, and numbers of calls."""

    attempts: float
    """The attempts per second."""
    failing: float
    """The share of attempts that fail."""
    throttled: bool
    """True if the failures are throttling errors of a full service."""
    timed_out: bool
    """True if the failures are timeouts of the clients."""
    active: float
    """The calls whose attempt is under way, without those that wait for a retry."""
    waiting: float
    """The calls that wait for a retry."""


class SimulatedRule:
    """A rule in its three forms. This one is of the user: it has the exact form only."""

    has_tokens = False
    """True if the first counter of the rule is its tokens, and the second the most of them."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def make_exact(self, clients: int, seed: int) -> FleetBudget:
        """Return new budgets for the exact engine, one for every `clients`; `seed` is for what is drawn by lot."""
        return _RuleBudgets(self.rule, clients, has_tokens=self.has_tokens)

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return new budgets for the cohort engine, one for each of `groups` equal groups of clients.

        1 is one for the whole fleet. `rate` is the rate of new calls of all groups, per second, and `step` the width of
        a bin in seconds. Raises ScenarioError, which names the exact engine, where a mean says too little.
        """
        return refuse("budget.rule", "a rule of forbear in the cohort engine", self.rule, "choose the exact engine")

    def grant_in_long_run(self, groups: float, state: SteadyState) -> float:
        """Return the share of retries that are granted in a state that lasts, from 0 to 1."""
        return min(self.count_retries(groups, state) / state.failing, 1.0) if state.failing > 0 else 1.0

    def admit_in_long_run(self, state: SteadyState) -> float:
        """Return the share of first attempts that are admitted in a state that lasts, from 0 to 1."""
        return 1.0

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return how many retries are granted for each attempt in a state that lasts, in which some attempts fail."""
        refuse("budget.rule", "a rule of forbear for a verdict", self.rule, "try triggers in the exact engine")


def is_small(groups: float, rate: float, step: float) -> bool:
    """Return whether groups have so few calls in a bin that they differ by chance."""
    return groups > 1 and rate * step / groups < _MANY
