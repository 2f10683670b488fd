"""The rules of retry budgets: they change the counters passed to them, and `forbear.budgets.Budget` holds the counters.

A rule has no clock and no lock. Tokens are counted in micro-tokens, as whole numbers. Rules that also count first
attempts are in `core.admission`.
"""

from forbear.core import check
from forbear.core.dataclass import dataclass
from forbear.core.record import UserRecord
from forbear.core.verdict import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from forbear.core.protocols import BudgetRule
    from forbear.core.verdict import Verdict

MICRO = 1_000_000
"""The micro-tokens of one token."""

SLOTS = 10
"""The slots of a window, each a tenth of it."""
SHORTEST_WINDOW = 0.001
"""The shortest window, in seconds."""

_VARARGS = 0x04  # CO_VARARGS

_RETRYABLE = (Kind.TRANSIENT, Kind.NOT_EXECUTED)


def micro(number: float) -> int:
    """Return `number` in millionths, rounded to a whole number; so ten deposits of 0.1 are exactly one token.

    >>> micro_tokens(0.1)
    100000
    """
    whole = int(number)  # apart, because a large float has no millionths
    return whole * MICRO + round((number - whole) * MICRO)


def tokens(name: str, value: float, *, least: float = 1 / MICRO) -> None:
    """Raise TypeError or ValueError unless `value` is `least` or from a millionth up, and finite; `name` is its name.

    `least` is 0 where nothing at all is allowed, too.
    """
    if least == 0:
        check.at_least(name, value, 0)
    else:
        check.positive(name, value)
    if value and micro(value) == 0:
        raise ValueError(f"`{name}` must be at least 0.000001{' or 0' if least == 0 else ''}, got {check.shown(value)}")


def check_rule(rule: "Any") -> "BudgetRule":
    """Return `rule`; raise TypeError, with the names of what is missing, unless it keeps the contract `BudgetRule`."""
    if isinstance(rule, type) or not callable(getattr(rule, "take", None)):
        raise TypeError(f"`rule` must be a rule such as forbear.budgets.TokenBucket() or None (that one), got {rule!r}")
    code = getattr(rule.take, "__code__", None)
    blind = code is not None and code.co_argcount < 4 and not code.co_flags & _VARARGS
    if blind or not all(callable(getattr(rule, name, None)) for name in ("start", "succeeded")):
        raise TypeError(
            "`rule` must have the methods start(), take(state, now, verdict) and succeeded(state, now, cost), "
            f"got {rule!r}; add the missing ones, as in forbear.budgets.TokenBucket"
        )
    return rule  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class TokenBucket(UserRecord):
    """A bucket of at most `capacity` tokens, at first full: a success adds `deposit`, a retry takes `cost`.

    A retry is refused, and takes nothing, if too few tokens are left. It takes `throttled_cost` after a throttling
    error and `timeout_cost` after a timeout of the client; None (default) means `cost`. With `refund`, a success after
    a retry adds what its last retry took, instead of `deposit` (the retry quota of the AWS SDKs). The least amount is a
    millionth of a token. After ceil(cost / deposit) successes at the first attempt, a retry is granted again, if
    `capacity` is not below `cost`.

    >>> budget = Budget(TokenBucket(capacity=2, deposit=0.5))
    >>> [budget.take() for _ in range(3)]
    [True, True, False]
    >>> for _ in range(2):
    ...     budget.put(retried=False)  # two successes pay for one retry
    >>> budget.take()
    True
    """

    capacity: float = 10
    deposit: float = 0.1
    cost: float = 1
    refund: bool = False
    throttled_cost: float | None = None
    timeout_cost: float | None = None

    def __post_init__(self) -> None:
        tokens("capacity", self.capacity)
        tokens("deposit", self.deposit, least=0)
        tokens("cost", self.cost)
        check.flag("refund", self.refund)
        if self.throttled_cost is not None:
            tokens("throttled_cost", self.throttled_cost)
        if self.timeout_cost is not None:
            tokens("timeout_cost", self.timeout_cost)

    def start(self) -> list[int]:
        """Return the counters of a new budget, in micro-tokens: its tokens (all of them), then capacity and deposit.

        Then come the costs of a retry: `cost`, `throttled_cost` and `timeout_cost`.
        """
        capacity, cost = micro(self.capacity), micro(self.cost)
        throttled = cost if self.throttled_cost is None else micro(self.throttled_cost)
        timeout = cost if self.timeout_cost is None else micro(self.timeout_cost)
        return [capacity, capacity, micro(self.deposit), cost, throttled, timeout]

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        # A throttling error that is also a timeout costs what the former does.
        cost = state[4] if verdict.throttled else state[5] if verdict.timed_out else state[3]
        if state[0] < cost:
            return None
        state[0] -= cost
        return cost

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        state[0] = min(state[0] + (cost if cost and self.refund else state[2]), state[1])


