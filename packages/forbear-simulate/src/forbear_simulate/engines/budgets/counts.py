"""Counts in the mean: sums over a window, and groups that each have some places for retries."""

from forbear.adapters import WINDOW_SLOTS

_FULL = 1e9  # a load at which no place is free


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


class RetryPlaces:
    """Groups that each have some places for retries: Erlang's loss system, of which the mean of taken places is known.

    The number of places is chance: that of a Poisson number of successes. A retry takes a place for a while. So the
    retries of a group are a Poisson number, too, cut at its places.
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
