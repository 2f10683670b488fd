"""`forbear.budgets.ClientThrottle`, Google SRE's client throttle, in simulations."""

from forbear.budgets import ClientThrottle
from forbear_simulate.engines.budgets.base import MeanBudget, SimulatedRule, SteadyState
from forbear_simulate.engines.budgets.counts import WindowSums
from forbear_simulate.scenario.fields import refuse

_FEW = 20.0  # calls of one group in a window, below which a throttle is mostly chance


class SimulatedClientThrottle(SimulatedRule):
    """Client throttles. A mean says nothing about groups with few calls."""

    rule: ClientThrottle

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the requests and accepts of all groups; ScenarioError for groups with few calls."""
        window = self.rule.window
        calls = rate * window / groups
        if groups > 1 and calls < _FEW:
            rule = f"for groups with at least {_FEW:g} calls in the window of {window:g} s in the cohort engine"
            cure = "choose the exact engine, or one budget for the whole fleet"
            refuse("throttle.per", rule, f"{calls:.3g} calls", cure)
        return _MeanClientThrottle(self.rule, groups)

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return one for each failure while every attempt is admitted, or none."""
        return state.failing if self.rule.k * (1 - state.failing) >= 1 else 0.0

    def admit_in_long_run(self, state: SteadyState) -> float:
        """Return k attempts for each that the service accepts."""
        return min(self.rule.k * (1 - state.failing), 1.0)


class _MeanClientThrottle(MeanBudget):
    def __init__(self, rule: ClientThrottle, groups: float) -> None:
        self._rule, self._groups = rule, groups
        self._counts = WindowSums(rule.window, 2)  # requests, accepts
        self._failures = 0.0  # of the last bin

    def admit(self, now: float, calls: float) -> float:
        half = (
            calls / 2 * self._share_refused(now, 0.0)
        )  # what is refused counts at once, so take the middle of the bin
        refused = calls * self._share_refused(now, half)
        self._counts.add(0, now, refused)
        return calls - refused

    def failed(self, now: float, first: float, retried: float) -> None:
        self._failures = first + retried
        self._counts.add(0, now, self._failures)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        # The failures of this bin come one after the other, and retries are granted until the rule would refuse.
        surplus = self._counts.total(0, now) - self._rule.k * self._counts.total(1, now)
        if surplus <= 0 or self._counts.total(0, now) < self._rule.least * self._groups or self._failures <= 0:
            return retries
        return retries * max(1 - surplus / self._failures, 0.0)

    def succeeded(self, now: float, first: float, retried: float) -> None:
        for row in (0, 1):
            self._counts.add(row, now, first + retried)

    def _share_refused(self, now: float, more: float) -> float:
        """Return the share of calls that one throttle refuses, with so many `more` requests in all of them."""
        requests = (self._counts.total(0, now) + more) / self._groups
        if requests < self._rule.least:
            return 0.0
        return max(requests - self._rule.k * self._counts.total(1, now) / self._groups, 0.0) / (requests + 1)
