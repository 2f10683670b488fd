"""One update, case by case, in sync and async code alike: applied once, or an error that tells the truth."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from forbear.core.decide import Reason
from forbear.core.verdict import Kind, Verdict
from forbear.run.switch import disabled
from forbear_testkit.read_modify_write.drivers import DRIVERS, POLICY, Driver
from forbear_testkit.read_modify_write.store import (
    MINE,
    Conflict,
    Denied,
    Doc,
    Down,
    Fault,
    Refused,
    Store,
    is_conflict,
    late,
    lost,
    mine,
    modify,
    overtaken,
)
from forbear_testkit.run.remote_budget import Remote

every_driver = pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)


def is_never_there(doc: Doc) -> bool:
    """A `mine` that finds nothing."""
    return False


class Case(NamedTuple):
    """A fault and its end: an `error` or success, and how often the change is then `applied`."""

    name: str
    reads: tuple[Fault | None, ...] = ()
    writes: tuple[Fault | None, ...] = ()
    mine: bool = True
    error: type[Exception] | None = None
    reason: Reason | None = None
    maybe: bool = False
    applied: int = 1
    written: int = 1
    cycles: int = 1


CASES = [
    Case("all goes well"),
    Case("others are quicker", writes=(overtaken(), overtaken()), mine=False, written=3, cycles=3),
    Case("others are quicker, with mine", writes=(overtaken(), overtaken()), written=3, cycles=3),
    Case("others are always quicker", writes=5 * (overtaken(),), error=Conflict, reason=Reason.ATTEMPTS, applied=0,
         written=5, cycles=5),
    Case("the reply is lost after the commit", writes=(lost(),), cycles=2),
    Case("the reply is lost after the commit, nobody can tell", writes=(lost(),), mine=False, error=Down,
         reason=Reason.UNSAFE, maybe=True),
    Case("the write is lost", writes=(Fault(Down),), written=2, cycles=2),
    Case("the write is lost, nobody can tell", writes=(Fault(Down),), mine=False, error=Down, reason=Reason.UNSAFE,
         maybe=True, applied=0),
    Case("a late write meets its successor", writes=(late(),), written=2, cycles=3),
    Case("doubt survives a conflict", writes=(late(), overtaken(), None), written=2, cycles=3),
    Case("doubt survives a failed read", reads=(None, Fault(Down)), writes=(lost(),), cycles=3),
    Case("a lost write, then a conflict with another", writes=(Fault(Down), overtaken()), written=3, cycles=3),
    Case("certainly not executed", writes=(Fault(Refused), Fault(Refused)), written=3, cycles=3),
    Case("certainly not executed, without mine", writes=(Fault(Refused),), mine=False, written=2, cycles=2),
    Case("a conflict after one that was not executed", writes=(Fault(Refused), overtaken()), mine=False, written=3,
         cycles=3),
    Case("a read fails", reads=(Fault(Down), Fault(Down)), mine=False, cycles=3),
    Case("a read fails after a conflict", reads=(None, Fault(Down)), writes=(overtaken(),), mine=False, written=2,
         cycles=3),
    Case("reads fail for ever", reads=5 * (Fault(Down),), error=Down, reason=Reason.ATTEMPTS, applied=0, written=0,
         cycles=5),
    Case("a read is refused for good", reads=(Fault(Denied),), error=Denied, applied=0, written=0),
    Case("a write is refused for good", writes=(Fault(Denied),), error=Denied, applied=0),
    Case("a write is refused after a conflict", writes=(overtaken(), Fault(Denied)), error=Denied,
         reason=Reason.PERMANENT, applied=0, written=2, cycles=2),
    Case("a read is refused in doubt", reads=(None, Fault(Denied)), writes=(lost(),), error=Denied,
         reason=Reason.PERMANENT, maybe=True, cycles=2),
    Case("a write is refused in doubt", writes=(late(), Fault(Denied)), error=Denied, reason=Reason.PERMANENT,
         maybe=True, written=2, cycles=2),
    Case("reads fail for ever in doubt", reads=(None, *4 * (Fault(Down),)), writes=(lost(),), error=Down,
         reason=Reason.ATTEMPTS, maybe=True, cycles=5),
    Case("writes are lost for ever", writes=5 * (Fault(Down),), error=Down, reason=Reason.ATTEMPTS, maybe=True,
         applied=0, written=5, cycles=5),
]  # fmt: skip


@every_driver
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_change_is_applied_as_often_as_it_should_be(drive: Driver, case: Case) -> None:
    """The change is applied as often as it should be, after as many writes, and an error says whether it may be."""
    store = Store(case.reads, case.writes)
    outcome = drive(store, mine=mine if case.mine else None)
    assert type(outcome.error) is (case.error or type(None))
    assert (store.applied, store.writes, store.reads) == (case.applied, case.written, case.cycles)
    assert outcome.slept == [1] * (case.cycles - 1)
    found = outcome.report
    assert (found.reason if found else None) is case.reason
    assert (found.maybe_done if found else False) is case.maybe
    if case.error is None:
        assert outcome.value == store.doc
    if found:
        assert len(found.attempts) == case.cycles


@every_driver
def test_what_is_returned(drive: Driver) -> None:
    """It is what `write` returned, the written value where that was None, or what was read where it was there."""

    def keep_silent(doc: Doc) -> None:
        store.write(doc)

    store = Store()
    assert drive(store).value == Doc(2, (MINE,))
    assert drive(store, write=keep_silent).value == Doc(2, (MINE, MINE))
    store = Store(writes=(lost(),))
    assert drive(store).value == Doc(2, (MINE,))


@every_driver
def test_mine_is_asked_only_in_doubt(drive: Driver) -> None:
    """`mine` is not asked about states before the update, nor about conflicts."""
    asked: list[int] = []

    def ask(doc: Doc) -> bool:
        asked.append(doc.version)
        return mine(doc)

    drive(Store(reads=(Fault(Down),), writes=(overtaken(), Fault(Refused))), mine=ask)
    assert asked == []
    drive(Store(writes=(overtaken(), Fault(Down), overtaken())), mine=ask)
    assert asked == [2, 3]


@every_driver
def test_a_failed_read_leaves_no_doubt_under_a_budget_that_is_awaited(drive: Driver) -> None:
    """The retry is scheduled when the budget has answered, and a read changes nothing then either."""

    def ask(doc: Doc) -> bool:
        raise AssertionError(f"nothing was written, but `mine` was asked: {doc}")

    outcome = drive(Store(reads=(Fault(Down),)), mine=ask, policy=POLICY.with_budget(Remote(True)))
    assert outcome.error is None


@every_driver
@pytest.mark.parametrize("part", ["modify", "mine", "conflict"])
def test_errors_of_the_other_parts_come_out(drive: Driver, part: str) -> None:
    """They are not retried, transient or not, and in doubt they say that the change may have been applied."""
    store = Store(writes=(lost(), None))
    calls = 0

    def breaks(value: object) -> Any:
        nonlocal calls
        calls += 1
        if part == "modify" and calls == 1:
            assert isinstance(value, Doc)
            return modify(value)
        raise Down(part)

    match part:
        case "modify":
            outcome = drive(store, modify=breaks, mine=is_never_there)
        case "mine":
            outcome = drive(store, mine=breaks)
        case _:
            outcome = drive(store, conflict=breaks)
    assert isinstance(outcome.error, Down)
    assert outcome.error.args == (part,)
    assert store.writes == 1
    if part == "conflict":
        assert isinstance(outcome.error.__context__, Down)
    else:
        assert outcome.report is not None
        assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.UNSAFE, True)


@every_driver
def test_an_error_of_modify_is_raised_unchanged(drive: Driver) -> None:
    """An error of `modify` in the first cycle is raised without a note."""

    def breaks(doc: Doc) -> Doc:
        raise KeyError(doc.version)

    outcome = drive(Store(), modify=breaks)
    assert isinstance(outcome.error, KeyError)
    assert outcome.report is None
    assert not hasattr(outcome.error, "__notes__")


@every_driver
def test_a_conflict_that_asks_for_a_wait_gets_it(drive: Driver) -> None:
    """A conflict whose verdict asks for a wait gets it, whether `conflict` recognises it or the policy does."""
    asked = POLICY.with_on(lambda _: Verdict(Kind.CONFLICT, retry_after=7))
    recognisers: list[Callable[[Exception], bool]] = [is_conflict, lambda _: False]
    for recognise in recognisers:
        store = Store(writes=(overtaken(),))
        outcome = drive(store, conflict=recognise, policy=asked)
        assert outcome.value == store.doc
        assert 7 <= outcome.slept[0] < 8.1


@every_driver
def test_a_conflict_is_raised_unchanged_with_retries_off(drive: Driver) -> None:
    """With retries off the first conflict is raised unchanged."""
    with disabled():
        outcome = drive(Store(writes=(overtaken(),)))
    assert isinstance(outcome.error, Conflict)
    assert outcome.report is None


@every_driver
def test_the_timeout_ends_the_cycles(drive: Driver) -> None:
    """A wait that would pass the deadline is not begun, and the note says so."""
    outcome = drive(Store(writes=100 * (overtaken(),)), policy=POLICY.with_attempts(None).with_timeout(3.5))
    assert outcome.slept == [1, 1, 1]
    assert outcome.report is not None
    assert outcome.report.reason is Reason.TIMEOUT
    assert outcome.report.operation.endswith("write")
