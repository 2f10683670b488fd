"""The judge of a transfer: compares bytes, generations and folders. It knows nothing of how transfers are done."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forbear_cloud import Cloud
from forbear_testkit.transfer.campaign.plans import Plan, armed

SOURCE, TARGET = "source", "target"
_FLIPPED = bytes(each ^ 0xFF for each in range(256))


class Violation(AssertionError):
    """A transfer that broke a promise."""


@dataclass
class World:
    """All that one plan is about: a bucket of its own, a folder of its own, the right bytes and the older ones."""

    plan: Plan
    cloud: Cloud
    folder: Path
    right: bytes
    older: bytes
    first: int | None = None
    """The generation that was there before, at the target of a writer or the source of a reader."""
    out: list[bytes] = field(default_factory=list[bytes])
    """The bytes that a stream has received."""

    @classmethod
    def of(cls, plan: Plan, cloud: Cloud, folder: Path, right: bytes, older: bytes) -> "World":
        """Set it up."""
        world = cls(plan, cloud, folder, right, older)
        for name in ("in", "out", "state"):
            (folder / name).mkdir()
        cloud.store.create_bucket(world.bucket, fields={"versioning": {"enabled": plan.versioned}})
        if plan.direction in ("up", "stream"):
            world.local_source.write_bytes(right)
        else:
            world.put_source()
        if plan.older and plan.writes:
            world.first = world.put(TARGET, older)
        elif plan.older:
            world.local_target.write_bytes(older)
        return world

    @property
    def bucket(self) -> str:
        """No other plan has it, so that a request that comes late spoils none."""
        return f"plan-{self.plan.seed:06d}"

    @property
    def local_source(self) -> Path:
        """The file to upload."""
        return self.folder / "in" / "file"

    @property
    def local_target(self) -> Path:
        """The file to download to."""
        return self.folder / "out" / "file"

    @property
    def state(self) -> Path:
        """The folder for states of transfers."""
        return self.folder / "state"

    def put(self, name: str, data: bytes, fields: dict[str, str] | None = None) -> int:
        """Write an object as somebody else would."""
        return self.cloud.store.put(self.bucket, name, data, dict(fields or {})).generation

    def put_source(self) -> None:
        """Write what is downloaded or copied."""
        if self.plan.direction == "gzip":
            self.put(SOURCE, packed(self.right), {"contentEncoding": "gzip"})
        else:
            self.put(SOURCE, self.right)

    def versions(self, name: str) -> dict[int, bytes]:
        """The versions that are still there, oldest first."""
        with self.cloud.store.lock:
            return {each.generation: each.data for each in self.cloud.store.bucket(self.bucket).objects.get(name, ())}

    def live(self, name: str) -> int | None:
        """The generation that is there for all to see."""
        found = self.cloud.store.bucket(self.bucket).live(name)
        return None if found is None else found.generation

    @property
    def ours(self) -> list[int]:
        """The generations at the target that are of our making, oldest first."""
        effects = [each for each in self.cloud.effects if each.resource == f"{self.bucket}/{TARGET}"]
        if any(each.operation.endswith("delete") for each in effects):
            raise Violation("the transfer deleted a version of the target")
        return [each.generation for each in effects if each.generation is not None]


def done(world: World, generation: int, moved: int, before: Sequence[int]) -> None:
    """Check a transfer that says that it is done; `before` are the generations that earlier runs had made."""
    if world.plan.writes:
        _done_writing(world, generation, before)
    else:
        _done_reading(world, generation)
    _expect_nothing("states", world.state)
    stored = world.versions(TARGET if world.plan.writes else SOURCE).get(generation)
    if stored is not None and moved != len(stored):
        raise Violation(f"the meter was told of {moved} bytes, and {len(stored)} were moved")


def failed(world: World, error: Exception, before: Sequence[int]) -> None:
    """Check a transfer that says that it failed; `before` are the generations that earlier runs had made."""
    if not str(error).strip():
        raise Violation(f"an error without a word: {error!r}")
    if world.plan.writes:
        _check_versions(world)
        if len(world.ours) > len(before) + 1:
            raise Violation(f"a failed run made {len(world.ours) - len(before)} generations")
        return
    if world.plan.direction == "out":
        given = b"".join(world.out)
        wrong = any(fault["action"] == "corrupt" for fault in world.plan.faults)
        if not wrong and not any(each.startswith(given) for each in _contents(world)):
            raise Violation("what went out is not the beginning of any version")
        return
    there = world.local_target.read_bytes() if world.local_target.exists() else None
    if there != (world.older if world.plan.older else None):
        raise Violation("a failed download touched the target")
    parts = [each.name for each in world.local_target.parent.iterdir() if each.name != world.local_target.name]
    if len(parts) > 1:
        raise Violation(f"more than one part was left: {parts}")


def _done_writing(world: World, generation: int, before: Sequence[int]) -> None:
    _check_versions(world)
    ours = world.ours
    if world.plan.same and generation == world.first and not ours:
        return  # what is there is the same in everything: nothing is left to do
    if world.plan.disturbed and generation not in ours and world.versions(TARGET).get(generation) == world.right:
        return  # somebody else has written the very same
    if generation not in ours:
        raise Violation(f"it says that it made generation {generation}, but made {ours}")
    made = len(ours) - len(before)
    # Where an earlier run had made it without knowing, there is nothing left to make. Whoever cannot know whether it
    # was he who made what somebody else has just replaced may make it again.
    if made != (generation not in before) and not (made == 2 and world.plan.disturbed):
        raise Violation(f"it made {made} generations: {ours}, after {list(before)}")
    if world.plan.direction != "copy" and world.local_source.read_bytes() != world.right:
        raise Violation("the source was touched")
    there = world.versions(TARGET)
    if world.live(TARGET) != generation and not world.plan.disturbed:
        raise Violation(f"generation {world.live(TARGET)} is live, not ours ({generation})")
    if world.plan.generation == "older" and world.plan.versioned:
        generations = list(there)
        if generations[generations.index(ours[0]) - 1] != world.first:
            raise Violation("what was replaced is not what was to be replaced")


def _check_versions(world: World) -> None:
    """No version is wrong, whoever made it, and the older one is what it was."""
    there, ours = world.versions(TARGET), world.ours
    right = _contents(world) if world.plan.direction == "copy" else [world.right]
    for generation in ours:
        if generation in there and there[generation] not in right:
            raise Violation(f"generation {generation} has {_differs(there[generation], world.right)}")
    if world.first is None:
        return
    kept = world.plan.versioned or (not ours and not world.plan.disturbed)
    if there.get(world.first) != world.older and kept:
        raise Violation("the older version is not what it was")


def _done_reading(world: World, generation: int) -> None:
    if world.plan.direction == "out":
        given = b"".join(world.out)
    else:
        given = world.local_target.read_bytes()
        folder = sorted(each.name for each in world.local_target.parent.iterdir())
        if folder != [world.local_target.name]:
            raise Violation(f"left beside the target: {folder}")
    stored = world.versions(SOURCE).get(generation)
    wanted = _contents(world) if stored is None else [_shown(world, stored)]
    if given not in wanted:
        raise Violation(f"the target has {_differs(given, wanted[0])}")


def _contents(world: World) -> list[bytes]:
    """Return all contents that the source had at any time, as a reader sees them."""
    stored = [packed(world.right) if world.plan.direction == "gzip" else world.right]
    stored += [
        str(armed(fault)["content"]).encode()
        for fault in world.plan.faults
        if fault["action"] == "replace_object" and "content" in fault
    ]
    stored += [*world.versions(SOURCE).values(), *(each.translate(_FLIPPED) for each in stored)]
    return [_shown(world, each) for each in stored]


def _shown(world: World, stored: bytes) -> bytes:
    """The bytes of a version as a reader is to have them."""
    if world.plan.direction != "gzip" or not world.plan.decode:
        return stored
    try:
        return gzip.decompress(stored)
    except OSError:
        return stored


def packed(data: bytes) -> bytes:
    """Some bytes as gzip, the same every time."""
    return gzip.compress(data, 1, mtime=0)


def _expect_nothing(what: str, folder: Path) -> None:
    left = sorted(each.name for each in folder.rglob("*"))
    if left:
        raise Violation(f"{what} were left: {left}")


def _differs(found: bytes, wanted: bytes) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} bytes, not {len(wanted)}"
    wrong = [place for place in range(len(found)) if found[place] != wanted[place]]
    return f"{len(wrong)} wrong bytes, the first at {wrong[0]}"
