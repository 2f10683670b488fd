"""`forbear.SharedBudget` in the mean: one bucket, and the means of what its processes hold."""

from math import ceil, exp

from forbear.adapters import PAYMENT_SECONDS
from forbear_simulate.engines.mean_counts import FreeCalls, WindowSums
from forbear_simulate.engines.token_levels import TokenLevels
from forbear_simulate.scenario.budgets import SharedBucket

_WITH, _WITHOUT = 0, 1  # the surplus of processes with an own token, and of those that have used it
_FULL = 0.9  # of the capacity: from there on, processes pay in rarely
_ROUNDS = 8  # for one ask of each process
_MOST = 64
_NONE = 1e-9


class MeanShared(FreeCalls):
    """A SharedBudget of many equal processes, to which the calls come by chance.

    That a process remembers a refusal for a second is left out: what it does not ask for, another one gets.
    """

    def __init__(self, rule: SharedBucket, processes: float) -> None:
        self._rule = rule
        self._processes = processes
        self._tokens = rule.capacity / 10
        self._own = TokenLevels(1.0, (rule.deposit,), full=False)
        self._surplus = WindowSums(rule.window, 2)
        self._first: float = 1.0  # the shares of the processes that have not paid yet, pay often, and pay rarely
        self._often: float = 0.0
        self._rarely: float = 0.0
        self._began: float | None = None  # when there was surplus for the first time
        self._paid = 0.0  # the time of the last payments

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant retries by the own tokens, and the others by the bucket, after what the processes hand in."""
        if retries <= 0:
            return 0.0
        whole = self._own.full()
        granted = self._own.take(retries / self._processes, 1.0)
        if whole > 0:
            self._surplus.move(_WITH, _WITHOUT, now, min(granted / whole, 1.0))
        granted *= self._processes
        asks = retries - granted
        asking = (1 - self._own.full()) * self._processes
        rounds = min(ceil(_ROUNDS * asks / asking), _MOST) if asking > 0 else 0
        for _ in range(rounds):  # what one ask takes makes room for what the next one hands in
            granted += self._ask(now, asks / rounds, asking)
        return granted

    def _ask(self, now: float, asks: float, asking: float) -> float:
        """Hand in what the processes of so many asks hold, and return how many retries the bucket grants."""
        share = 1 - exp(-asks / asking)
        handed = self._own.empty(share) * self._processes + self._surplus.take(_WITHOUT, now, share)
        tokens = min(self._tokens + handed, self._rule.capacity - 1 + asks)
        granted = min(asks, tokens)
        self._tokens = tokens - granted
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Add the deposits of successes to the own tokens, and what is over to the surplus; pay in what is due."""
        successes = (first + retried) / self._processes
        own, whole = self._own.mean(), self._own.full()
        self._own.add(successes, self._rule.deposit)
        if whole < 1:
            self._surplus.move(_WITHOUT, _WITH, now, max(self._own.full() - whole, 0.0) / (1 - whole))
        surplus = successes * self._rule.deposit - (self._own.mean() - own)
        if surplus > _NONE:
            self._surplus.add(_WITH, now, surplus * self._processes)
            self._pay(now)

    def level(self) -> float:
        """Return the share of tokens left in the bucket, without those of the processes."""
        return self._tokens / self._rule.capacity

    def _pay(self, now: float) -> None:
        """Pay in the surplus of the processes that are due: within a window at first, later by what they found."""
        if self._began is None:
            self._began = self._paid = now
        passed, self._paid = now - self._paid, now
        if passed <= 0:
            return
        window = self._rule.window
        left = self._began + window - now
        due = [
            self._first * (min(passed / left, 1.0) if left > 0 else 1.0),
            self._often * min(passed / window, 1.0),
            self._rarely * min(passed / PAYMENT_SECONDS, 1.0),
        ]
        paying = sum(due)
        self._tokens = min(self._tokens + self._surplus.take(_WITH, now, paying), self._rule.capacity)
        often = paying if self._tokens < _FULL * self._rule.capacity else 0.0
        self._first -= due[0]
        self._often += often - due[1]
        self._rarely += paying - often - due[2]
