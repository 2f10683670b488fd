"""Rules of budgets for tests: one that admits nothing, and one that notes each call of its methods."""

from forbear.budgets import TokenBucket
from forbear.core.verdict import Verdict
from forbear.policy import Policy
from forbear.run.budget import Budget
from forbear.run.runtime import current
from forbear.run.spending import begin
from forbear.run.state import Run


class Closed(TokenBucket):
    """A rule that admits nothing."""

    __slots__ = ()

    def admit(self, state: list[int], now: float, u: float) -> bool:
        """Return False."""
        return False


class ClosedAtFirst(TokenBucket):
    """A rule that admits each first attempt but the very first."""

    __slots__ = ()

    def start(self) -> list[int]:
        """Return the counters of a bucket, then the number of first attempts."""
        return [*super().start(), 0]

    def admit(self, state: list[int], now: float, u: float) -> bool:
        """Return whether another attempt came before."""
        state[-1] += 1
        return state[-1] > 1


class Noting(TokenBucket):
    """A bucket that notes each call of its methods, and the number of attempts that are under way after it."""

    __slots__ = ("log",)

    log: list[str]

    def __init__(self, capacity: float = 10) -> None:
        super().__init__(capacity)
        self._set(log=[])

    def start(self) -> list[int]:
        """Return the counters of a bucket, then the number of active attempts."""
        return [*super().start(), 0]

    def admit(self, state: list[int], now: float, u: float) -> bool:
        """Admit every attempt."""
        self.log.append("admit")
        state[-1] += 1
        return True

    def release(self, state: list[int], now: float, cost: int) -> None:
        """Note the end of an attempt."""
        self.log.append("release")
        state[-1] -= 1

    def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
        """Take a token."""
        cost = super().take(state, now, verdict)
        self.log.append("refuse" if cost is None else "take")
        state[-1] += cost is not None
        return cost

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        """Note a success."""
        self.log.append("success")
        super().succeeded(state, now, cost)


class Noted(Budget):
    """A budget by `Noting`."""

    __slots__ = ()

    def __init__(self, capacity: float = 10) -> None:
        super().__init__(Noting(capacity))

    @property
    def log(self) -> list[str]:
        """The names of the methods that were called."""
        log: list[str] = self._rule.log
        return log

    @property
    def active(self) -> int:
        """The number of attempts under way."""
        return self._state[-1]


def counted(budget: Budget) -> tuple[int, int]:
    """Return the requests and the accepts that a client throttle (`Budget.google_sre`) has counted."""
    return sum(budget._state[1:11]), sum(budget._state[11:])


ONCE = ["admit", "release", "success"]
"""The log of one attempt that succeeds."""

TWICE = ["admit", "release", "take", "release", "success"]
"""The log of a failure and a retry that succeeds."""


def begun(policy: Policy, calls: int) -> list[Run]:
    """Begin the first attempts of so many calls."""
    runtime = current.get()
    runs = [Run(policy, "op", runtime, runtime.monotonic()) for _ in range(calls)]
    for run in runs:
        begin(run)
    return runs
