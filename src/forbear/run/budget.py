"""The retry budget that runs share: a rule of the core with its counters, a lock and the clock."""

import os
from _thread import RLock  # threading.RLock itself, without the import cost of threading

from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, Self, TypeVar

    T = TypeVar("T")

    class Rule(Protocol):
        """How a budget counts."""

        def start(self) -> list[int]:
            """The counters of a new budget."""
            ...

        def put(self, state: list[int], now: float, *, retried: bool) -> None:
            """Enter a success."""
            ...

        def take(self, state: list[int], now: float) -> bool:
            """Enter a wish to retry; False refuses it."""
            ...


_lock = [RLock()]  # one for all budgets, held for some microseconds


def _unlock_in_child() -> None:
    """Replace the lock: a thread that does not exist in a forked child may have held it."""
    _lock[0] = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


class Budget:
    """Keeps retries from becoming the outage: share one between all policies that call the same service.

    Safe to share between threads and tasks, and to use in signal handlers and `__del__`. A copy is the same budget; in
    another process (pickled) it is a new, full one. A run that the budget refuses a retry ends at once with the reason
    BUDGET.
    """

    __slots__ = ("_rule", "_state")

    def __init__(self, rule: "Rule | None" = None) -> None:
        if rule is not None and (isinstance(rule, type) or not callable(getattr(rule, "take", None))):
            raise TypeError(f"`rule` must be a rule such as forbear.TokenBucket() or None (that one), got {rule!r}")
        self._rule: Rule = TokenBucket() if rule is None else rule
        self._state = self._rule.start()

    @classmethod
    def brooker(cls, capacity: float = 10, deposit: float = 0.1) -> "Self":
        """Marc Brooker's token bucket: a success puts in a tenth of a token, a retry takes one. The default budget."""
        return cls(TokenBucket(capacity, deposit))

    @classmethod
    def aws(cls) -> "Self":
        """The retry quota of the AWS SDKs: 500 tokens, a retry takes 5 and a success after it gives them back.

        A success at the first attempt puts in 1. Their dearer price for a timeout is not modelled.
        """
        return cls(TokenBucket(capacity=500, deposit=1, cost=5, refund=True))

    @classmethod
    def grpc(cls, max_tokens: float = 10, token_ratio: float = 0.1) -> "Self":
        """gRPC's retry throttle (gRFC A6): no retries while half of the tokens or more are gone."""
        return cls(Throttle(max_tokens, token_ratio))

    @classmethod
    def ratio(cls, ratio: float = 0.2, window: float = 10, floor: float = 0) -> "Self":
        """At most `ratio` retries for each success of the last `window` seconds, plus `floor` retries per second."""
        return cls(Ratio(ratio, window, floor))

    def take(self) -> bool:
        """Ask for a retry; False refuses it."""
        now = current.get().monotonic()
        return self._count(lambda state: self._rule.take(state, now))

    def put(self, *, retried: bool) -> None:
        """Enter a success; `retried` says whether it took more than one attempt."""
        now = current.get().monotonic()
        self._count(lambda state: self._rule.put(state, now, retried=retried))

    def _count(self, enter: "Callable[[list[int]], T]") -> "T":
        """Enter something in the counters, as one step.

        The lock keeps other threads out. The same thread may come back before it is done, by a signal handler or a
        `__del__`: then it counts in a state of its own, which is found to be newer, and the step is made again on it.
        """
        with _lock[0]:
            while True:
                before = self._state
                after = before.copy()
                answer = enter(after)
                if self._state is before:  # nothing can come between this and the next line: neither calls anything
                    self._state = after
                    return answer

    def __copy__(self) -> "Self":
        return self

    def __deepcopy__(self, memo: object) -> "Self":
        return self

    def __reduce__(self) -> "tuple[type[Budget], tuple[Rule]]":
        return type(self), (self._rule,)

    def __repr__(self) -> str:
        return f"Budget({self._rule!r})"
