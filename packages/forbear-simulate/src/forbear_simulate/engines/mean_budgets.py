"""The budgets of a fleet in the mean: the rules of forbear's budgets for retries and successes in fractions.

One budget for the whole fleet, or budgets of groups that each have many calls in a bin, are a fluid: tokens and counts
are means. Small groups, down to single clients, differ from each other by chance. For them a token bucket and gRPC's
throttle hold the share of groups at each level. A ratio takes the successes of a window as a Poisson number, and its
retries by Erlang's loss formula. That the retries of one call meet one budget, one after the other, is left out. So
single clients are given up more often than this says.
"""

from typing import TYPE_CHECKING, Any, Protocol

from forbear import ActiveShare, ClientThrottle, Ratio, RequestRatio, Throttle, TokenBucket
from forbear_simulate.engines.mean_counts import FreeCalls, MeanActive, MeanClientThrottle, MeanRatio
from forbear_simulate.engines.mean_shared import MeanShared
from forbear_simulate.engines.token_levels import TokenLevels
from forbear_simulate.scenario.budgets import SharedBucket
from forbear_simulate.scenario.fields import refuse

if TYPE_CHECKING:
    from forbear.adapters import BudgetRule
    from forbear_simulate.scenario.scenario import Scenario

_MANY = 5.0  # calls of one group in a bin, from which on its chance does not matter
_FEW = 20.0  # calls of one group in a window, below which a client throttle is mostly chance
_EXACT = "choose the exact engine, or one budget for the whole fleet"


class MeanBudget(Protocol):
    """The mean of the budgets of a fleet, in numbers of calls that need not be whole. `now` is in seconds."""

    def admit(self, now: float, calls: float) -> float:
        """Return how many of `calls` may send their first attempt."""
        ...

    def failed(self, now: float, first: float, retried: float) -> None:
        """Count failures of first attempts and of retries, before the decision about more retries."""
        ...

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Return how many of `retries` are granted; so many follow a throttling error, and so many a timeout."""
        ...

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Count successes of first attempts and of retries."""
        ...

    def sent(self, retries: float) -> None:
        """Count retries that are sent, after their wait."""
        ...

    def level(self) -> float | None:
        """Return the mean share of tokens that are left, None if the budgets have no tokens."""
        ...


class MeanBucket(FreeCalls):
    """Token buckets of one rule, at first full: one for the whole fleet, or one for each of many groups."""

    def __init__(self, rule: TokenBucket, groups: float = 1, *, small: bool = False) -> None:
        self._rule = rule
        own = (rule.cost, rule.throttled_cost, rule.timeout_cost)
        self._costs = [rule.cost if cost is None else cost for cost in own]  # of a retry, by what it follows
        self._groups = groups
        self._capacity = rule.capacity * groups
        self._tokens = self._capacity
        self._paid, self._bound = 0.0, 0.0  # since the last bin; what the retries under way have taken
        self._under_way = 0.0
        amounts = (rule.deposit, *self._costs)
        self._levels = TokenLevels(rule.capacity, amounts) if small else None
        self._now = 0.0

    def failed(self, now: float, first: float, retried: float) -> None:
        """Forget what failed retries have taken, since no success will give it back."""
        self._give_back(retried)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant retries for as long as there are tokens."""
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
        """Put in the deposit of each success, or what its retry took, up to the capacity."""
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
        """Return the mean share of tokens that are left, with those that were paid in this bin."""
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


class MeanThrottle(FreeCalls):
    """gRPC's retry throttles of one rule, at first full: one for the whole fleet, or one for each of many groups."""

    def __init__(self, rule: Throttle, groups: float = 1, *, small: bool = False) -> None:
        self._rule = rule
        self._groups = groups
        self._tokens = float(rule.max_tokens)  # of one group
        self._paid = 0.0  # in this bin
        self._share = 1.0  # of the retries of this bin
        self._levels = TokenLevels(rule.max_tokens, (1, rule.token_ratio)) if small else None

    def failed(self, now: float, first: float, retried: float) -> None:
        """Take one token for each failure, down to 0, in even turns with what the successes of the bin put in.

        A retry needs more than half of the tokens after its failure has taken one.
        """
        failures = (first + retried) / self._groups
        if self._levels is not None:
            self._levels.add(failures, -1)
            return
        change, self._paid = self._paid - failures, 0.0
        above = self._tokens - (self._rule.max_tokens / 2 + 1)
        crossed = min(max(-above / change, 0.0), 1.0) if above * change < 0 else 1.0  # the part of the bin until then
        self._share = crossed if above > 0 else 1 - crossed
        self._tokens = min(max(self._tokens + change, 0.0), self._rule.max_tokens)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant the retries of groups that have more than half of their tokens, in a bin until it is so."""
        if self._levels is not None:
            return retries * self._levels.share_above(self._rule.max_tokens / 2)
        return retries * self._share

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Add the token ratio of each success."""
        successes = (first + retried) / self._groups
        if self._levels is not None:
            self._levels.add(successes, self._rule.token_ratio)
        else:
            self._paid += successes * self._rule.token_ratio

    def level(self) -> float:
        """Return the mean share of tokens that are left."""
        return self._tokens / self._rule.max_tokens if self._levels is None else self._levels.mean()


