"""`read` and `write` with retries of their own: no attempt is multiplied, and no doubt of theirs is lost."""

import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.core.verdict import CONFLICT
from forbear.policy import Policy, retry
from forbear.read_modify_write import update
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.read_modify_write.drivers import DRIVERS, POLICY, Driver
from forbear_testkit.read_modify_write.store import (
    Conflict,
    Denied,
    Doc,
    Down,
    Fault,
    Store,
    is_conflict,
    late,
    lost,
    mine,
    modify,
    overtaken,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*blocks the event loop")  # the inner policies are sync in each driver

every_driver = pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
with_and_without_mine = pytest.mark.parametrize("knows", [True, False], ids=["mine", "no-mine"])

INNER = retry(on=Down, attempts=3, backoff=Constant(2), name="inner")
UNSAFE = retry(on=Down, attempts=3, backoff=Constant(2), repeatable=False)
IGNORANT = POLICY.with_on(KeyError)
"""A policy that knows none of the store's errors."""


@every_driver
@with_and_without_mine
def test_a_conflict_with_the_first_attempt_of_an_inner_policy(drive: Driver, knows: bool) -> None:
    """A write that was repeated within `write` may be in conflict with itself: the doubt is the cycle's, too."""
    store = Store(writes=(lost(),))
    outcome = drive(store, write=INNER(store.write), mine=mine if knows else None)
    assert (store.applied, store.writes) == (1, 2)
    if knows:
        assert (outcome.error, outcome.slept) == (None, [2, 1])
    else:
        assert isinstance(outcome.error, Conflict)
        assert outcome.report is not None
        assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.UNSAFE, True)


@every_driver
def test_a_conflict_that_an_inner_policy_repeated_in_vain_is_the_cycles_business(drive: Driver) -> None:
    """Only the whole cycle can help, whatever limit the inner policy has reached."""
    store = Store(writes=(overtaken(),))
    outcome = drive(store, write=retry(on=Conflict, attempts=2, backoff=Constant(2))(store.write))
    assert outcome.error is None
    assert (store.applied, store.reads, store.writes) == (1, 2, 3)


@every_driver
def test_reads_that_were_tried_enough(drive: Driver) -> None:
    """They are not tried again, and the report is the inner one."""
    store = Store(reads=9 * (Fault(Down),))
    outcome = drive(store, read=INNER(store.read))
    assert store.reads == 3
    assert outcome.report is not None
    assert (outcome.report.operation, len(outcome.report.attempts), outcome.report.maybe_done) == ("inner", 3, False)


@every_driver
def test_reads_that_were_tried_enough_in_doubt(drive: Driver) -> None:
    """The report is that of the cycle: it knows that the change may have been applied."""
    store = Store(reads=(None, *9 * (Fault(Down),)), writes=(lost(),))
    outcome = drive(store, read=INNER(store.read))
    assert store.reads == 4
    assert outcome.report is not None
    assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.ATTEMPTS, True)
    assert "inner gave up: limit of 3 attempts reached" in outcome.report.note


@every_driver
@with_and_without_mine
@pytest.mark.parametrize("policy", [POLICY, IGNORANT], ids=["knows-the-error", "ignorant"])
def test_writes_that_were_tried_enough(drive: Driver, knows: bool, policy: Policy) -> None:
    """They are not tried again, and the report says that the change may have been applied."""
    store = Store(writes=(*2 * (Fault(Down),), lost(), *9 * (Fault(Down),)))
    outcome = drive(store, write=INNER(store.write), policy=policy, mine=mine if knows else None)
    assert (store.reads, store.writes, store.applied) == (1, 3, 1)
    assert outcome.report is not None
    assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.ATTEMPTS, True)


@every_driver
def test_trying_again_what_was_tried_enough(drive: Driver) -> None:
    """With `retry_exhausted` the cycle goes on, and doubts."""
    store = Store(reads=3 * (Fault(Down),), writes=(*2 * (Fault(Down),), lost()))
    outcome = drive(
        store, read=INNER(store.read), write=INNER(store.write), policy=POLICY.replace(retry_exhausted=True)
    )
    assert outcome.error is None
    assert (store.reads, store.writes, store.applied) == (5, 3, 1)


