"""`Budget`: the retry budget that runs share. It adds counters, a lock and the clock to a rule of the core."""

import os
from _thread import RLock  # threading.RLock itself, without the import cost of threading

from forbear.core.budget import MICRO, Ratio, Throttle, TokenBucket
from forbear.core.verdict import TRANSIENT
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, ClassVar, Protocol, Self, TypeVar

    from forbear.core.verdict import Verdict
    from forbear.run.host_budgets import HostBudgets

    T = TypeVar("T")

    class BudgetRule(Protocol):
        """The protocol of the rule by which a budget counts: TokenBucket, Throttle, Ratio or one of the user's.

        The counters are a list of ints, `state`, which the methods change in place. `now` is monotonic time in seconds,
        `cost` a number of micro-tokens. A rule may have three more methods. `admit(state, now, u) -> bool` counts a
        first attempt and returns whether it may be sent; `u` is a random number, uniform in [0, 1). `release(state,
        now, cost)` counts the end of an attempt, which took `cost` (0 for a first one). `failed(state, now, verdict)`
        counts a failure, after `release` and whether or not a retry follows.
        """

        def start(self) -> list[int]:
            """Return the counters of a new budget, a list of ints."""
            ...

        def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
            """Count a request to retry after `verdict` in `state`: return the retry's cost, None to refuse it."""
            ...

        def succeeded(self, state: list[int], now: float, cost: int) -> None:
            """Count a success in `state`; `cost` is what its last retry took, 0 for a success at the first attempt."""
            ...

    class EarlierRule(Protocol):
        """The protocol of a rule before rules knew verdicts and costs; a budget still takes one."""

        def start(self) -> list[int]:
            """Return the counters of a new budget, a list of ints."""
            ...

        def put(self, state: list[int], now: float, *, retried: bool) -> None:
            """Count a success in the counters `state`; `retried` says whether it took more than one attempt."""
            ...

        def take(self, state: list[int], now: float) -> bool:
            """Count a request to retry in the counters `state` and return whether the retry is granted."""
            ...


_VARARGS = 0x04  # CO_VARARGS


class _Adapted:
    """An `EarlierRule` with the methods of a `BudgetRule`; each of its retries costs one token."""

    __slots__ = ("_rule",)

    def __init__(self, rule: "EarlierRule") -> None:
        self._rule = rule

    def start(self) -> list[int]:
        return self._rule.start()

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        return MICRO if self._rule.take(state, now) else None

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        self._rule.put(state, now, retried=cost > 0)


def _adapted(rule: "Any") -> "BudgetRule":
    """Return `rule` as a `BudgetRule`; raise TypeError for what is no rule, with the names of the missing methods."""
    if isinstance(rule, type) or not callable(getattr(rule, "take", None)):
        raise TypeError(f"`rule` must be a rule such as forbear.TokenBucket() or None (that one), got {rule!r}")
    if callable(getattr(rule, "succeeded", None)) and callable(getattr(rule, "start", None)):
        code = getattr(rule.take, "__code__", None)
        if hasattr(rule, "put") or (code is not None and code.co_argcount < 4 and not code.co_flags & _VARARGS):
            raise TypeError(
                "`rule` must not mix two contracts: rename put(state, now, *, retried) to succeeded(state, now, cost), "
                f"and let take(state, now, verdict) return the cost or None, got {rule!r}"
            )
        return rule  # type: ignore[no-any-return]
    if callable(getattr(rule, "put", None)) and callable(getattr(rule, "start", None)):
        return _Adapted(rule)
    raise TypeError(
        "`rule` must have the methods start(), take(state, now, verdict) and succeeded(state, now, cost), "
        f"got {rule!r}; add the missing ones, as in forbear.TokenBucket"
    )


_lock = [RLock()]  # one for all budgets; held for a few microseconds


_forks = [0]  # how many forks lie between the first process and this one


def _unlock_in_child() -> None:
    """Replace the lock in a forked child: the thread that held it may not exist there. Count the fork."""
    _lock[0] = RLock()
    _forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


