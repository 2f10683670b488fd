"""`Budget`: the retry budget that runs share. It adds counters, a lock and the clock to a rule of the core."""

import os
from _thread import RLock  # threading.RLock itself, without the import cost of threading

from forbear.core import check
from forbear.core.budget import Ratio, Throttle, TokenBucket, check_rule
from forbear.core.verdict import TRANSIENT
from forbear.run.grant import OpenGrant
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, NoReturn, Self, TypeVar

    from forbear.core.protocols import BudgetRule

    T = TypeVar("T")


lock = [RLock()]  # one for all budgets; held for a few microseconds
forks = [0]  # how many forks lie between the first process and this one


def _unlock_in_child() -> None:
    """Replace the lock in a forked child: the thread that held it may not exist there. Count the fork."""
    lock[0] = RLock()
    forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


class Budget:
    """A retry budget: it limits retries to a share of the successes, so that they do not overload a failing service.

    `rule` says how it counts (default `TokenBucket()`). Share one between all policies that call the same service. It
    is safe to share between threads and tasks, and to use in signal handlers and `__del__`. A copy is the same budget;
    unpickling makes a new, full one. When the budget refuses a retry, the run ends at once with the reason BUDGET. In a
    forked child, a budget that counts active attempts is new, too.

    >>> budget = Budget(TokenBucket(capacity=2))
    >>> policy = forbear.retry(OSError, budget=budget)
    >>> [budget.take() for _ in range(3)]  # the policy asks so before each retry
    [True, True, False]
    """

    __slots__ = ("__weakref__", "_admit", "_counts", "_failed", "_forked", "_release", "_wait", "_rule", "_state")

    by_host: "ClassVar[bool]" = False
    """True for the budgets of `per_host`, which have the counters."""

    is_shared: "ClassVar[bool]" = False
    """True for a bucket that other processes share."""

    open_grant: "ClassVar[type[OpenGrant] | None]" = None
    """The class of the grants by which runs ask, for a subclass whose answer takes time, as one with its own `atake`;
    None: `take` answers at once."""

    is_custom: "ClassVar[bool]" = False
    """True for a subclass with a `take`, `atake` or `put` of its own, which runs then call."""

    def __init_subclass__(cls, **options: "Any") -> None:
        super().__init_subclass__(**options)
        own = cls.take is not Budget.take or cls.atake is not Budget.atake or cls.put is not Budget.put
        cls.is_custom = own
        if cls.open_grant is None and cls.atake is not Budget.atake:
            cls.open_grant = OpenGrant

    def __init__(self, rule: "BudgetRule | None" = None) -> None:
        self._rule: Any = TokenBucket() if rule is None else rule
        self._counts = check_rule(self._rule)
        self._admit: Any = getattr(self._counts, "admit", None)
        self._failed: Any = getattr(self._counts, "failed", None)
        self._release: Any = getattr(self._counts, "release", None)
        self._wait: Any = getattr(self._counts, "wait", None)
        self._state = self._counts.start()
        self._forked = forks[0]

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
        retries/standard.py.) 429 and 503 are throttling errors here; for botocore 503 is one only with such a code.
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
        In a total outage these are 4 retries at most: the last failure of a call takes a token, too.
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
        """Make Envoy's budget: a `share` of the active calls may be retries at one time, and at least `least`.

        A retry that waits is one of the retries, but no active call.
        """
        from forbear.core.admission import ActiveShare

        return cls(ActiveShare(share, least))

    @classmethod
    def google_sre(cls, k: float = 2, window: float = 120, least: int = 10) -> "Self":
        """Make a budget with Google SRE's client throttle, which refuses first attempts, too, with `forbear.Throttled`.

        The more of the last `window` seconds' requests the service did not accept, the more it refuses: with the
        probability max(0, (requests - k * accepts) / (requests + 1)). (Site Reliability Engineering, chapter 21) A
        request counts when its outcome is known, and nothing is refused before there are `least`.
        """
        from forbear.core.admission import ClientThrottle

        return cls(ClientThrottle(k, window, least))

    @classmethod
    def per_host(
        cls, make_or_rule: "BudgetRule | Callable[[], Budget] | None" = None, most: int = 1000
    ) -> "HostBudgets":
        """Make a budget for clients that counts each host and service apart, so that one that fails harms no other.

        `make_or_rule` is a rule (default `TokenBucket()`) or a function that makes a budget, such as `Budget.envoy`. At
        most `most` budgets are kept; the least recently used one goes. An HTTP client has one for each host, port (80
        and 443 count as one) and service. A Redis client has one for its server or cluster, a gRPC interceptor one for
        each gRPC service. A function has no host, so its policy is refused with TypeError; `of(host)` returns the
        budget of one host.
        """
        return HostBudgets(make_or_rule, most)

    @property
    def rule(self) -> "BudgetRule":
        """The rule by which the budget counts, such as a `TokenBucket`."""
        return self._counts

    @property
    def counts_first_attempts(self) -> bool:
        """True if the rule counts first attempts before they are sent, and may refuse them (its method `admit`)."""
        return self._admit is not None

    def take(self) -> bool:
        """Count a transient failure and the request to retry: return True if the budget grants it, False if not."""
        if self._failed is not None:
            self._call(self._failed, TRANSIENT)
        return self._call(self._counts.take, TRANSIENT) is not None

    async def atake(self) -> bool:
        """Do the same as `take` without blocking the event loop; async code awaits it where a subclass overrides it."""
        return self.take()

    def put(self, *, retried: bool) -> None:
        """Count a success; `retried` says whether it took more than one attempt, after transient failures."""
        now = current.get().monotonic()
        cost = (self._counts.take(self._counts.start(), now, TRANSIENT) or 0) if retried else 0
        self._call(self._counts.succeeded, cost)

    def _call(self, method: "Callable[..., T]", argument: object) -> "T":
        """Call a method of the rule with the counters, the time and `argument`, in one atomic step; return its result.

        The lock keeps other threads out. A signal handler or a `__del__` may call the budget again in the same thread
        before the step is done. Then `_state` is newer than the copy, and the step is repeated on the newer state.
        """
        now = current.get().monotonic()
        with lock[0]:
            while True:
                before = self._state
                after = before.copy()
                if self._forked != forks[0]:
                    self._forked = forks[0]
                    if self._release is not None:  # the attempts that it counts go on in the parent only
                        after = self._counts.start()
                result = method(after, now, argument)
                if self._state is before:  # nothing can come between this and the next line: neither calls anything
                    self._state = after
                    return result

    def __copy__(self) -> "Self":
        return self

    def __deepcopy__(self, memo: object) -> "Self":
        return self

    def __reduce__(self) -> "tuple[type[Budget], tuple[Any]]":
        return type(self), (self._rule,)

    def __repr__(self) -> str:
        return f"Budget({self._rule!r})"