@dataclass(frozen=True, slots=True)
class Throttle(UserRecord):
    """The gRPC retry throttle (gRFC A6): a failure takes one token, and a retry needs more than half of them left.

    The bucket has at most `max_tokens` and is full at first. Every failure that could be retried takes a token, down to
    0, also one after which the limits allow no retry. A success adds `token_ratio`. A millionth of a token is the least
    amount. After floor((max_tokens / 2 + 1) / token_ratio) + 1 successes a retry is granted again, if `max_tokens` is
    more than 2.

    >>> budget = Budget(Throttle(max_tokens=10))
    >>> [budget.take() for _ in range(6)]
    [True, True, True, True, False, False]
    """

    max_tokens: float = 10
    token_ratio: float = 0.1

    def __post_init__(self) -> None:
        tokens("max_tokens", self.max_tokens)
        tokens("token_ratio", self.token_ratio)

    def start(self) -> list[int]:
        """Return the counters of a new budget, in micro-tokens: its tokens (all), then `max_tokens`, `token_ratio`."""
        most = micro(self.max_tokens)
        return [most, most, micro(self.token_ratio)]

    def failed(self, state: list[int], now: float, verdict: "Verdict") -> None:
        if verdict.kind in _RETRYABLE:
            state[0] = max(state[0] - MICRO, 0)

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        # It costs nothing: `failed` has counted the failure.
        return 0 if 2 * state[0] > state[1] else None

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        state[0] = min(state[0] + state[2], state[1])


@dataclass(frozen=True, slots=True)
class Ratio(UserRecord):
    """At most `ratio` retries for each success of the last `window` seconds, plus `floor` retries per second.

    A retry is granted if it makes at most `ratio * successes + floor * window` retries in the window. The window is at
    least a millisecond and moves in tenths of its length, the slots. The default floor is 0, because the floors of many
    clients add up. With R retries in the window, one more is granted after at most ceil((R + 1) / ratio) successes.
    `ratio` and `floor` count in millionths.

    >>> budget = Budget(Ratio(0.2))
    >>> for _ in range(10):
    ...     budget.put(retried=False)  # ten successes
    >>> [budget.take() for _ in range(3)]
    [True, True, False]
    """

    ratio: float = 0.2
    window: float = 10
    floor: float = 0

    def __post_init__(self) -> None:
        tokens("ratio", self.ratio)
        check.positive_seconds("window", self.window)
        check.at_least("window", self.window, SHORTEST_WINDOW)
        tokens("floor", self.floor, least=0)

    def start(self) -> list[int]:
        """Return the counters of a new budget, all 0.

        They are the number of the newest slot, then ten counts of successes, then ten counts of retries.
        """
        return [0] * (1 + 2 * SLOTS)

    def take(self, state: list[int], now: float, verdict: "Verdict") -> int | None:
        slot = turn(state, now, self.window)
        successes, retries = sum(state[1 : 1 + SLOTS]), sum(state[1 + SLOTS :])
        allowed = micro(self.ratio) * successes + micro(self.floor) * micro(self.window) // MICRO
        if (retries + 1) * MICRO > allowed:
            return None
        state[1 + SLOTS + slot] += 1
        return MICRO

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        state[1 + turn(state, now, self.window)] += 1


def turn(state: list[int], now: float, window: float) -> int:
    """Clear the slots of `state` that have left the `window` at `now`, and return the current slot's index (0 to 9).

    `state` has the number of the newest slot, then rows of ten counts. `now` and `window` are in seconds, on the clock
    of the budget.
    """
    newest = int(now / window * SLOTS)
    for number in range(max(state[0], newest - SLOTS) + 1, newest + 1):
        for slot in range(1 + number % SLOTS, len(state), SLOTS):
            state[slot] = 0
    state[0] = max(state[0], newest)
    return state[0] % SLOTS
