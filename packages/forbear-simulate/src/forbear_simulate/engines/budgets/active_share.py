"""`forbear.budgets.ActiveShare`, Envoy's budget, in simulations."""

from forbear.budgets import ActiveShare
from forbear_simulate.engines.budgets.base import MeanBudget, SimulatedRule, SteadyState
from forbear_simulate.engines.budgets.counts import RetryPlaces
from forbear_simulate.scenario.fields import refuse

_FEW_PLACES = 100  # of which chance leaves some free


class SimulatedActiveShare(SimulatedRule):
    """Shares of the active calls that may be retries. A mean says nothing about groups of few active calls."""

    rule: ActiveShare

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the active calls and retries of the whole fleet; ScenarioError for groups."""
        if groups > 1:
            rule, cure = "fleet for a budget of active calls in the cohort engine", "choose the exact engine"
            refuse("budget.per", rule, f"{groups:g} budgets", f"{cure}, or one budget for the whole fleet")
        return _MeanActive(self.rule)

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return one for each failure while there are fewer retries than places, or none."""
        places = max(self.rule.share * state.active, self.rule.least * groups)
        return state.failing if places > state.waiting else 0.0


class _MeanActive(MeanBudget):
    def __init__(self, rule: ActiveShare) -> None:
        self._rule = rule
        self._active = 0.0
        self._retries = 0.0
        self._places = RetryPlaces()

    def admit(self, now: float, calls: float) -> float:
        self._active += calls
        return calls

    def failed(self, now: float, first: float, retried: float) -> None:
        self._active = max(self._active - first - retried, 0.0)
        self._retries = max(self._retries - retried, 0.0)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        share, least = self._rule.share, self._rule.least
        active = self._active + 1
        places = max(int(share * active), least)
        if places <= _FEW_PLACES:
            free = self._places.free([0.0] * places + [1.0], self._retries) if retries > 0 else 0.0
            granted = min(retries * free, max(places - self._retries, 0.0))
        else:
            granted = min(retries, max(share * active - 0.5 - self._retries, 0.0))
        self._retries += granted
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        self.failed(now, first, retried)

    def sent(self, retries: float) -> None:
        self._active += retries  # not before: a retry that waits is no active call
