"""`forbear.budgets.Throttle`, gRPC's retry throttle, in simulations."""

from forbear.budgets import Throttle
from forbear_simulate.engines.budgets.base import MeanBudget, SimulatedRule, SteadyState, is_small


class SimulatedThrottle(SimulatedRule):
    """Retry throttles, at first full. A retry needs more than half of the tokens after its failure has taken one."""

    rule: Throttle
    has_tokens = True

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the tokens of one group, or the shares of small groups at each level."""
        return _MeanThrottle(self.rule, groups, small=is_small(groups, rate, step))

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return one for each failure if the successes put in more than the failures take, or none."""
        return state.failing if state.failing <= (1 - state.failing) * self.rule.token_ratio else 0.0


class _MeanThrottle(MeanBudget):
    def __init__(self, rule: Throttle, groups: float, *, small: bool) -> None:
        self._rule, self._groups = rule, groups
        self._tokens = float(rule.max_tokens)  # of one group
        self._paid = 0.0  # in this bin
        self._share = 1.0  # of the retries of this bin
        self._levels = None
        if small:
            from forbear_simulate.engines.budgets.token_levels import TokenLevels  # the exact engine needs no numpy

            self._levels = TokenLevels(rule.max_tokens, (1, rule.token_ratio))

    def failed(self, now: float, first: float, retried: float) -> None:
        failures = (first + retried) / self._groups
        if self._levels is not None:
            self._levels.add(failures, -1)
            return
        # Failures take their tokens in even turns with what the successes of the bin put in.
        change, self._paid = self._paid - failures, 0.0
        above = self._tokens - (self._rule.max_tokens / 2 + 1)
        crossed = min(max(-above / change, 0.0), 1.0) if above * change < 0 else 1.0  # the part of the bin until then
        self._share = crossed if above > 0 else 1 - crossed
        self._tokens = min(max(self._tokens + change, 0.0), self._rule.max_tokens)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        if self._levels is not None:
            return retries * self._levels.share_above(self._rule.max_tokens / 2)
        return retries * self._share

    def succeeded(self, now: float, first: float, retried: float) -> None:
        successes = (first + retried) / self._groups
        if self._levels is not None:
            self._levels.add(successes, self._rule.token_ratio)
        else:
            self._paid += successes * self._rule.token_ratio

    def level(self) -> float:
        return self._tokens / self._rule.max_tokens if self._levels is None else self._levels.mean()
