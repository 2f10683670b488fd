"""`forbear.budgets.Ratio`, and Finagle's `RequestRatio`, for which first attempts pay, in simulations."""

from math import exp

from forbear.budgets import Ratio
from forbear_simulate.engines.budgets.base import MeanBudget, SimulatedRule, SteadyState, is_small
from forbear_simulate.engines.budgets.counts import RetryPlaces, WindowSums


class SimulatedRatio(SimulatedRule):
    """Ratios of retries to successes in a window."""

    rule: Ratio
    firsts_pay = False

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the counts of all windows; small groups have a Poisson number of payments."""
        return _MeanRatio(self.rule, groups, small=is_small(groups, rate, step), firsts_pay=self.firsts_pay)

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return the ratio of what pays, and the floor."""
        floor = self.rule.floor * groups / state.attempts if state.attempts > 0 else 0.0
        return self._ratio(state) + floor

    def _ratio(self, state: SteadyState) -> float:
        return self.rule.ratio * (1 - state.failing)


class SimulatedRequestRatio(SimulatedRatio):
    """Ratios of retries to first attempts in a window."""

    firsts_pay = True

    def _ratio(self, state: SteadyState) -> float:
        return self.rule.ratio / (1 + self.rule.ratio)


class _MeanRatio(MeanBudget):
    def __init__(self, rule: Ratio, groups: float, *, small: bool, firsts_pay: bool) -> None:
        self._rule, self._groups = rule, groups
        self._small, self._firsts = small, firsts_pay
        self._counts = WindowSums(rule.window, 2)  # what pays, retries
        self._places = RetryPlaces()

    def admit(self, now: float, calls: float) -> float:
        if self._firsts:
            self._counts.add(0, now, calls)
        return calls

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        counts, rule = self._counts, self._rule
        paid, sent = counts.total(0, now) / self._groups, counts.total(1, now) / self._groups
        if self._small:
            granted = retries * self._places.free(self._chances(paid), sent) if retries > 0 else 0.0
        else:
            granted = min(retries, max(rule.ratio * paid + rule.floor * rule.window - sent, 0.0) * self._groups)
        counts.add(1, now, granted)
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        if not self._firsts:
            self._counts.add(0, now, first + retried)

    def _chances(self, paid: float) -> list[float]:
        """Return the chance of each number of places in a window, for Poisson payments of this mean."""
        own = 1 if self._firsts else 0  # the call that wants to retry has paid, too
        most = int(paid + 8 * paid**0.5 + 8)
        chances = [0.0] * (self._count_places(most + own) + 1)
        chance = exp(-paid)
        for count in range(most + 1):
            chances[self._count_places(count + own)] += chance
            chance *= paid / (count + 1)
        return chances

    def _count_places(self, paid: int) -> int:
        return int(self._rule.ratio * paid + self._rule.floor * self._rule.window + 1e-9)
