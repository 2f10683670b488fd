"""The token levels of many equal buckets, for the cohort engine: the share of the buckets at each level."""

from functools import reduce
from math import ceil, gcd
from typing import TYPE_CHECKING

import numpy as np

from forbear.adapters import micro_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Shares = NDArray[np.float64]

_MOST = 1000  # levels; an amount between two levels is split between them, so that the mean is right
_ROUNDS = 4  # at most, for the events of one step


class TokenLevels:
    """Buckets of `capacity` tokens, all `full` at first or empty. Events meet each of them by chance, independently."""

    def __init__(self, capacity: float, amounts: tuple[float, ...], *, full: bool = True) -> None:
        cell = reduce(gcd, (micro_tokens(amount) for amount in amounts), micro_tokens(capacity))
        size = micro_tokens(capacity) // cell
        self._top = size if size <= _MOST else _MOST
        self._cell = capacity / self._top
        self._shares = np.zeros(self._top + 1)
        self._shares[-1 if full else 0] = 1.0

    def add(self, events: float, tokens: float) -> None:
        """Change the tokens of a bucket by `tokens` at each of a mean number of `events`, within 0 and capacity."""
        for count, chance in _rounds(events):
            moved: Shares = np.arange(self._top + 1, dtype=np.float64) + np.float64(count * tokens / self._cell)
            self._move(np.minimum(np.maximum(moved, 0.0), float(self._top)), chance)

    def take(self, events: float, tokens: float) -> float:
        """Take `tokens` at each of a mean number of `events`, where so many are left; return the mean number taken."""
        taken = 0.0
        for count, chance in _rounds(events):
            levels = np.arange(self._top + 1)
            times = np.minimum(np.floor(levels * self._cell / tokens + 1e-9), count)
            taken += chance * float(times @ self._shares)
            self._move(levels - times * tokens / self._cell, chance)
        return taken

    def empty(self, share: float) -> float:
        """Take all from this share of the buckets that are not full; return the mean number of tokens taken."""
        before = self.mean()
        levels = np.zeros(self._top + 1)
        levels[-1] = self._top
        self._move(levels, share)
        return (before - self.mean()) * self._top * self._cell

    def share_above(self, tokens: float) -> float:
        """Return the share of buckets with more than `tokens`."""
        return float(self._shares[int(tokens / self._cell + 1e-9) + 1 :].sum())

    def full(self) -> float:
        """Return the share of buckets that are full."""
        return float(self._shares[-1])

    def mean(self) -> float:
        """Return the mean level as a share of the capacity."""
        return float(self._shares @ np.arange(self._top + 1)) / self._top

    def _move(self, levels: "Shares", chance: float) -> None:
        """Move this share of the buckets at each level to the level in `levels`."""
        low = np.minimum(np.floor(levels + 1e-9).astype(np.int64), self._top)
        part = np.maximum(levels - low, 0.0)
        moved = self._shares * chance
        self._shares = self._shares - moved + np.bincount(low, moved * (1 - part), self._top + 1)
        if part.any():
            self._shares += np.bincount(np.minimum(low + 1, self._top), moved * part, self._top + 1)


def _rounds(events: float) -> list[tuple[int, float]]:
    """Return rounds (count, chance) that together have this mean, and a variance near it, as a Poisson number has."""
    if events <= 0:
        return []
    rounds = min(ceil(4 * events), _ROUNDS)
    count = int(events / rounds) + 1
    return [(count, events / (rounds * count))] * rounds
