"""The checker: compares what clients learned with what the server did.

`score` reads the server's journal of effects and its final state, and ignores what a client says of its own retries.
Every operation counts once, by the worst finding. `tally` counts changes that several writers make to shared things,
such as members of a policy or counters.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from examples.demo.model import KEY, DemoOperation
from forbear_cloud import Cloud
from forbear_cloud.storage.store import Store


class DemoFinding(enum.Enum):
    """The checker's result for one operation: completed, failed, lost, duplicated or corrupted (see `check`)."""

    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"
    DUPLICATED = "duplicated"
    CORRUPTED = "corrupted"


@dataclass(frozen=True, slots=True)
class Claim:
    """The client's view of an operation: whether it got a success, and the bytes that it read.

    `read` is None for a write and after an error.
    """

    done: bool
    read: bytes | None = None


@dataclass(frozen=True, slots=True)
class ObservedEffect:
    """One effect in the server's journal: `by` is the name of the operation that caused it, `data` the bytes written.

    `resource` is BUCKET/NAME for an object. `data` is None if the effect wrote no object, or if that version is gone.
    """

    by: str
    resource: str
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """A contender's result: its operations by finding, and the server's numbers of requests, faults and retries.

    `counts` has the number of operations for the value of each DemoFinding. `faults` is the number of requests that
    met a fault, `retries` the number of requests that repeat an earlier one. Of the failed operations, `unrepeatable`
    is the number that are unsafe to execute twice, and `happened` the number that took effect in spite of the error.
    """

    counts: Mapping[str, int]
    requests: int
    faults: int
    retries: int
    unrepeatable: int
    happened: int

    @property
    def is_clean(self) -> bool:
        """Return whether nothing was lost, duplicated or corrupted."""
        return not any(
            self.counts[each.value] for each in (DemoFinding.LOST, DemoFinding.DUPLICATED, DemoFinding.CORRUPTED)
        )


def check(operation: DemoOperation, claim: Claim, effects: Sequence[ObservedEffect], *, applied: bool) -> DemoFinding:
    """Return the worst finding about one operation; `claim` is what its client learned, `effects` is of all operations.

    Corrupted: it wrote or read other bytes than expected. Duplicated: it had more than one effect. Failed: the client
    got no success. Lost: a write with a success has no effect, is not `applied` (in the server's final state), or was
    overwritten by a late repeat of an older write. Completed: none of these.
    """
    own = [index for index, effect in enumerate(effects) if effect.by == operation.name]
    expected, is_read = operation.expected, operation.is_applied is None
    if expected is not None and any(effects[index].data not in (None, expected) for index in own):
        return DemoFinding.CORRUPTED
    if is_read and claim.done and claim.read != expected:
        return DemoFinding.CORRUPTED
    if len(own) > 1:
        return DemoFinding.DUPLICATED
    if not claim.done:
        return DemoFinding.FAILED
    if not is_read and (not own or not applied or _overwritten(own[0], effects)):
        return DemoFinding.LOST
    return DemoFinding.COMPLETED


def _overwritten(index: int, effects: Sequence[ObservedEffect]) -> bool:
    """Return whether an operation with an effect on the same resource before `effects[index]` has another after it."""
    resource = effects[index].resource
    older = {effect.by for effect in effects[:index] if effect.resource == resource}
    return any(effect.resource == resource and effect.by in older for effect in effects[index + 1 :])


def score(operations: Iterable[DemoOperation], claims: Mapping[str, Claim], cloud: Cloud) -> Score:
    """Return a contender's score: compare its claims, by operation name, with what its cloud shows.

    The cloud shows its log of requests, its journal of effects and its final state.
    """
    requests = list(cloud.requests)
    keys = {request.number: request.headers[KEY] for request in requests}
    effects = [
        ObservedEffect(
            keys[effect.request].split("/")[1],
            effect.resource,
            _data(cloud.store, effect.resource, effect.generation),
        )
        for effect in cloud.effects
    ]
    executed = {effect.by for effect in effects}
    findings = {
        operation: check(
            operation,
            claims[operation.name],
            effects,
            applied=operation.is_applied is None or operation.is_applied(cloud.store),
        )
        for operation in operations
    }
    failed = [operation for operation, finding in findings.items() if finding is DemoFinding.FAILED]
    counts = Counter(findings.values())
    return Score(
        {finding.value: counts[finding] for finding in DemoFinding},
        requests=len(requests),
        faults=sum(request.fault is not None for request in requests),
        retries=len(keys) - len(set(keys.values())),
        unrepeatable=sum(not operation.repeatable for operation in failed),
        happened=sum(operation.name in executed for operation in failed),
    )


def _data(store: Store, resource: str, generation: int | None) -> bytes | None:
    """Return the bytes of the object version that an effect wrote to the resource "BUCKET/NAME".

    None if the effect wrote no object (`generation` is None), or if its version or bucket is gone.
    """
    bucket, _, name = resource.partition("/")
    home = store.buckets.get(bucket)
    item = home.find(name, generation) if home is not None and generation is not None else None
    return None if item is None else item.data


class WriteResult(enum.Enum):
    """The result of a change as its writer learned it: made (DONE), not made (FAILED), or either of them (UNKNOWN)."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tally:
    """A contender's result: how many changes of shared things were requested, made, lost and so on.

    The server has `counted` changes in all, including those that are `too_many`: more than the done and the unknown
    results allow. `lost` changes are missing, though their writers learned that they are made. `failed` and `unknown`
    are the numbers of changes with these results.
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
    """Compare what the writers learned with the server's counts, and return the tally.

    Each result comes with the name of the thing that the write was to change; `counted` has the number of changes that
    the server has for each thing. A change with an unknown result may be there or not.
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
