"""The error that is raised is the original one, with all it carried, and a note and a report on top."""

import asyncio
import pickle
import traceback
from dataclasses import dataclass

import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import retry
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, JUDGING, Busy
from forbear_testkit.run.drivers import DRIVERS, Driver

every_driver = pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)

ANY = retry(on=Exception, attempts=3, backoff=Constant(1))


def fail_because() -> None:
    """Fail from a cause, deep down."""
    try:
        raise LookupError("the cause")
    except LookupError as cause:
        raise Busy("the effect") from cause


def fail_while_handling() -> None:
    """Fail in the context of another failure."""
    try:
        raise LookupError("the context")
    except LookupError:
        raise Busy("the effect")  # noqa: B904 - on purpose


class Closed(Exception):
    """An error that lets nobody look at it."""

    def __getattribute__(self, name: str) -> object:
        if name == "__class__":
            return Closed
        raise KeyError(name)


def fail_closed() -> None:
    """Fail by such an error."""
    raise Closed("lost")


@pytest.mark.parametrize("called", ["plain", "async", "block"])
def test_an_error_that_cannot_be_looked_at_stays_the_error(called: str) -> None:
    """No failure to look at it takes its place, and the report is there."""

    async def afail() -> None:
        fail_closed()

    caught: object = None
    with virtual_time():
        try:
            if called == "plain":
                ANY.call(fail_closed)
            elif called == "async":
                asyncio.run(ANY.acall(afail))
            else:
                for attempt in ANY:
                    with attempt:
                        fail_closed()
        except Exception as error:
            caught = error
    assert type(caught) is Closed
    assert report(caught) is not None


@every_driver
def test_cause_and_traceback_are_intact(drive: Driver) -> None:
    """It was raised where it was raised, because of what caused it; the note says the rest."""
    outcome = drive(BUSY, *(5 * [fail_because]))
    error = outcome.error
    assert isinstance(error, Busy)
    assert isinstance(error.__cause__, LookupError)
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[-1] == "fail_because"
    assert frames.count("fail_because") == 1
    printed = "".join(traceback.format_exception(error))
    assert printed.endswith(
        "Busy: the effect\nforbear: gave up after 5 attempts in 4 s: default limit of 5 attempts reached [attempts]\n"
    )
    assert printed.count("forbear: gave up") == 1


@every_driver
def test_context_is_intact(drive: Driver) -> None:
    """Earlier attempts do not become the context of later ones: the waits are outside of any `except`."""
    outcome = drive(BUSY, *(5 * [fail_while_handling]))
    assert outcome.error is not None
    assert isinstance(outcome.error.__context__, LookupError)
    assert outcome.error.__context__.__context__ is None


@every_driver
def test_attempts_are_not_chained(drive: Driver) -> None:
    """The last error does not drag the earlier ones along."""
    outcome = drive(BUSY, *(5 * [Busy]))
    assert outcome.error is not None
    assert outcome.error.__context__ is None
    assert outcome.error.__cause__ is None


@every_driver
def test_the_report_tells_every_attempt(drive: Driver) -> None:
    """Number, type, text, time and wait of each, without the errors themselves."""
    outcome = drive(ANY.with_name("fetch"), Busy("one"), OSError(5, "two"), LookupError)
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    assert found.operation == "fetch"
    assert [(attempt.error, attempt.text) for attempt in found.attempts] == [
        ("Busy", "one"),
        ("OSError", "[Errno 5] two"),
        ("LookupError", ""),
    ]
    assert found.reason is Reason.ATTEMPTS


@every_driver
def test_the_error_pickles_with_its_report(drive: Driver) -> None:
    """The error and its report survive a process pool."""
    outcome = drive(BUSY, *(5 * [Busy]))
    assert outcome.error is not None
    copied = pickle.loads(pickle.dumps(outcome.error))
    mine, its = report(outcome.error), report(copied)
    assert mine is not None
    assert its is not None
    assert (its.attempts, its.elapsed, its.note) == (mine.attempts, mine.elapsed, mine.note)


class Silent(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise LookupError("no words")


@dataclass(frozen=True)
class Frozen(Exception):
    """An error that forbids attributes."""

    code: int


class Falsy(Exception):
    """An error that is not true, like an empty list of errors."""

    def __len__(self) -> int:
        return 0


@every_driver
@pytest.mark.parametrize("make", [Silent, lambda: Frozen(1), Falsy], ids=["silent", "frozen", "falsy"])
def test_odd_errors_are_retried_and_annotated_as_all_others(drive: Driver, make: object) -> None:
    """A class that cannot be printed, changed or tested for truth does not break the run."""
    assert callable(make)
    last = make()
    assert isinstance(last, Exception)
    outcome = drive(ANY, make(), make(), last)
    assert outcome.error is last
    assert outcome.starts == [0, 1, 2]
    found = report(last)
    assert found is not None
    assert last.__notes__ == [found.note]
    assert drive(ANY, make(), make(), "done").value == "done"


def test_an_error_that_cannot_be_printed_is_still_named() -> None:
    """Its type is in the report."""
    with virtual_time(), pytest.raises(Silent) as caught:
        ANY.call(_raise_silent)
    found = report(caught.value)
    assert found is not None
    assert found.attempts[0].error == "Silent"
    assert found.attempts[0].text == "(no text: its __str__ raised LookupError)"


def _raise_silent() -> None:
    raise Silent


@every_driver
def test_what_the_function_noted_stays(drive: Driver) -> None:
    """The note of the run comes after those of the function."""
    error = Busy("one")
    error.add_note("mind the gap")
    outcome = drive(BUSY.with_attempts(1), error)
    assert outcome.error is error
    assert error.__notes__ == [
        "mind the gap",
        "forbear: gave up after 1 attempt in 0 s: limit of 1 attempt reached [attempts]",
    ]


def test_an_error_inside_on_result_comes_out() -> None:
    """A predicate on values that fails is the caller's business, and is not retried."""

    def judge(value: object) -> bool:
        raise LookupError("no such rule")

    with virtual_time() as time, pytest.raises(LookupError, match="no such rule"):
        JUDGING.with_on(Exception).with_on_result(judge).call(str)
    assert time.slept == []
