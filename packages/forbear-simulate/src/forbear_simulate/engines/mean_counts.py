"""Budgets in the mean whose rules count calls: over a window, or those that are active.

The number of places for retries in a small group is chance: that of a Poisson number of successes. So is the number of
its retries, which follows Erlang's loss formula.
"""

from math import exp

from forbear import ActiveShare, ClientThrottle, Ratio, RequestRatio
from forbear.adapters import WINDOW_SLOTS

_FEW_PLACES = 100  # of which chance leaves some free
_FULL = 1e9  # a load at which no place is free


class FreeCalls:
    """The base of mean budgets that admit all calls, count no failures and have no tokens."""

    def admit(self, now: float, calls: float) -> float:
        """Admit all calls."""
        return calls

    def failed(self, now: float, first: float, retried: float) -> None:
        """Count nothing."""

    def sent(self, retries: float) -> None:
        """Count nothing."""

    def level(self) -> float | None:
        """Return None: there are no tokens."""
        return None


class WindowSums:
    """Sums over a window that moves in tenths of its length, as those of the rules do."""

    def __init__(self, window: float, rows: int) -> None:
        self._window = window
        self._newest = 0
        self.sums = [[0.0] * WINDOW_SLOTS for _ in range(rows)]

    def add(self, row: int, now: float, amount: float) -> None:
        """Add to a sum at `now`."""
        newest = int(now / self._window * WINDOW_SLOTS + 1e-9)
        for number in range(max(self._newest, newest - WINDOW_SLOTS) + 1, newest + 1):
            for slots in self.sums:
                slots[number % WINDOW_SLOTS] = 0.0
        self._newest = max(self._newest, newest)
        self.sums[row][self._newest % WINDOW_SLOTS] += amount

    def total(self, row: int, now: float) -> float:
        """Return the sum of a row over the window that ends at `now`."""
        self.add(row, now, 0.0)
        return sum(self.sums[row])

    def take(self, row: int, now: float, share: float) -> float:
        """Take this share of a row's sum away, and return it."""
        taken = share * self.total(row, now)
        self.sums[row] = [(1 - share) * amount for amount in self.sums[row]]
        return taken

    def move(self, row: int, to: int, now: float, share: float) -> None:
        """Move this share of a row's sum to another row; it keeps its age."""
        self.total(row, now)
        moved = [share * amount for amount in self.sums[row]]
        self.sums[row] = [amount - part for amount, part in zip(self.sums[row], moved, strict=True)]
        self.sums[to] = [amount + part for amount, part in zip(self.sums[to], moved, strict=True)]


class _Places:
    """Groups that each have some places for retries: Erlang's loss system, of which the mean of taken places is known.

    A retry takes a place for a while. So the retries of a group are a Poisson number, cut at its places.
    """

    def __init__(self) -> None:
        self._load = 1.0  # at the last retry

    def free(self, chances: list[float], taken: float) -> float:
        """Return the share of retries that find a free place, for the chances of each number of places."""
        if taken >= sum(places * chance for places, chance in enumerate(chances)) * (1 - 1e-9):
            return 0.0
        low, high = 0.0, max(2 * self._load, 1.0)
        while _loss(high, chances)[1] < taken and high < _FULL:
            low, high = high, 2 * high
        while high - low > 0.01 * high and high > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if _loss(middle, chances)[1] < taken else (low, middle)
        self._load = high
        return 1 - _loss(high, chances)[0]


def _loss(load: float, chances: list[float]) -> tuple[float, float]:
    """Return the share of lost requests and the mean of places taken, for a load and the chances of the places."""
    blocked, lost, taken = 1.0, chances[0], 0.0
    for places in range(1, len(chances)):
        blocked = load * blocked / (places + load * blocked)
        lost += chances[places] * blocked
        taken += chances[places] * load * (1 - blocked)
    return lost, taken