class MeanBoth:
    """A budget and a throttle: an attempt needs both of them."""

    def __init__(self, budget: MeanBudget, throttle: MeanBudget) -> None:
        self._both = budget, throttle

    def admit(self, now: float, calls: float) -> float:
        """Return how many of the calls that the throttle admits the budget admits, too."""
        budget, throttle = self._both
        return budget.admit(now, throttle.admit(now, calls))

    def failed(self, now: float, first: float, retried: float) -> None:
        """Count failures in both."""
        for each in self._both:
            each.failed(now, first, retried)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Return how many of the retries that the budget grants the throttle grants, too."""
        budget, throttle = self._both
        return throttle.grant(now, budget.grant(now, retries, throttled, timed_out))

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Count successes in both."""
        for each in self._both:
            each.succeeded(now, first, retried)

    def sent(self, retries: float) -> None:
        """Count retries that are sent in both."""
        for each in self._both:
            each.sent(retries)

    def level(self) -> float | None:
        """Return the level of the retry budget."""
        return self._both[0].level()


def mean_budget(rule: "BudgetRule | SharedBucket", groups: float, *, rate: float, step: float) -> MeanBudget:
    """Return the mean budgets of a rule: one for each of `groups` equal groups of clients, 1 for the whole fleet.

    `rate` is the rate of new calls of all groups, per second, and `step` the width of a bin in seconds. Raises
    ScenarioError, which names the exact engine, for a rule of the user, and where a mean says too little. That is
    Envoy's budget in groups, and a client throttle in groups with fewer than 20 calls in its window.
    """
    small = groups > 1 and rate * step / groups < _MANY
    known: Any = rule
    if type(known) is SharedBucket:
        return MeanShared(known, groups)
    if type(known) is TokenBucket:
        return MeanBucket(known, groups, small=small)
    if type(known) is Throttle:
        return MeanThrottle(known, groups, small=small)
    if type(known) in (Ratio, RequestRatio):
        return MeanRatio(known, groups, small=small)
    if type(known) is ActiveShare:
        if groups > 1:
            refuse(
                "budget.per", "fleet for a budget of active calls in the cohort engine", f"{groups:g} budgets", _EXACT
            )
        return MeanActive(known)
    if type(known) is ClientThrottle:
        calls = rate * known.window / groups
        if groups > 1 and calls < _FEW:
            rule_text = (
                f"for groups with at least {_FEW:g} calls in the window of {known.window:g} s in the cohort engine"
            )
            refuse("throttle.per", rule_text, f"{calls:.3g} calls", _EXACT)
        return MeanClientThrottle(known, groups)
    return refuse("budget.rule", "a rule of forbear in the cohort engine", rule, "choose the exact engine")


def scenario_budget(scenario: "Scenario", step: float) -> MeanBudget | None:
    """Return new mean budgets for the clients of a scenario, with its throttle if it has one; None for neither.

    `step` is the width of a bin in seconds.
    """
    clients = scenario.clients
    rate = max(clients.rate, *(change.rate for change in clients.changes), 0.0)
    if clients.arrivals == "closed":
        rate = clients.count / (clients.think_time + scenario.service.time)
    elif clients.arrivals == "herd":
        rate = clients.count / max(scenario.windows[-1].end if scenario.windows else 0.0, step)
    throttle = None if scenario.throttle is None else scenario.throttle.budget
    gates = [
        mean_budget(gate.counts, max(clients.count / gate.group(clients.count), 1.0), rate=rate, step=step)
        for gate in (scenario.budget, throttle)
        if gate is not None
    ]
    return MeanBoth(*gates) if len(gates) == 2 else gates[0] if gates else None
