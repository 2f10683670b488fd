"""Failures that a run keeps: their names, texts, times and details, without a listener as with one."""

from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason, Stop
from forbear.core.report import report
from forbear.core.verdict import TRANSIENT
from forbear.policy import retry
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure, Failure
from forbear.run.record import attempts_of
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.testing.virtual_clock import virtual_time


def failure(text: str = "no", /, **details: object) -> Failure:
    """Return a failure after two seconds, a plain one without `details`."""
    error = OSError(text)
    made = DetailedFailure(TRANSIENT, error, **details) if details else Failure(TRANSIENT, error)  # type: ignore[arg-type]
    made.elapsed = 2.0
    return made


def kept(*failures: Failure, first: int = 1) -> tuple[Any, ...]:
    """Return the failures as a run keeps them, whose attempt `first` is the first to fail."""
    run = Run(retry(OSError), "work", current.get(), 0.0)
    run.attempt = first
    for each in failures:
        run.schedule(each, 0.5)
    return run.failures


def test_a_failure_without_details_gets_its_time_from_the_run() -> None:
    """The run began at 100, and failed two seconds later."""
    attempts = attempts_of(kept(failure(), first=3), 100.0)
    assert attempts == (Attempt(3, "OSError", "no", 2.0, 0.5),)
    assert attempts[0].time == 102.0


def test_the_times_of_a_report_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last failure and its report passes time, above all at the first failure of a process."""
    monkeypatch.setattr(type(current.get()), "now", staticmethod(partial(next, count(100.0))))
    run = Run(retry(OSError), "work", current.get(), 0.0)
    run.schedule(failure(), 0.5)
    run.give_up(Stop(Reason.ATTEMPTS), failure())
    assert run.report is not None
    assert [attempt.time for attempt in run.report.attempts] == [100.0, 100.0]


def test_a_failure_with_details_keeps_them() -> None:
    """The time is the one that the details name."""
    ids = (("x-id", "7"),)
    attempts = attempts_of(kept(failure(details=(55.0, 503, ids))), 100.0)
    assert attempts == (Attempt(1, "OSError", "no", 2.0, 0.5, 55.0, 503, ids),)
    assert attempts[0].time == 55.0


@pytest.mark.parametrize(("name", "shown"), [(None, "OSError"), ("HTTP 503", "HTTP 503")])
def test_a_failure_has_its_own_name_or_that_of_its_error(name: str | None, shown: str) -> None:
    """A run keeps the class of an error until somebody reads its name."""
    (attempt,) = attempts_of(kept(failure(name=name)), 100.0)
    assert attempt.error == shown


@pytest.mark.parametrize(("length", "left"), [(4096, 4096), (4097, 4096)])
@pytest.mark.parametrize("details", [{}, {"details": (55.0, None, ())}], ids=["plain", "with details"])
def test_a_long_text_is_cut(length: int, left: int, details: dict[str, object]) -> None:
    """A run may wait for long with it."""
    ((_, _, text, *_),) = kept(failure("x" * length, **details))
    assert text == "x" * left


@pytest.mark.parametrize("details", [{}, {"details": (55.0, None, ())}], ids=["plain", "with details"])
def test_the_middle_of_a_long_run_gives_way(details: dict[str, object]) -> None:
    """The first and the last 16 failures are kept."""
    failures = kept(*(failure(**details) for _ in range(40)))
    numbers = [attempt.number for attempt in attempts_of(failures, 0.0)]
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
