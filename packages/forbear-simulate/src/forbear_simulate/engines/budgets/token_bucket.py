"""`forbear.budgets.TokenBucket` in simulations."""

from forbear.budgets import TokenBucket
from forbear_simulate.engines.budgets.base import MeanBudget, SimulatedRule, SteadyState, is_small


class SimulatedTokenBucket(SimulatedRule):
    """Token buckets, at first full."""

    rule: TokenBucket
    has_tokens = True

    def make_mean(self, groups: float, rate: float, step: float) -> MeanBudget:
        """Return the tokens of all buckets, or the shares of small buckets at each level."""
        return _MeanBucket(self.rule, groups, small=is_small(groups, rate, step))

    def count_retries(self, groups: float, state: SteadyState) -> float:
        """Return what the deposits of the successes pay for."""
        plain, throttled, timed_out = _costs(self.rule)
        cost = throttled if state.throttled else timed_out if state.timed_out else plain
        paid = (1 - state.failing) * self.rule.deposit
        return paid / (state.failing * cost + paid if self.rule.refund else cost)


def _costs(rule: TokenBucket) -> tuple[float, float, float]:
    """Return the costs of a retry by what it follows: a failure, a throttling error, a timeout."""
    throttled, timed_out = (rule.cost if own is None else own for own in (rule.throttled_cost, rule.timeout_cost))
    return rule.cost, throttled, timed_out


class _MeanBucket(MeanBudget):
    def __init__(self, rule: TokenBucket, groups: float, *, small: bool) -> None:
        self._rule, self._groups, self._costs = rule, groups, _costs(rule)
        self._capacity = rule.capacity * groups
        self._tokens = self._capacity
        self._paid = 0.0  # since the last bin
        self._bound = 0.0  # the tokens that the retries under way have taken
        self._under_way = 0.0
        self._levels = None
        self._now = 0.0
        if small:
            from forbear_simulate.engines.budgets.token_levels import TokenLevels  # the exact engine needs no numpy

            self._levels = TokenLevels(rule.capacity, (rule.deposit, *self._costs))

    def failed(self, now: float, first: float, retried: float) -> None:
        self._give_back(retried)  # and forget it: no success will put it back

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        plain = max(retries - throttled - timed_out, 0.0)
        parts = list(zip((plain, throttled, timed_out), self._costs, strict=True))
        wanted = sum(count * cost for count, cost in parts)
        if wanted <= 0:
            return 0.0
        if self._levels is None:
            self._settle(now, rest=True)
            share = min(self._tokens / wanted, 1.0)
            granted, taken = retries * share, wanted * share
            self._tokens -= taken
        else:
            granted = taken = 0.0
            for count, cost in parts:
                part = self._levels.take(count / self._groups, cost) * self._groups
                granted, taken = granted + part, taken + part * cost
        self._bound += taken
        self._under_way += granted
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        back = self._give_back(retried)
        again = back if self._rule.refund else retried * self._rule.deposit
        if self._levels is None:
            self._settle(now)
            self._paid += first * self._rule.deposit + again
            return
        self._levels.add(first / self._groups, self._rule.deposit)
        if retried > 0:
            self._levels.add(retried / self._groups, again / retried)

    def level(self) -> float:
        if self._levels is not None:
            return self._levels.mean()
        return min(self._tokens + self._paid, self._capacity) / self._capacity

    def _give_back(self, retried: float) -> float:
        """Take retries that ended from those under way, and return the tokens that they took."""
        share = min(retried / self._under_way, 1.0) if self._under_way > 0 else 0.0
        back = self._bound * share
        self._bound -= back
        self._under_way -= self._under_way * share
        return back

    def _settle(self, now: float, *, rest: bool = False) -> None:
        """Put in what was paid: in the bin of the payment without a cap (`rest`), since retries take it meanwhile."""
        if now != self._now or not rest:
            self._tokens = min(self._tokens, self._capacity)
        if now != self._now:
            self._tokens = min(self._tokens + self._paid, self._capacity)
            self._paid, self._now = 0.0, now
        if rest:
            self._tokens, self._paid = self._tokens + self._paid, 0.0
