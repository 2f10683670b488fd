"""Many writers of one document, in a world where responses get lost and writes land late: exactly once, or a maybe."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import anyio
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import Exponential
from forbear.core.decide import Reason
from forbear.core.limits import Limits
from forbear.core.report import report
from forbear.policy import Policy
from forbear.read_modify_write import aupdate
from forbear.testing.virtual_clock import VirtualTime, virtual_time
from forbear_testkit.read_modify_write.drivers import judge
from forbear_testkit.read_modify_write.store import Conflict, Denied, Doc, Down, Refused, is_conflict

POLICY = Policy(judge, Limits(attempts=None, timeout=120), Exponential(initial=1, maximum=16))
HASTY = Policy(judge, Limits(attempts=3, timeout=120), Exponential(initial=0.1))


@dataclass
class World:
    """A document behind a network that takes its time and fails at random, before, after and long after the commit."""

    dice: Random
    clock: VirtualTime
    rate: float
    doc: Doc = field(default_factory=lambda: Doc(1, ()))
    on_their_way: list[asyncio.Task[bool]] = field(default_factory=list["asyncio.Task[bool]"])

    async def read(self) -> Doc:
        """The document as it was some time during the request."""
        await self._travel()
        if self._unlucky():
            raise Down
        doc = self.doc
        await self._travel()
        return doc

    async def write(self, doc: Doc) -> Doc:
        """Store the document if nobody was quicker."""
        await self._travel()
        if self._unlucky():
            raise self.dice.choice([Refused, Down, Denied] if self.dice.random() < 0.3 else [Refused, Down])
        if self._unlucky():
            self.on_their_way.append(asyncio.create_task(self._land(doc)))
            raise Down
        if not self._commit(doc):
            raise Conflict
        stored = self.doc
        if self._unlucky():
            raise Down
        await self._travel()
        return stored

    def _commit(self, doc: Doc) -> bool:
        if doc.version != self.doc.version:
            return False
        self.doc = Doc(doc.version + 1, doc.changes)
        return True

    async def _land(self, doc: Doc) -> bool:
        await self.clock.asleep(self.dice.choice([0.01, 0.1, 1, 10, 100]) * self.dice.random())
        return self._commit(doc)

    async def _travel(self) -> None:
        await self.clock.asleep(self.dice.random() * 0.1)

    def _unlucky(self) -> bool:
        return self.dice.random() < self.rate


async def _append(world: World, token: str, *, knows: bool, hasty: bool) -> Exception | None:
    """Append `token` to the document by an update; the error if there was one."""

    def add(doc: Doc) -> Doc:
        return Doc(doc.version, (*doc.changes, token))

    write: Callable[[Doc], Awaitable[Doc]] = HASTY(world.write) if hasty else world.write
    mine: Callable[[Doc], bool] | None = (lambda doc: token in doc.changes) if knows else None
    try:
        doc = await aupdate(read=world.read, modify=add, write=write, conflict=is_conflict, mine=mine, policy=POLICY)
    except Exception as error:
        return error
    assert token in doc.changes
    return None


def _says_maybe(error: Exception) -> bool:
    found = report(error)
    return found is not None and found.maybe_done


async def _run(seed: int, writers: int, rate: float) -> None:
    dice = Random(seed)
    with virtual_time(seed) as clock:
        world = World(dice, clock, rate)
        kinds = {f"writer {n}": (dice.random() < 0.8, dice.random() < 0.3) for n in range(writers)}
        outcomes = await asyncio.gather(
            *(_append(world, token, knows=knows, hasty=hasty) for token, (knows, hasty) in kinds.items())
        )
        await asyncio.gather(*world.on_their_way)
    for (token, (knows, _)), error in zip(kinds.items(), outcomes, strict=True):
        count = world.doc.changes.count(token)
        if error is None:
            assert count == 1
        elif _says_maybe(error):
            assert count <= 1
        else:
            assert count == 0
            found = report(error)
            assert isinstance(error, Denied) or (found is not None and found.reason is Reason.TIMEOUT)
        if not knows and isinstance(error, Down):
            assert _says_maybe(error)


@given(st.integers(0, 10**9), st.integers(1, 12), st.sampled_from([0.0, 0.05, 0.2, 0.5]))
def test_every_change_is_applied_exactly_once_or_its_writer_is_told(seed: int, writers: int, rate: float) -> None:
    """A success means once, an error without `maybe_done` means not at all, and nothing is ever applied twice."""
    anyio.run(_run, seed, writers, rate)


def test_without_faults_everybody_gets_through() -> None:
    """Contention alone fails nobody, with or without `mine`."""

    async def run() -> None:
        with virtual_time(1) as clock:
            world = World(Random(1), clock, 0)
            errors = await asyncio.gather(*(_append(world, f"{n}", knows=n % 2 == 0, hasty=False) for n in range(50)))
        assert set(errors) == {None}
        assert sorted(world.doc.changes, key=int) == [f"{n}" for n in range(50)]

    anyio.run(run)
