"""Counting changes that several writers make to shared things, such as members of a policy or counters.

The tally compares the server's final state with what each writer learned about each of its changes.
"""

import enum
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class WriteResult(enum.Enum):
    """The result of a change that a writer learned: it is made, it is not made, or it may be either."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tally:
    """A contender's result.

    The server has `counted` of the `requested` changes. `too_many` are more than any writer's result allows. `lost` are
    missing, though their writers learned that they are made. Writers learned `failed` or `unknown` about the others.
    """

    requested: int
    counted: int
    too_many: int
    lost: int
    failed: int
    unknown: int

    @property
    def is_clean(self) -> bool:
        """Return whether no change was made too often or lost."""
        return not self.too_many and not self.lost


def tally(results: Iterable[tuple[str, WriteResult]], counted: Mapping[str, int]) -> Tally:
    """Compare results with the server's counts.

    Each result comes with the name of the thing that the write was to change; `counted` has the changes the server made
    to each thing. A change with an unknown result may be there or not.
    """
    by_result = Counter(results)
    names = {name for name, _ in by_result} | counted.keys()
    done = {name: by_result[name, WriteResult.DONE] for name in names}
    most = {name: done[name] + by_result[name, WriteResult.UNKNOWN] for name in names}
    return Tally(
        requested=by_result.total(),
        counted=sum(counted.values()),
        too_many=sum(max(counted.get(name, 0) - most[name], 0) for name in names),
        lost=sum(max(done[name] - counted.get(name, 0), 0) for name in names),
        failed=sum(by_result[name, WriteResult.FAILED] for name in names),
        unknown=sum(by_result[name, WriteResult.UNKNOWN] for name in names),
    )


class RandomLosses:
    """Choose messages to lose: a share of each kind, which depends on the seed and the message's number in its kind.

    So every contender loses the same share, in whatever order the writers come.
    """

    def __init__(self, seed: int, share: float) -> None:
        self._seed = seed
        self._share = share
        self._count = Counter[str]()

    def __call__(self, kind: str) -> bool:
        """Return whether the next message of this kind is lost."""
        self._count[kind] += 1
        return random.Random(f"{self._seed} {kind} {self._count[kind]}").random() < self._share