PER_HOST = (
    "`budget` must not be one per host where no host is known, as in a function, a block or urllib3's Retry; "
    'take one of its budgets, budget.of("api.example.com"), or another budget'
)


class HostBudgets(Budget):
    """The budgets of `Budget.per_host`, one for each host and service, made at the first use of each.

    At most `most` budgets are kept: the least recently used one goes, and its host gets a new, full one. A budget that
    a request or a client is using is not lost, even if it is over the number. A copy is the same object; unpickling
    makes a new, empty one.

    >>> budgets = HostBudgets()
    >>> first = budgets.of("a.example.com")
    >>> first is budgets.of("A.example.com"), first is budgets.of("b.example.com")
    (True, False)
    """

    __slots__ = ("_arguments", "_kept", "_live", "_make", "_spare")

    by_host: "ClassVar[bool]" = True

    def __init__(self, make_or_rule: "BudgetRule | Callable[[], Budget] | None" = None, most: int = 1000) -> None:
        check.at_least("most", most, 1, what="a whole number of budgets", whole=True)
        from weakref import WeakValueDictionary

        self._arguments = make_or_rule, most
        self._make: Any = make_or_rule if callable(make_or_rule) else lambda: Budget(make_or_rule)
        first = self._make_one()
        super().__init__(first._rule)
        self._spare = [first]
        self._kept: dict[tuple[str, str], Budget] = {}  # the last one is the one used last
        self._live: WeakValueDictionary[tuple[str, str], Budget] = WeakValueDictionary()

    def of(self, host: str, service: str = "") -> Budget:
        """Return the budget of `host` (in any case) and `service`; functions that call one host share it, too."""
        key = host.lower(), service
        with lock[0]:
            budget = self._kept.get(key) or self._live.get(key)
        if budget is None:
            try:
                made = self._spare.pop()
            except IndexError:  # it is used up; asking first would race with other threads
                made = self._make_one()
            with lock[0]:
                budget = self._live.setdefault(key, made)  # another thread may have made one
        with lock[0]:
            self._kept.pop(key, None)
            self._kept[key] = budget
            while len(self._kept) > self._arguments[1]:
                self._kept.pop(next(iter(self._kept)), None)
        return budget

    def _call(self, method: "Callable[..., T]", argument: object) -> "NoReturn":
        """Raise TypeError always: nothing is counted here, but in the budgets of the hosts."""
        raise TypeError(PER_HOST)

    def _make_one(self) -> Budget:
        budget: object = self._make()
        if not isinstance(budget, Budget) or budget.by_host:
            raise TypeError(
                "`make_or_rule` must be a rule, or a function that makes a forbear.budgets.Budget, such as "
                f"forbear.budgets.Budget.envoy; got one that makes {budget!r}"
            )
        if budget.is_shared:
            raise TypeError(
                "`make_or_rule` must not make a SharedBudget, which would be one bucket for all hosts: the name is "
                f"that of the bucket; pass one by the name of the service to each client, got {budget!r}"
            )
        return budget

    def __reduce__(self) -> "tuple[type[HostBudgets], tuple[Any, ...]]":
        return type(self), self._arguments

    def __repr__(self) -> str:
        make_or_rule, most = self._arguments
        return f"Budget.per_host({self._rule if make_or_rule is None else make_or_rule!r}, most={most})"


def refuse_per_host(budget: Budget | None) -> None:
    """Raise TypeError for a budget per host, where no host is known; any other budget, or None, passes."""
    if budget is not None and budget.by_host:
        raise TypeError(PER_HOST)
