"""Interruptions, attempt timeouts, budgets and listeners: an update is one run, and each cycle one of its attempts."""

import anyio
import pytest

from forbear.core.budget import TokenBucket
from forbear.core.decide import Reason
from forbear.core.events import Event
from forbear.core.report import report
from forbear.read_modify_write import aupdate, update
from forbear.run.budget import Budget
from forbear.run.runtime import AttemptTimeout
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.read_modify_write.drivers import DRIVERS, POLICY, Driver
from forbear_testkit.read_modify_write.store import (
    Conflict,
    Doc,
    Fault,
    Store,
    is_conflict,
    lost,
    mine,
    modify,
    overtaken,
)

both_loops = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@both_loops
@pytest.mark.parametrize("slow", ["read", "write", "write-then-silence"])
async def test_attempt_timeouts(anyio_backend: str, slow: str) -> None:
    """A read or a write that hangs is cut short; of the write nobody knows, so the next read is asked."""
    store = Store()
    hangs = [slow]

    with virtual_time(0) as clock:

        async def read() -> Doc:
            if hangs == ["read"]:
                hangs.pop()
                await clock.asleep(100)
            return store.read()

        async def write(doc: Doc) -> Doc:
            if hangs == ["write"]:
                hangs.pop()
                await clock.asleep(100)
            stored = store.write(doc)
            if hangs:
                hangs.pop()
                await clock.asleep(100)
            return stored

        policy = POLICY.with_attempt_timeout(3)
        value = await aupdate(read=read, modify=modify, write=write, conflict=is_conflict, mine=mine, policy=policy)
        assert clock.elapsed == 4  # 3 for the attempt, 1 between the cycles
    assert value == store.doc
    assert (store.applied, store.writes) == (1, 1)


@both_loops
async def test_an_attempt_timeout_without_mine(anyio_backend: str) -> None:
    """Without `mine` a write that was cut short is not repeated."""
    store = Store()

    with virtual_time(0) as clock:

        async def read() -> Doc:
            return store.read()

        async def write(doc: Doc) -> None:
            await clock.asleep(100)

        with pytest.raises(AttemptTimeout) as raised:
            await aupdate(
                read=read, modify=modify, write=write, conflict=is_conflict, policy=POLICY.with_attempt_timeout(3)
            )
    found = report(raised.value)
    assert found is not None
    assert (found.reason, found.maybe_done) == (Reason.UNSAFE, True)


@both_loops
@pytest.mark.parametrize("where", ["read", "write", "wait"])
async def test_cancellation_passes(anyio_backend: str, where: str) -> None:
    """A cancelled update ends where it is: nothing more is read or written."""
    store = Store(writes=(overtaken(),) if where == "wait" else ())
    reached: list[str] = []
    with virtual_time(0) as clock, anyio.CancelScope() as scope:

        async def step(name: str) -> None:
            reached.append(name)
            if name == where:
                scope.cancel()
                await clock.asleep(1)

        async def read() -> Doc:
            await step("read")
            return store.read()

        async def write(doc: Doc) -> Doc:
            await step("write")
            try:
                return store.write(doc)
            except Conflict:
                if where == "wait":
                    scope.cancel()
                raise

        await aupdate(read=read, modify=modify, write=write, conflict=is_conflict, mine=mine, policy=POLICY)
    assert scope.cancelled_caught
    assert reached == (["read"] if where == "read" else ["read", "write"])
    assert store.applied == 0


@pytest.mark.parametrize("part", ["read", "modify", "write"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interruptions_are_not_caught(part: str, kind: type[BaseException]) -> None:
    """An error that is no Exception is never caught."""
    store = Store()

    def interrupted(*_: object) -> Doc:
        raise kind

    parts = {"read": store.read, "modify": modify, "write": store.write} | {part: interrupted}
    with virtual_time(), pytest.raises(kind):
        update(**parts, conflict=lambda _: True, mine=mine)  # type: ignore[arg-type]
    assert store.writes == 0


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
def test_each_cycle_is_an_event_with_the_name_of_the_operation(drive: Driver) -> None:
    """The listener gets every cycle; the operation has the policy's name, or else that of `write`."""
    events: list[Event] = []
    drive(Store(writes=(overtaken(), lost())), policy=POLICY.with_on_event(events.append).with_name("policy of p"))
    assert [type(event).__name__ for event in events] == [*2 * ("Failed", "Scheduled"), "Recovered"]
    assert {event.operation for event in events} == {"policy of p"}


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
def test_every_further_cycle_takes_a_token(drive: Driver) -> None:
    """Every further cycle takes a token, and an update that succeeds pays in."""
    budget = Budget(TokenBucket(capacity=2))
    policy = POLICY.with_budget(budget)
    assert drive(Store(writes=(overtaken(), overtaken())), policy=policy).error is None
    outcome = drive(Store(writes=(Fault(Conflict), Fault(Conflict))), policy=policy)
    assert outcome.report is not None
    assert outcome.report.reason is Reason.BUDGET