class MeanRatio(FreeCalls):
    """Ratio budgets: one for the whole fleet, or one for each of many groups. First attempts pay for `RequestRatio`."""

    def __init__(self, rule: Ratio, groups: float = 1, *, small: bool = False) -> None:
        self._rule = rule
        self._groups = groups
        self._small = small
        self._firsts = isinstance(rule, RequestRatio)
        self._counts = WindowSums(rule.window, 2)  # what pays, retries
        self._places = _Places()

    def admit(self, now: float, calls: float) -> float:
        """Admit all calls, and count them if they pay."""
        if self._firsts:
            self._counts.add(0, now, calls)
        return calls

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant what the window allows."""
        counts, rule = self._counts, self._rule
        paid, sent = counts.total(0, now) / self._groups, counts.total(1, now) / self._groups
        if self._small:
            granted = retries * self._places.free(self._chances(paid), sent) if retries > 0 else 0.0
        else:
            granted = min(retries, max(rule.ratio * paid + rule.floor * rule.window - sent, 0.0) * self._groups)
        counts.add(1, now, granted)
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Count the successes if they pay."""
        if not self._firsts:
            self._counts.add(0, now, first + retried)

    def _chances(self, paid: float) -> list[float]:
        """Return the chance of each number of places in a window, for Poisson payments of this mean."""
        rule, own = self._rule, 1 if self._firsts else 0  # the call that wants to retry has paid, too
        most = int(paid + 8 * paid**0.5 + 8)
        chances = [0.0] * (self._allowed(rule, most + own) + 1)
        chance = exp(-paid)
        for count in range(most + 1):
            chances[self._allowed(rule, count + own)] += chance
            chance *= paid / (count + 1)
        return chances

    @staticmethod
    def _allowed(rule: Ratio, paid: int) -> int:
        return int(rule.ratio * paid + rule.floor * rule.window + 1e-9)


class MeanActive:
    """Envoy's budget for the whole fleet: a share of the active calls may be retries."""

    def __init__(self, rule: ActiveShare) -> None:
        self._rule = rule
        self._active = 0.0
        self._retries = 0.0
        self._places = _Places()

    def admit(self, now: float, calls: float) -> float:
        """Count the calls as active."""
        self._active += calls
        return calls

    def failed(self, now: float, first: float, retried: float) -> None:
        """Take the attempts that ended out of the counts."""
        self._active = max(self._active - first - retried, 0.0)
        self._retries = max(self._retries - retried, 0.0)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant retries up to the share of the active calls."""
        share, least = self._rule.share, self._rule.least
        active = self._active + 1
        places = max(int(share * active), least)
        if places <= _FEW_PLACES:
            free = self._places.free([0.0] * places + [1.0], self._retries) if retries > 0 else 0.0
            granted = min(retries * free, max(places - self._retries, 0.0))
        else:
            granted = min(retries, max(share * active - 0.5 - self._retries, 0.0))
        self._retries += granted
        return granted

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Take the attempts that ended out of the counts."""
        self.failed(now, first, retried)

    def level(self) -> float | None:
        """Return None: there are no tokens."""
        return None

    def sent(self, retries: float) -> None:
        """Count retries as active once they are sent."""
        self._active += retries


class MeanClientThrottle(FreeCalls):
    """Google SRE's client throttle: one for the whole fleet, or one for each of many groups with many calls."""

    def __init__(self, rule: ClientThrottle, groups: float = 1) -> None:
        self._rule = rule
        self._groups = groups
        self._counts = WindowSums(rule.window, 2)  # requests, accepts
        self._failures = 0.0  # of the last bin

    def admit(self, now: float, calls: float) -> float:
        """Refuse the share of calls that the rule says, and count those."""
        half = calls / 2 * self._refused(now, 0.0)  # what is refused counts at once, so take the middle of the bin
        refused = calls * self._refused(now, half)
        self._counts.add(0, now, refused)
        return calls - refused

    def failed(self, now: float, first: float, retried: float) -> None:
        """Count requests that were not accepted."""
        self._failures = first + retried
        self._counts.add(0, now, self._failures)

    def grant(self, now: float, retries: float, throttled: float = 0.0, timed_out: float = 0.0) -> float:
        """Grant retries after the failures of this bin until the rule would refuse."""
        surplus = self._counts.total(0, now) - self._rule.k * self._counts.total(1, now)
        if surplus <= 0 or self._counts.total(0, now) < self._rule.least * self._groups or self._failures <= 0:
            return retries
        return retries * max(1 - surplus / self._failures, 0.0)

    def succeeded(self, now: float, first: float, retried: float) -> None:
        """Count requests that were accepted."""
        for row in (0, 1):
            self._counts.add(row, now, first + retried)

    def _refused(self, now: float, more: float) -> float:
        """Return the share of calls that one throttle refuses, with so many `more` requests in all of them."""
        requests = (self._counts.total(0, now) + more) / self._groups
        if requests < self._rule.least:
            return 0.0
        return max(requests - self._rule.k * self._counts.total(1, now) / self._groups, 0.0) / (requests + 1)
