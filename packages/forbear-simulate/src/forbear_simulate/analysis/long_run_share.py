"""The share of retries that a budget grants in a state that lasts, for the Markov chain."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forbear import ActiveShare, ClientThrottle, Ratio, RequestRatio, Throttle, TokenBucket
from forbear_simulate.scenario.budgets import SharedBucket
from forbear_simulate.scenario.fields import refuse

if TYPE_CHECKING:
    from forbear.adapters import BudgetRule


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


def steady_grant(rule: "BudgetRule | SharedBucket", groups: float, state: SteadyState) -> float:
    """Return the share of retries that budgets of this rule grant for long, from 0 to 1.

    What a full bucket has stored is gone by then. Raises ScenarioError for a rule of the user.
    """
    known: Any = rule
    failing, working = state.failing, 1 - state.failing
    if failing <= 0:
        return 1.0
    retries: float  # granted, for each attempt
    if isinstance(known, SharedBucket):
        retries = working * known.deposit
    elif isinstance(known, TokenBucket):
        cost = known.throttled_cost if state.throttled else known.timeout_cost if state.timed_out else None
        cost = known.cost if cost is None else cost
        spent = failing * cost + working * known.deposit if known.refund else cost
        retries = working * known.deposit / spent
    elif isinstance(known, Throttle):
        retries = failing if failing <= working * known.token_ratio else 0.0
    elif isinstance(known, RequestRatio):
        retries = known.ratio / (1 + known.ratio) + _floor(known, groups, state)
    elif isinstance(known, Ratio):
        retries = known.ratio * working + _floor(known, groups, state)
    elif isinstance(known, ActiveShare):
        free = known.share * state.active > state.waiting or known.least * groups > state.waiting
        retries = failing if free else 0.0
    elif isinstance(known, ClientThrottle):
        retries = failing if known.k * working >= 1 else 0.0
    else:
        refuse("budget.rule", "a rule of forbear for a verdict", rule, "try triggers in the exact engine")
    return min(retries / failing, 1.0)


def steady_admission(rule: "BudgetRule | SharedBucket", state: SteadyState) -> float:
    """Return the share of first attempts that a budget of this rule admits for long, from 0 to 1."""
    return min(rule.k * (1 - state.failing), 1.0) if isinstance(rule, ClientThrottle) else 1.0


def _floor(rule: Ratio, groups: float, state: SteadyState) -> float:
    return rule.floor * groups / state.attempts if state.attempts > 0 else 0.0
