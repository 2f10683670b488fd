"""`Budget`: the retry budget that runs share. It adds counters, a lock and the clock to a rule of the core."""

import os
from _thread import RLock  # threading.RLock itself, without the import cost of threading

from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import ClassVar, Protocol, Self, TypeVar

    T = TypeVar("T")

    class BudgetRule(Protocol):
        """The protocol of the rule by which a budget counts: TokenBucket, Throttle, Ratio or one of the user's.

        The counters are a list of ints, `state`, which `put` and `take` change in place. `now` is monotonic time in
        seconds.
        """

        def start(self) -> list[int]:
            """Return the counters of a new budget, a list of ints."""
            ...

        def put(self, state: list[int], now: float, *, retried: bool) -> None:
            """Count a success in the counters `state`; `retried` says whether it took more than one attempt."""
            ...

        def take(self, state: list[int], now: float) -> bool:
            """Count a request to retry in the counters `state` and return whether the retry is granted."""
            ...


_lock = [RLock()]  # one for all budgets; held for a few microseconds


def _unlock_in_child() -> None:
    """Replace the lock in a forked child: the thread that held it may not exist there."""
    _lock[0] = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


class Budget:
    """A retry budget: it limits retries to a share of the successes, so that they do not overload a failing service.

    `rule` says how it counts (default `TokenBucket()`). Share one between all policies that call the same service. It
    is safe to share between threads and tasks, and to use in signal handlers and `__del__`. A copy is the same budget;
    unpickling makes a new, full one. When the budget refuses a retry, the run ends at once with the reason BUDGET.
    """

    __slots__ = ("_rule", "_state")

    blocks: "ClassVar[bool]" = False
    """True for a subclass whose `take` does I/O: async loops then await `atake` instead."""

    def __init__(self, rule: "BudgetRule | None" = None) -> None:
        if rule is not None and (isinstance(rule, type) or not callable(getattr(rule, "take", None))):
            raise TypeError(f"`rule` must be a rule such as forbear.TokenBucket() or None (that one), got {rule!r}")
        self._rule: BudgetRule = TokenBucket() if rule is None else rule
        self._state = self._rule.start()

    @classmethod
    def brooker(cls, capacity: float = 10, deposit: float = 0.1) -> "Self":
        """Make Marc Brooker's token bucket, the default budget: a success adds `deposit`, a retry takes one token.

        The bucket has at most `capacity` tokens, and is full at first.
        """
        return cls(TokenBucket(capacity, deposit))

    @classmethod
    def aws(cls) -> "Self":
        """Make a budget with the retry quota of the AWS SDKs: 500 tokens, of which a retry takes 5.

        A success after retries adds 5 again, once, and a success at the first attempt adds 1. The higher cost that the
        SDKs charge after a timeout is not modelled.
        """
        return cls(TokenBucket(capacity=500, deposit=1, cost=5, refund=True))

    @classmethod
    def grpc(cls, max_tokens: float = 10, token_ratio: float = 0.1) -> "Self":
        """Make a budget with gRPC's retry throttle (gRFC A6): no retries while half of the tokens or less are left.

        Each request to retry takes one of at most `max_tokens` tokens, and a success adds `token_ratio`.
        """
        return cls(Throttle(max_tokens, token_ratio))

    @classmethod
    def ratio(cls, ratio: float = 0.2, window: float = 10, floor: float = 0) -> "Self":
        """Make a budget of `ratio` retries for each success of the last `window` seconds, plus `floor` per second."""
        return cls(Ratio(ratio, window, floor))

    def take(self) -> bool:
        """Count a request to retry: return True if the budget's rule grants it, False if it refuses it."""
        now = current.get().monotonic()
        return self._count(lambda state: self._rule.take(state, now))

    async def atake(self) -> bool:
        """Do the same as `take` without blocking the event loop; a subclass with `blocks` does its I/O here."""
        return self.take()

    def put(self, *, retried: bool) -> None:
        """Count a success; `retried` says whether it took more than one attempt."""
        now = current.get().monotonic()
        self._count(lambda state: self._rule.put(state, now, retried=retried))

    def _count(self, change: "Callable[[list[int]], T]") -> "T":
        """Change the counters in one atomic step and return the result of `change`, which gets a copy and changes it.

        The lock keeps other threads out. A signal handler or a `__del__` may call the budget again in the same thread
        before the step is done. Then `_state` is newer than the copy, and the step is repeated on the newer state.
        """
        with _lock[0]:
            while True:
                before = self._state
                after = before.copy()
                result = change(after)
                if self._state is before:  # nothing can come between this and the next line: neither calls anything
                    self._state = after
                    return result

    def __copy__(self) -> "Self":
        return self

    def __deepcopy__(self, memo: object) -> "Self":
        return self

    def __reduce__(self) -> "tuple[type[Budget], tuple[BudgetRule]]":
        return type(self), (self._rule,)

    def __repr__(self) -> str:
        return f"Budget({self._rule!r})"


class PendingDelay(float):
    """A delay in seconds that a blocking budget has not granted yet.

    `ask` asks the budget and returns an awaitable of its answer. `settle` takes the answer, and returns the delay or,
    if the budget refused, None.
    """

    __slots__ = ("ask", "settle")

    ask: "Callable[[], Awaitable[bool]]"
    settle: "Callable[[bool], float | None]"

    def __new__(
        cls, delay: float, ask: "Callable[[], Awaitable[bool]]", settle: "Callable[[bool], float | None]"
    ) -> "Self":
        """Make a pending delay of `delay` seconds, with its functions `ask` and `settle`."""
        pending = super().__new__(cls, delay)
        pending.ask, pending.settle = ask, settle
        return pending


async def granted(delay: float | None) -> float | None:
    """Return `delay` once the budget of its run has granted the retry, None if the budget refuses it.

    Async loops whose `Run` was made with `awaits=True` call it between the decision and the wait. A delay that needs no
    grant is returned as it is, and so is None.
    """
    return delay.settle(await delay.ask()) if isinstance(delay, PendingDelay) else delay
