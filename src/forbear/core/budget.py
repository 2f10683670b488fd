"""The rules of retry budgets: they change the counters passed to them, and `forbear.Budget` holds the counters.

A rule has no clock and no lock.
"""

from forbear.core import check
from forbear.core.record import Record

_SLOTS = 10
_SHORTEST_WINDOW = 0.001  # seconds


def _whole(*numbers: float) -> list[int]:
    """Return decimal numbers as whole multiples of a common unit, so that ten deposits of 0.1 are exactly one token.

    The unit is the smallest decimal place of all numbers: 10, 0.1 and 1 become 100, 1 and 10.
    """
    digits: list[tuple[int, int]] = []
    for number in numbers:
        if isinstance(number, int):
            digits.append((int(number), 0))
        else:
            mantissa, _, exponent = float.__repr__(number).partition("e")
            whole, _, fraction = mantissa.partition(".")
            digits.append((int(whole + fraction), int(exponent or 0) - len(fraction)))
    least = min(exponent for _, exponent in digits)
    return [value * 10 ** (exponent - least) for value, exponent in digits]


class TokenBucket(Record):
    """A bucket of at most `capacity` tokens, at first full: a success adds `deposit`, a retry takes `cost`.

    A retry is refused, and takes nothing, if fewer than `cost` tokens are left. With `refund`, a success after a retry
    adds `cost` instead of `deposit` (the AWS SDKs' retry quota). Fractions of a token are counted exactly.
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
        """Return the counters of a new budget: its tokens (all of them), then capacity, deposit and cost.

        They are whole multiples of one unit, the smallest decimal place of the three numbers.
        """
        capacity, deposit, cost = _whole(self.capacity, self.deposit, self.cost)
        return [capacity, capacity, deposit, cost]

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Add the tokens of a success to the counters `state`, up to the capacity.

        These are `cost` if `refund` is set and the success took more than one attempt (`retried`), otherwise `deposit`.
        `now` is not read.
        """
        tokens, capacity, deposit, cost = state
        state[0] = min(tokens + (cost if retried and self.refund else deposit), capacity)

    def take(self, state: list[int], now: float) -> bool:
        """Take `cost` from the tokens in `state` and return True; if fewer are left, take nothing and return False."""
        cost = state[3]
        granted = state[0] >= cost
        if granted:
            state[0] -= cost
        return granted


class Throttle(Record):
    """The gRPC retry throttle (gRFC A6): a request to retry takes a token, and needs more than half of them left.

    The bucket has at most `max_tokens` and is full at first. A refused request takes its token, too, down to 0. A
    success adds `token_ratio`. Fractions of a token are counted exactly.
    """

    __slots__ = ("max_tokens", "token_ratio")

    max_tokens: float
    token_ratio: float

    def __init__(self, max_tokens: float = 10, token_ratio: float = 0.1) -> None:
        check.positive("max_tokens", max_tokens)
        check.positive("token_ratio", token_ratio)
        self._set(max_tokens=max_tokens, token_ratio=token_ratio)

    def start(self) -> list[int]:
        """Return the counters of a new budget: its tokens (all), then `max_tokens`, `token_ratio` and one token.

        They are whole multiples of one unit, the smallest decimal place of the numbers.
        """
        most, gain, one = _whole(self.max_tokens, self.token_ratio, 1)
        return [most, most, gain, one]

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Add `token_ratio` to the tokens in `state` for a success, up to `max_tokens`.

        `now` and `retried` are not read.
        """
        tokens, most, gain, _ = state
        state[0] = min(tokens + gain, most)

    def take(self, state: list[int], now: float) -> bool:
        """Take one token from `state`, down to 0, and return whether more than half of `max_tokens` are left."""
        tokens, most, _, one = state
        state[0] = max(tokens - one, 0)
        return 2 * state[0] > most


class Ratio(Record):
    """At most `ratio` retries for each success of the last `window` seconds, plus `floor` retries per second.

    A retry is granted if it makes at most `ratio * successes + floor * window` retries in the window. The window is at
    least a millisecond and moves in tenths of its length, the slots. The default floor is 0, because the floors of many
    clients add up.
    """

    __slots__ = ("ratio", "window", "floor")

    ratio: float
    window: float
    floor: float

    def __init__(self, ratio: float = 0.2, window: float = 10, floor: float = 0) -> None:
        check.positive("ratio", ratio)
        check.positive_seconds("window", window)
        check.at_least("window", window, _SHORTEST_WINDOW)
        check.at_least("floor", floor, 0)
        self._set(ratio=ratio, window=window, floor=floor)

    def start(self) -> list[int]:
        """Return the counters of a new budget, all 0.

        They are the number of the newest slot, then ten counts of successes, then ten counts of retries.
        """
        return [0] * (1 + 2 * _SLOTS)

    def put(self, state: list[int], now: float, *, retried: bool) -> None:
        """Count a success in the current slot of `state`; `now` is in seconds, and `retried` is not read."""
        state[1 + self._turn(state, now)] += 1

    def take(self, state: list[int], now: float) -> bool:
        """Return whether one more retry is granted at `now` (in seconds), and count it in `state` only if it is."""
        slot = self._turn(state, now)
        successes, retries = sum(state[1 : 1 + _SLOTS]), sum(state[1 + _SLOTS :])
        allowed = float(self.ratio) * successes + float(self.floor) * self.window
        granted = retries + 1 <= allowed
        if granted:
            state[1 + _SLOTS + slot] += 1
        return granted

    def _turn(self, state: list[int], now: float) -> int:
        """Clear the slots of `state` that have left the window at `now`, and return the current slot's index (0 to 9).

        `now` is in seconds, on the clock of the budget.
        """
        newest = int(now / self.window * _SLOTS)
        for number in range(max(state[0], newest - _SLOTS) + 1, newest + 1):
            state[1 + number % _SLOTS] = state[1 + _SLOTS + number % _SLOTS] = 0
        state[0] = max(state[0], newest)
        return state[0] % _SLOTS
