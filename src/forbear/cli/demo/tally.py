"""How changes are counted that several writers make to one thing; knows neither the thing nor the contenders.

It goes by what the server holds in the end, and by what each writer was told of each of its changes.
"""

import enum
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class Told(enum.Enum):
    """What a writer was told of a change: that it is made, that it is not, or that nobody knows."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tally:
    """How a contender fared.

    Of `asked` changes `counted` were found. `too_many` are more than anybody was told of, `lost` are missing although
    their writers were told that they are made. `failed` and `unknown` are what writers were told instead.
    """

    asked: int
    counted: int
    too_many: int
    lost: int
    failed: int
    unknown: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing was made too often and nothing was lost."""
        return not self.too_many and not self.lost


def tally(claims: Iterable[tuple[str, Told]], counted: Mapping[str, int]) -> Tally:
    """Compare claims, each with the name of what was to be changed by one, with how often the server has each change.

    A change that nobody knows of may be there or not: either is right.
    """
    told = Counter(claims)
    names = {name for name, _ in told} | counted.keys()
    done = {name: told[name, Told.DONE] for name in names}
    most = {name: done[name] + told[name, Told.UNKNOWN] for name in names}
    return Tally(
        asked=told.total(),
        counted=sum(counted.values()),
        too_many=sum(max(counted.get(name, 0) - most[name], 0) for name in names),
        lost=sum(max(done[name] - counted.get(name, 0), 0) for name in names),
        failed=sum(told[name, Told.FAILED] for name in names),
        unknown=sum(told[name, Told.UNKNOWN] for name in names),
    )


class Losses:
    """Which messages get lost: a share of each kind, by the seed and by their number within it, and by nothing else.

    So the same share is lost for every contender, and in whatever order the writers come.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed = seed
        self._share = share
        self._seen = Counter[str]()

    def __call__(self, kind: str) -> bool:
        """Whether the next message of this kind is lost."""
        self._seen[kind] += 1
        return random.Random(f"{self._seed} {kind} {self._seen[kind]}").random() < self._share