class Budget:
    """A retry budget: it limits retries to a share of the successes, so that they do not overload a failing service.

    `rule` says how it counts (default `TokenBucket()`). Share one between all policies that call the same service. It
    is safe to share between threads and tasks, and to use in signal handlers and `__del__`. A copy is the same budget;
    unpickling makes a new, full one. When the budget refuses a retry, the run ends at once with the reason BUDGET. In a
    forked child, a budget that counts active attempts is new, too.
    """

    __slots__ = ("__weakref__", "_admit", "_counts", "_failed", "_forked", "_release", "_rule", "_state")

    by_host: "ClassVar[bool]" = False
    """True for the budgets of `per_host`, which have the counters."""

    blocks: "ClassVar[bool]" = False
    """True for a subclass whose `take` does I/O: async loops then await `atake` instead."""

    _is_custom: "ClassVar[bool]" = False
    """True for a subclass with a `take`, `atake` or `put` of its own, which runs then call."""

    def __init_subclass__(cls, **options: "Any") -> None:
        super().__init_subclass__(**options)
        own = cls.take is not Budget.take or cls.atake is not Budget.atake or cls.put is not Budget.put
        cls._is_custom = own

    def __init__(self, rule: "BudgetRule | EarlierRule | None" = None) -> None:
        self._rule: Any = TokenBucket() if rule is None else rule
        self._counts = _adapted(self._rule)
        self._admit: Any = getattr(self._counts, "admit", None)
        self._failed: Any = getattr(self._counts, "failed", None)
        self._release: Any = getattr(self._counts, "release", None)
        self._state = self._counts.start()
        self._forked = _forks[0]

    @classmethod
    def brooker(cls, capacity: float = 10, deposit: float = 0.1) -> "Self":
        """Make Marc Brooker's token bucket, the default budget: a success adds `deposit`, a retry takes one token.

        The bucket has at most `capacity` tokens, and is full at first.
        """
        return cls(TokenBucket(capacity, deposit))

    @classmethod
    def aws(cls) -> "Self":
        """Make a budget with the retry quota of the AWS SDKs since 2026: 500 tokens; a retry takes 14.

        After a throttling error it takes 5. A success gives back what its last retry took; a success at the first
        attempt adds 1. In a total outage these are 35 retries, or 100 throttled ones. (botocore 1.44,
        retries/standard.py)
        """
        return cls(TokenBucket(capacity=500, deposit=1, cost=14, refund=True, throttled_cost=5))

    @classmethod
    def aws_until_2026(cls) -> "Self":
        """Make a budget with the earlier retry quota of the AWS SDKs: 500 tokens, of which a retry takes 5.

        After a timeout of the client it takes 10. A success gives back what its last retry took; a success at the first
        attempt adds 1. In a total outage these are 100 retries, or 50 after timeouts.
        """
        return cls(TokenBucket(capacity=500, deposit=1, cost=5, refund=True, timeout_cost=10))

    @classmethod
    def grpc(cls, max_tokens: float = 10, token_ratio: float = 0.1) -> "Self":
        """Make a budget with gRPC's retry throttle (gRFC A6): no retries while half of the tokens or less are left.

        Each failure that could be retried takes one of at most `max_tokens` tokens, and a success adds `token_ratio`.
        In a total outage these are 4 retries.
        """
        return cls(Throttle(max_tokens, token_ratio))

    @classmethod
    def ratio(cls, ratio: float = 0.2, window: float = 10, floor: float = 0) -> "Self":
        """Make a budget of `ratio` retries for each success of the last `window` seconds, plus `floor` per second."""
        return cls(Ratio(ratio, window, floor))

    @classmethod
    def finagle(cls, ratio: float = 0.2, window: float = 10, floor: float = 10) -> "Self":
        """Make Finagle's budget: `ratio` retries for each first attempt of the last `window` seconds, and a floor.

        The floor is `floor` retries per second. In a total outage these are 100 retries in ten seconds, and one more
        for every five calls.
        """
        from forbear.core.admission import RequestRatio

        return cls(RequestRatio(ratio, window, floor))

    @classmethod
    def envoy(cls, share: float = 0.2, least: int = 3) -> "Self":
        """Make Envoy's budget: a `share` of the active calls may be retries at one time, and at least `least`."""
        from forbear.core.admission import ActiveShare

        return cls(ActiveShare(share, least))

    @classmethod
    def google_sre(cls, k: float = 2, window: float = 120) -> "Self":
        """Make a budget with Google SRE's client throttle, which refuses first attempts, too, with `forbear.Throttled`.

        The more of the last `window` seconds' requests the service did not accept, the more it refuses: with the
        probability max(0, (requests - k * accepts) / (requests + 1)). (Site Reliability Engineering, chapter 21)
        """
        from forbear.core.admission import ClientThrottle

        return cls(ClientThrottle(k, window))

    @classmethod
    def per_host(
        cls, make_or_rule: "BudgetRule | Callable[[], Budget] | None" = None, most: int = 1000
    ) -> "HostBudgets":
        """Make a budget for clients that counts each host and service apart, so that one that fails harms no other.

        `make_or_rule` is a rule (default `TokenBucket()`) or a function that makes a budget, such as `Budget.envoy`. At
        most `most` budgets are kept; the least recently used one goes. An HTTP client has one for each scheme, host and
        port. A Redis client has one for its server or cluster, a gRPC interceptor one for each gRPC service. A function
        has no host, so its policy is refused with TypeError; `of(host)` returns the budget of one host.
        """
        from forbear.run.host_budgets import HostBudgets

        return HostBudgets(make_or_rule, most)

    @property
    def counts_first_attempts(self) -> bool:
        """True if the rule counts first attempts before they are sent, and may refuse them (its method `admit`)."""
        return self._admit is not None

    def take(self) -> bool:
        """Count a transient failure and the request to retry: return True if the budget grants it, False if not."""
        if self._failed is not None:
            self._call(self._failed, TRANSIENT)
        return self._take(TRANSIENT) is not None

    async def atake(self) -> bool:
        """Do the same as `take` without blocking the event loop; a subclass with `blocks` does its I/O here."""
        return self.take()

    def put(self, *, retried: bool) -> None:
        """Count a success; `retried` says whether it took more than one attempt, after transient failures."""
        now = current.get().monotonic()
        cost = (self._counts.take(self._counts.start(), now, TRANSIENT) or 0) if retried else 0
        self._succeeded(cost)

    def _take(self, verdict: "Verdict") -> int | None:
        now = current.get().monotonic()
        return self._count(lambda state: self._counts.take(state, now, verdict))

    def _succeeded(self, cost: int) -> None:
        now = current.get().monotonic()
        self._count(lambda state: self._counts.succeeded(state, now, cost))

    def _call(self, method: "Callable[..., Any]", argument: object) -> "Any":
        """Call an optional method of the rule with the counters, the time and `argument`, and return its result."""
        now = current.get().monotonic()
        return self._count(lambda state: method(state, now, argument))

    def _count(self, change: "Callable[[list[int]], T]") -> "T":
        """Change the counters in one atomic step and return the result of `change`, which gets a copy and changes it.

        The lock keeps other threads out. A signal handler or a `__del__` may call the budget again in the same thread
        before the step is done. Then `_state` is newer than the copy, and the step is repeated on the newer state.
        """
        with _lock[0]:
            while True:
                before = self._state
                after = before.copy()
                if self._forked != _forks[0]:
                    after = self._in_child(after)
                result = change(after)
                if self._state is before:  # nothing can come between this and the next line: neither calls anything
                    self._state = after
                    return result

    def _in_child(self, state: list[int]) -> list[int]:
        """Return the counters for a forked child: new ones if they count attempts, which go on in the parent only."""
        self._forked = _forks[0]
        return self._counts.start() if self._release is not None else state

    def __copy__(self) -> "Self":
        return self

    def __deepcopy__(self, memo: object) -> "Self":
        return self

    def __reduce__(self) -> "tuple[type[Budget], tuple[Any]]":
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
