"""Failures that a run keeps: their names, texts, times and details, without a listener as with one."""

from typing import NamedTuple

import pytest

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.core.verdict import TRANSIENT
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure, Failure
from forbear.run.record import attempts_of, with_failure
from forbear.run.runtime import current
from forbear.testing.virtual_clock import virtual_time


def failure(text: str = "no", **details: object) -> Failure:
    """Return a failure after two seconds."""
    made = DetailedFailure(TRANSIENT, OSError(text), **details)  # type: ignore[arg-type]
    made.elapsed = 2.0
    return made


def test_a_failure_without_details_gets_its_time_from_the_run() -> None:
    """The run began at 100, and failed two seconds later."""
    kept = with_failure((), 3, failure(), 0.5)
    assert attempts_of(kept, 100.0) == (Attempt(3, "OSError", "no", 2.0, 0.5),)
    assert attempts_of(kept, 100.0)[0].time == 102.0


def test_a_failure_with_details_keeps_them() -> None:
    """The time is the one that the details name."""
    ids = (("x-id", "7"),)
    kept = with_failure((), 1, failure(details=(55.0, 503, ids)), 0.5)
    assert attempts_of(kept, 100.0) == (Attempt(1, "OSError", "no", 2.0, 0.5, 55.0, 503, ids),)
    assert attempts_of(kept, 100.0)[0].time == 55.0


@pytest.mark.parametrize(("length", "left"), [(4096, 4096), (4097, 4096)])
def test_a_long_text_is_cut(length: int, left: int) -> None:
    """A run may wait for long with it."""
    (kept,) = with_failure((), 1, failure("x" * length), 0.5)
    assert isinstance(kept, tuple)
    assert kept[2] == "x" * left


@pytest.mark.parametrize("details", [(), (55.0, None, ())])
def test_the_middle_of_a_long_run_gives_way(details: tuple[object, ...]) -> None:
    """The first and the last 16 failures are kept."""
    kept: tuple[object, ...] = ()
    for number in range(1, 41):
        kept = with_failure(kept, number, failure(details=details), 0.5)  # type: ignore[arg-type]
    numbers = [attempt.number for attempt in attempts_of(kept, 0.0)]  # type: ignore[arg-type]
    assert numbers == [*range(1, 17), *range(25, 41)]


class Subject(NamedTuple):
    """The request of a run."""

    method: str = "POST"
    resource: str | None = "https://example.com/pay"


@pytest.mark.parametrize("subject", [Subject(), None], ids=["a request", "a function"])
def test_an_attempt_in_doubt_names_its_request(subject: Subject | None) -> None:
    """The report says which attempt it was, and that none before it is kept."""
    error = OSError("lost")
    with virtual_time() as clock:
        started = current.get().monotonic()
        clock.advance(3)
        leave_in_doubt(error, "pay", "it may not", current.get(), started, subject, number=4)
    found = report(error)
    assert found is not None
    assert (found.method, found.resource) == (subject or (None, None))
    assert (found.operation, found.text, found.reason) == ("pay", "it may not", Reason.UNSAFE)
    assert (found.count, found.omitted, found.elapsed) == (4, 3, 3.0)