@every_driver
@with_and_without_mine
def test_a_write_that_an_inner_policy_dared_not_repeat(drive: Driver, knows: bool) -> None:
    """It is the cycle's to repeat, even if its own policy does not know the error, for it can look first."""
    store = Store(writes=(lost(),))
    outcome = drive(store, write=UNSAFE(store.write), policy=IGNORANT, mine=mine if knows else None)
    assert store.applied == 1
    if knows:
        assert outcome.error is None
    else:
        assert isinstance(outcome.error, Down)
        assert outcome.report is not None
        assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.UNSAFE, True)


@every_driver
def test_a_conflict_that_only_the_inner_policy_knows(drive: Driver) -> None:
    """A conflict that `write` gave up is one, even if `conflict` does not recognise it."""
    store = Store(writes=(overtaken(),))
    inner = retry(on=lambda _: CONFLICT, backoff=Constant(2))
    outcome = drive(store, write=inner(store.write), conflict=lambda _: False)
    assert (outcome.error, store.writes, store.applied) == (None, 2, 1)


@every_driver
def test_a_write_that_had_only_one_try(drive: Driver) -> None:
    """One that an inner policy gave up on at its first attempt may have been executed, too."""
    store = Store(writes=(lost(),))
    outcome = drive(store, write=retry(on=Down, attempts=1)(store.write), policy=IGNORANT)
    assert (store.writes, store.applied) == (1, 1)
    assert outcome.report is not None
    assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.ATTEMPTS, True)


@every_driver
def test_an_update_within_an_update(drive: Driver) -> None:
    """If `write` is an update of its own and ends in doubt, if only after one cycle, the outer one is in doubt."""
    store = Store(reads=(Fault(Down),), writes=(lost(), Fault(Denied)))

    def write(doc: Doc) -> Doc:
        return update(
            read=lambda: doc,
            modify=lambda doc: doc,
            write=INNER(store.write),
            conflict=is_conflict,
            policy=POLICY,
        )

    outcome = drive(store, write=write)
    assert isinstance(outcome.error, Denied)
    assert (store.reads, store.writes, store.applied) == (2, 2, 1)
    assert outcome.report is not None
    assert (len(outcome.report.attempts), outcome.report.maybe_done) == (2, True)


def test_a_policy_around_an_update_keeps_its_doubt() -> None:
    """The report on the write, which must not be repeated, stops that policy, and does not hide the doubt."""
    store = Store(writes=(lost(),))

    def change() -> Doc:
        return update(
            read=store.read,
            modify=modify,
            write=UNSAFE(store.write),
            conflict=is_conflict,
            mine=mine,
            policy=POLICY.with_attempts(1),
        )

    with virtual_time(), pytest.raises(Down) as caught:
        retry(on=Down, attempts=3).call(change)
    assert (store.writes, store.applied) == (1, 1)
    result = report(caught.value)
    assert result is not None
    assert result.maybe_done
    assert "may have worked" in caught.value.__notes__[0]


@every_driver
def test_a_refusal_after_an_inner_retry(drive: Driver) -> None:
    """The error that ends it is permanent, but the attempt before may have been executed."""
    store = Store(writes=(late(), Fault(Denied)))
    outcome = drive(store, write=INNER(store.write))
    assert isinstance(outcome.error, Denied)
    assert store.reads == 1
    assert outcome.report is not None
    assert (outcome.report.reason, outcome.report.maybe_done) == (Reason.PERMANENT, True)


@every_driver
def test_the_report_of_an_earlier_run_does_not_count(drive: Driver) -> None:
    """An exception that is raised again carries a report of a run that has nothing to do with this one."""
    old = Down("old")

    def fail() -> None:
        raise old

    with virtual_time(), pytest.raises(Down):
        INNER.call(fail)
    assert report(old) is not None
    store = Store()
    failures = [old]

    def read() -> Doc:
        if failures:
            raise failures.pop()
        return store.read()

    outcome = drive(store, read=read)
    assert (outcome.error, outcome.slept) == (None, [1])
