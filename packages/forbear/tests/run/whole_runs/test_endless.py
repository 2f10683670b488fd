"""Runs without end keep a bounded memory: the first and the last failures, and how many there were between them."""

import tracemalloc

import anyio
import pytest

from forbear.core.backoff import Constant
from forbear.core.events import Event, GaveUp, Recovered
from forbear.core.report import report
from forbear.policy import retry
from forbear.run import judges
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import Busy
from forbear_testkit.run.drivers import DRIVERS, Driver

KEPT = 16
ENDLESS = retry(on=Busy, attempts=None, timeout=None, unlimited=True, backoff=Constant(1))


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
@pytest.mark.parametrize("listens", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("count", [2 * KEPT, 2 * KEPT + 1, 100])
def test_the_first_and_the_last_failures_are_kept(drive: Driver, listens: bool, count: int) -> None:
    """The report says how many are missing, and its note how many attempts there were in all."""
    told: list[Event] = []
    policy = ENDLESS.with_attempts(count).with_on_event(told.append if listens else None)
    outcome = drive(policy, *(Busy(str(number)) for number in range(1, count + 1)))
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    expected = [number for number in range(1, count + 1) if number <= KEPT or number > count - KEPT]
    assert [attempt.number for attempt in found.attempts] == expected
    assert [attempt.text for attempt in found.attempts] == [str(number) for number in expected]
    assert (found.count, found.omitted) == (count, count - 2 * KEPT)
    omitted = f" ({count - 2 * KEPT} of them omitted from the report)" if count > 2 * KEPT else ""
    assert found.note.startswith(f"forbear: gave up after {count} attempts{omitted} in {count - 1} s: ")
    assert [event.report for event in told if isinstance(event, GaveUp)] == [found] * listens


def test_a_late_recovery_tells_of_as_many() -> None:
    """Its event knows the attempt that worked, so how many failed before it."""
    told: list[Event] = []
    failures = iter(range(99))

    def work() -> None:
        if next(failures, None) is not None:
            raise Busy

    with virtual_time():
        ENDLESS.with_on_event(told.append).call(work)
    recovered = told[-1]
    assert isinstance(recovered, Recovered)
    assert (recovered.attempt, len(recovered.failures)) == (100, 2 * KEPT)


def held_after(polls: int) -> int:
    """The bytes that a run holds after so many polls, whose errors are long."""
    held: list[int] = []
    done = iter(range(polls))

    def poll() -> None:
        if next(done, None) is None:
            held.append(tracemalloc.get_traced_memory()[0])
        else:
            raise Busy(100_000 * "x")

    with virtual_time() as time:
        tracemalloc.start()
        try:
            ENDLESS.with_backoff(Constant(0)).call(poll)
        finally:
            tracemalloc.stop()
        assert len(time.slept) == polls
    return held[0]


def test_memory_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with the attempts nor with what errors say."""
    monkeypatch.setattr(judges, "listeners", [tuple])  # pytest keeps the lines of the log
    held_after(50)
    assert held_after(500) < held_after(50) + 40_000 < 500_000  # the virtual clock keeps each wait, 32 bytes and more


def test_a_task_that_waits_holds_little() -> None:
    """The longest run is no bigger than a short one, in coroutines too."""

    async def fail() -> None:
        raise Busy

    async def main() -> None:
        await ENDLESS.with_attempts(300).acall(fail)

    with virtual_time(), pytest.raises(Busy) as caught:
        anyio.run(main)
    found = report(caught.value)
    assert found is not None
    assert len(found.attempts) == 2 * KEPT
