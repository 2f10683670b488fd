"""The referee: compares what a client believes with what the server did; knows neither contenders nor faults.

It goes by the journal of the server and by its state, never by what a client says of itself. Every operation is counted
once, by the worst that can be said of it.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forbear.cli.demo.ask import KEY, Operation
from forbear.testing.cloud import Cloud
from forbear.testing.cloud.storage.store import Store


class Outcome(enum.Enum):
    """What became of an operation."""

    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"
    DUPLICATED = "duplicated"
    CORRUPTED = "corrupted"


@dataclass(frozen=True, slots=True)
class Claim:
    """What the client believes: that the operation is done, and what it has read by it."""

    done: bool
    read: bytes | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """One effect in the journal: `by` which operation, on which resource, and the bytes that it wrote if known."""

    by: str
    resource: str
    data: bytes | None = None


def judge(operation: Operation, claim: Claim, deeds: Sequence[Deed], *, kept: bool) -> Outcome:
    """What became of an operation; `deeds` are all deeds of all operations in their order.

    `kept` says whether the server's final state shows the write. Lost is also a write that a later repeat of an older
    one has overwritten: the client whose write it was believes that it stands.
    """
    own = [index for index, deed in enumerate(deeds) if deed.by == operation.name]
    wanted, is_read = operation.wanted, operation.kept is None
    if wanted is not None and any(deeds[index].data not in (None, wanted) for index in own):
        return Outcome.CORRUPTED
    if is_read and claim.done and claim.read != wanted:
        return Outcome.CORRUPTED
    if len(own) > 1:
        return Outcome.DUPLICATED
    if not claim.done:
        return Outcome.FAILED
    if not is_read and (not own or not kept or _undone(own[0], deeds)):
        return Outcome.LOST
    return Outcome.COMPLETED


def _undone(index: int, deeds: Sequence[Deed]) -> bool:
    """Whether this deed was overwritten by one that an operation did again, having done it before this one."""
    resource = deeds[index].resource
    older = {deed.by for deed in deeds[:index] if deed.resource == resource}
    return any(deed.resource == resource and deed.by in older for deed in deeds[index + 1 :])


@dataclass(frozen=True, slots=True)
class Score:
    """How a contender fared: operations by outcome, requests at the server, and what it is that failed.

    Of the failed operations `unrepeatable` may not be executed twice, and `happened` had been executed all the same.
    """

    counts: Mapping[str, int]
    requests: int
    faults: int
    retries: int
    unrepeatable: int
    happened: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, duplicated or corrupted."""
        return not any(self.counts[each.value] for each in (Outcome.LOST, Outcome.DUPLICATED, Outcome.CORRUPTED))


def score(operations: Iterable[Operation], claims: Mapping[str, Claim], cloud: Cloud) -> Score:
    """Judge all operations of a contender."""
    seen = list(cloud.requests)
    names = {request.number: request.headers[KEY] for request in seen}
    deeds = [
        Deed(_operation(names[effect.request]), effect.resource, _data(cloud.store, effect.resource, effect.generation))
        for effect in cloud.effects
    ]
    done = {deed.by for deed in deeds}
    judged = {
        operation: judge(
            operation, claims[operation.name], deeds, kept=operation.kept is None or operation.kept(cloud.store)
        )
        for operation in operations
    }
    failed = [operation for operation, outcome in judged.items() if outcome is Outcome.FAILED]
    outcomes = Counter(judged.values())
    return Score(
        {outcome.value: outcomes[outcome] for outcome in Outcome},
        requests=len(seen),
        faults=sum(request.fault is not None for request in seen),
        retries=len(names) - len(set(names.values())),
        unrepeatable=sum(not operation.repeatable for operation in failed),
        happened=sum(operation.name in done for operation in failed),
    )


def _operation(key: str) -> str:
    return key.split("/")[1]


def _data(store: Store, resource: str, generation: int | None) -> bytes | None:
    """The bytes of the object version that an effect is about."""
    bucket, _, name = resource.partition("/")
    home = store.buckets.get(bucket)
    item = home.find(name, generation) if home is not None and generation is not None else None
    return None if item is None else item.data
