"""Nested retries do not multiply: an error that was retried inside a run is not retried by the run around it."""

import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.testing.script import AsyncScript, Script
from forbear.testing.virtual_time import virtual_time
from tests.run.cases import BUSY, Busy
from tests.run.drivers import DRIVERS, Driver

every_driver = pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)

INNER = BUSY.with_attempts(3)
AT_ONCE = retry(on=Busy, attempts=1, backoff=Constant(0))


def nested(drive: Driver, policy: Policy, *outcomes: object) -> tuple[object, Script]:
    """The outcome of `outcomes` under `policy`, as something to be retried once more by `drive`."""
    script = AsyncScript(*outcomes) if drive.backend else Script(*outcomes)
    return policy(script), script


@every_driver
@pytest.mark.parametrize("inner", [INNER, AT_ONCE], ids=["inner-waits", "inner-takes-no-time"])
def test_an_exhausted_error_is_not_retried_again(drive: Driver, inner: Policy) -> None:
    """The inner run's report is the one that comes out."""
    function, script = nested(drive, inner, *(10 * [Busy]))
    outcome = drive(BUSY, *(10 * [function]))
    attempts = len(script.calls)
    assert len(outcome.calls) == 1
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    assert len(found.attempts) == attempts
    assert outcome.error.__notes__ == [found.note]


@every_driver
def test_retry_exhausted_retries_it_again(drive: Driver) -> None:
    """Told to, the outer policy multiplies; its own report and note take the place of the inner ones."""
    function, script = nested(drive, INNER, *(10 * [Busy]))
    outcome = drive(BUSY.with_attempts(2).replace(retry_exhausted=True), function, function)
    assert len(script.calls) == 6
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    assert (len(found.attempts), found.reason) == (2, Reason.ATTEMPTS)
    assert outcome.error.__notes__ == [found.note]


@every_driver
def test_an_error_that_was_permanent_inside_may_be_transient_outside(drive: Driver) -> None:
    """The inner policy did not retry it, so the outer one may."""
    function, script = nested(drive, retry(on=OSError), Busy, Busy, "done")
    assert drive(BUSY, function, function, function).value == "done"
    assert len(script.calls) == 3


@every_driver
def test_an_inner_recovery_is_invisible_outside(drive: Driver) -> None:
    """The outer policy sees one attempt that took a while."""
    function, _ = nested(drive, INNER, Busy, Busy, "done")
    outcome = drive(BUSY, function)
    assert (outcome.value, len(outcome.calls), outcome.slept) == ("done", 1, [1, 1])


@every_driver
def test_the_same_exception_raised_in_a_later_run_is_retried_afresh(drive: Driver) -> None:
    """It still carries the report of the earlier run, which says nothing about this one, even at the same instant."""
    error = Busy("always the same")
    first = drive(BUSY.with_attempts(2), error, error)
    assert first.error is error
    assert len(first.calls) == 2
    assert drive(BUSY, error, error, "done").starts == [0, 1, 2]
    again = drive(BUSY.with_attempts(3), error, error, error)
    assert len(again.calls) == 3
    found = report(error)
    assert found is not None
    assert error.__notes__ == [found.note]
    assert len(found.attempts) == 3


def test_two_runs_at_the_same_instant() -> None:
    """No clock tells an old error from a new one: runs that take no time are told apart, too."""
    error = Busy()
    with virtual_time():
        for _ in range(3):
            script = Script(error, error)
            with pytest.raises(Busy):
                retry(on=Busy, attempts=2, backoff=Constant(0)).call(script)
            assert len(script.calls) == 2
