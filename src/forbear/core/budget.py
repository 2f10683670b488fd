"""Retry budgets as pure rules over counters; who shares the counters, their lock and their clock, is not known here."""

from forbear.core import check
from forbear.core.record import Record

_SLOTS = 10


def _thousandths(tokens: float) -> int:
    """Tokens as whole thousandths (as gRPC counts them): ten deposits of 0.1 are one token, not 0.9999999999999999."""
    return round(tokens * 1000)


class TokenBucket(Record):
    """A bucket, at first full with `capacity` tokens: a success puts in `deposit`, a retry takes `cost` or is refused.

    With `refund`, a success after a retry puts back what one retry took (the AWS SDKs' retry quota).
    """

    __slots__ = ("capacity", "deposit", "cost", "refund")

    capacity: float
    deposit: float
    cost: float
    refund: bool

    def __init__(self, capacity: float = 10, deposit: float = 0.1, cost: float = 1, refund: bool = False) -> None:
        check.positive("capacity", capacity)
        check.at_least("deposit", deposit, 0)
        check.positive("cost", cost)
        check.flag("refund", refund)
        self._set(capacity=capacity, deposit=deposit, cost=cost, refund=refund)

    def start(self) -> list[int]:
        """The counters of a new budget: its tokens."""
        return [_thousandths(self.capacity)]

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Enter a success; `retried` says whether it took more than one attempt."""
        gain = self.cost if retried and self.refund else self.deposit
        state[0] = min(state[0] + _thousandths(gain), _thousandths(self.capacity))

    def take(self, state: list[int], now: float) -> bool:
        """Enter a wish to retry; False refuses it."""
        granted = state[0] >= _thousandths(self.cost)
        if granted:
            state[0] -= _thousandths(self.cost)
        return granted


class Throttle(Record):
    """The gRPC retry throttle: each failure takes one of `max_tokens`, and retries stop while half or less are left.

    A success puts `token_ratio` back. Source: gRFC A6.
    """

    __slots__ = ("max_tokens", "token_ratio")

    max_tokens: float
    token_ratio: float

    def __init__(self, max_tokens: float = 10, token_ratio: float = 0.1) -> None:
        check.positive("max_tokens", max_tokens)
        check.positive("token_ratio", token_ratio)
        self._set(max_tokens=max_tokens, token_ratio=token_ratio)

    def start(self) -> list[int]:
        """The counters of a new budget: its tokens."""
        return [_thousandths(self.max_tokens)]

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Enter a success."""
        state[0] = min(state[0] + _thousandths(self.token_ratio), _thousandths(self.max_tokens))

    def take(self, state: list[int], now: float) -> bool:
        """Enter a failure that asks for a retry; False refuses it."""
        state[0] = max(state[0] - 1000, 0)
        return 2 * state[0] > _thousandths(self.max_tokens)


class Ratio(Record):
    """At most `ratio` retries for each success of the last `window` seconds, plus `floor` retries per second.

    The window moves in tenths of its length. There is no floor by default: floors add up over a fleet.
    """

    __slots__ = ("ratio", "window", "floor")

    ratio: float
    window: float
    floor: float

    def __init__(self, ratio: float = 0.2, window: float = 10, floor: float = 0) -> None:
        check.positive("ratio", ratio)
        check.positive_seconds("window", window)
        check.at_least("floor", floor, 0)
        self._set(ratio=ratio, window=window, floor=floor)

    def start(self) -> list[int]:
        """The counters of a new budget: the newest slot's number, then successes and retries of the last ten slots."""
        return [0] * (1 + 2 * _SLOTS)

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Enter a success."""
        state[1 + self._turn(state, now)] += 1

    def take(self, state: list[int], now: float) -> bool:
        """Enter a wish to retry; False refuses it."""
        slot = self._turn(state, now)
        successes, retries = sum(state[1 : 1 + _SLOTS]), sum(state[1 + _SLOTS :])
        granted = retries + 1 <= self.ratio * successes + self.floor * self.window
        if granted:
            state[1 + _SLOTS + slot] += 1
        return granted

    def _turn(self, state: list[int], now: float) -> int:
        """Forget the slots that have left the window and return the place of the current one."""
        newest = int(now / self.window * _SLOTS)
        for number in range(max(state[0], newest - _SLOTS) + 1, newest + 1):
            state[1 + number % _SLOTS] = state[1 + _SLOTS + number % _SLOTS] = 0
        state[0] = max(state[0], newest)
        return state[0] % _SLOTS
