"""Listeners and reports: every number and text of every event of a run."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.core.attempt import Attempt
from forbear.core.decide import Reason, Stop
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.events import Failed, GaveUp, Recovered, Scheduled, WouldStop
from forbear.run import record
from forbear.run.failure import FORGOTTEN, DetailedFailure, Failure
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime

POLICY = forbear.retry(OSError, backoff=forbear.Constant(5), timeout=None)
SUBJECT: Any = SimpleNamespace(method="POST", resource="https://shop.example/orders")
IDS = (("x-request-id", "7"),)


@pytest.fixture(name="time", autouse=True)
def _time() -> Iterator[VirtualTime]:
    with virtual_time() as time:
        time.advance(50)  # so that no run begins at zero
        yield time


def begun(events: list[Any] | None = None, **options: Any) -> Run:
    """Return a run that begins now, which tells its events to a list."""
    policy = POLICY if events is None else POLICY.with_changes(on_event=events.append)
    runtime = current.get()
    return Run(policy, "shop.order", runtime, runtime.monotonic(), **options)


def failure(verdict: Verdict = TRANSIENT, text: str = "lost", **details: Any) -> DetailedFailure:
    """Return a failure of which more is known."""
    hint, billed = details.pop("hint", ""), details.pop("billed", False)
    made = DetailedFailure(verdict, OSError(text), **details)
    made.hint, made.billed, made.elapsed = hint, billed, 0.0
    return made


def test_every_event_of_a_recovery(time: VirtualTime) -> None:
    """Failures and retries come with their numbers, seconds, waits and details; the end has them all."""
    events = list[Any]()
    run, began = begun(events), current.get().now()
    time.advance(1)
    verdict = TRANSIENT.replace(retry_after=2, wait_from="Retry-After")
    first = failure(verdict, "first", name="HTTP 503", details=(began + 0.5, 503, IDS), vouched=True, billed=True)
    assert run.after(first) is run
    time.advance(6)
    second = Failure(TRANSIENT, OSError("second"))
    assert run.after(second) is run
    time.advance(7)
    run.succeeded()
    attempts = (
        Attempt(1, "HTTP 503", "first", 1.0, 5.0, began + 0.5, 503, IDS),
        Attempt(2, "OSError", "second", 7.0, 5.0, began + 7.0),
    )
    assert events == [
        Failed("shop.order", 1, 1.0, first.error, attempts[0].text, verdict, "HTTP 503"),
        Scheduled("shop.order", 2, 1.0, 5.0, attempts[0], vouched=True, wait_from="Retry-After"),
        Failed("shop.order", 2, 7.0, second.error, attempts[1].text, TRANSIENT, "OSError"),
        Scheduled("shop.order", 3, 7.0, 5.0, attempts[1], vouched=True),
        Recovered("shop.order", 3, 14.0, attempts, billed=True),
    ]
    assert [attempt.time for attempt in events[-1].failures] == [began + 0.5, began + 7.0]


def test_the_end_of_a_run_that_gives_up(time: VirtualTime) -> None:
    """The report has the request, all attempts, what is in doubt and what may have been billed."""
    events = list[Any]()
    run, began = begun(events, subject=SUBJECT), current.get().now()
    run.after(failure(vouched=True, billed=True))
    time.advance(5)
    last = failure(PERMANENT, "no", name="HTTP 409", details=(began + 4.5, 409, IDS), maybe_done=True, hint="; look")
    assert run.after(last) is None
    report = run.report
    assert report is not None
    assert report.attempts == (
        Attempt(1, "OSError", "lost", 0.0, 5.0, began), Attempt(2, "HTTP 409", "no", 5.0, None, began + 4.5, 409, IDS),
    )  # fmt: skip
    assert (report.operation, report.elapsed, report.reason, report.text) == (
        "shop.order", 5.0, Reason.PERMANENT, "the error is permanent",
    )  # fmt: skip
    assert (report.method, report.resource, report.omitted) == ("POST", "https://shop.example/orders", 0)
    assert (report.maybe_done, report.hint, report.vouched, report.billed) == (True, "; look", True, True)
    assert events[2:] == [
        Failed("shop.order", 2, 5.0, last.error, report.attempts[1].text, PERMANENT, "HTTP 409"),
        GaveUp("shop.order", report),
    ]
    assert forbear.report(last.error) is report
    assert run.in_doubt


@pytest.mark.parametrize("listens", [False, True])
def test_a_run_that_a_read_settles(listens: bool, time: VirtualTime) -> None:
    """It ends well, although its last attempt failed; the report is not that of an error."""
    events = list[Any]()
    run, began = begun(events if listens else None, subject=SUBJECT), current.get().now()
    run.after(failure())
    time.advance(8)
    last = failure(CONFLICT, "taken", name="HTTP 409", maybe_done=True)
    run.settle(last)
    report = run.report
    assert report is not None
    assert (report.reason, report.settled, report.text) == (Reason.SETTLED, True, Reason.SETTLED.value)
    assert (report.elapsed, report.maybe_done, report.count) == (8.0, False, 2)
    assert report.attempts[1] == Attempt(2, "HTTP 409", "taken", 8.0, None, began + 8.0)
    assert last.elapsed == 8.0
    if listens:
        assert events[2:] == [
            Failed("shop.order", 2, 8.0, last.error, report.attempts[1].text, CONFLICT, "HTTP 409"),
            Recovered("shop.order", 2, 8.0, report.attempts, settled=True),
        ]


def test_a_retry_that_is_withdrawn(time: VirtualTime) -> None:
    """The attempt counts once, its failure is not told again, and nothing of it may have worked after its report."""
    events = list[Any]()
    run = begun(events)
    run.after(failure(NOT_EXECUTED, maybe_done=True))
    time.advance(2)
    again = failure(NOT_EXECUTED, "gone", maybe_done=True)
    again.elapsed = 2.0
    run.withdraw(Stop(Reason.BUDGET), again)
    report = run.report
    assert report is not None
    assert [(attempt.number, attempt.text) for attempt in report.attempts] == [(1, "gone")]
    assert (run.attempt, report.reason, report.maybe_done) == (1, Reason.BUDGET, False)
    assert [type(event) for event in events] == [Failed, Scheduled, GaveUp]
    assert not run.in_doubt


def test_what_leaves_a_run_in_doubt() -> None:
    """A failure whose outcome is unknown, unless the attempt only read."""
    for verdict, harmless, doubt in (
        (TRANSIENT, False, True),
        (TRANSIENT, True, False),
        (NOT_EXECUTED, False, False),
    ):
        run = begun()
        run.schedule(failure(verdict, harmless=harmless), 0.0)
        assert run.in_doubt is doubt
        last = begun()
        made = failure(verdict, harmless=harmless)
        made.elapsed = 0.0
        last.give_up(Stop(Reason.ATTEMPTS), made)
        assert last.in_doubt is doubt


def test_a_first_permanent_failure_has_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who looks for declined errors hears of it, if the error itself was declined."""
    told = list[Any]()

    def tell(*arguments: object) -> None:
        told.append(arguments)

    monkeypatch.setattr(record, "declined", [tell])
    run = begun()
    error = OSError("no")
    assert run.after(Failure(PERMANENT, error)) is None
    assert (run.report, told) == (None, [(error, POLICY, "shop.order")])
    begun().after(Failure(PERMANENT, error, "unsafe"))
    begun().after(DetailedFailure(PERMANENT, None, name="HTTP 404", text="no"))
    assert len(told) == 1
    later = begun()
    later.after(Failure(TRANSIENT, OSError()))
    later.after(Failure(PERMANENT, error))
    assert later.report is not None
    assert len(told) == 1
    doubtful = begun()
    doubtful.in_doubt = True
    doubtful.after(Failure(PERMANENT, error))
    assert doubtful.report is not None


def test_what_may_have_been_billed() -> None:
    """Only an attempt counts that was followed by another one, and of several the first."""
    run = begun()
    run.after(failure(billed=True))
    assert run.billed == 1
    run.after(failure(billed=True))
    assert (run.billed, run._is_billed) == (1, True)
    run = begun()
    run.billed = 1
    run.after(failure(PERMANENT, maybe_done=True))
    assert not run._is_billed


def test_a_warning_in_place_of_a_stop(time: VirtualTime) -> None:
    """It has the seconds and the number of the attempt, and needs no failure before it."""
    events = list[Any]()
    run = begun(events)
    time.advance(3)
    run.notify_would_stop("it may have charged")
    assert events == [WouldStop("shop.order", 1, 3.0, "it may have charged")]


def test_when_the_attempt_under_way_began(time: VirtualTime) -> None:
    """At the start of the run, or at the end of the wait before it, but for rounding errors."""
    for events in (None, list[Any]()):
        run = begun(events)
        assert run.began == run.started
        time.advance(2)
        run.after(failure(details=(1.0, None, ())))
        assert run.began == pytest.approx(run.started + 7.0, abs=1e-5)
        assert run.began < run.started + 7.0


def test_the_texts_of_long_runs() -> None:
    """Of 40 failures the report has the first 16 and the last 16, and the number of those between."""
    run = begun()
    for number in range(39):
        run.schedule(failure(text=f"{number + 1}"), 1.0)
    last = failure(text="40")
    last.elapsed = 39.0
    run.give_up(Stop(Reason.ATTEMPTS, "limit"), last)
    report = run.report
    assert report is not None
    assert [attempt.number for attempt in report.attempts] == [*range(1, 17), *range(25, 41)]
    assert (report.omitted, report.count) == (8, 40)


def test_a_key_that_the_service_may_have_forgotten() -> None:
    """No attempt begins after its end; one that begins at its end does."""
    for until, reason in ((5.0, None), (4.9, Reason.UNSAFE)):
        run = begun()
        made = failure()
        made.until = until
        grant = run.after(made)
        assert (grant is None) is (reason is not None)
        if run.report is not None:
            assert (run.report.reason, run.report.text) == (reason, FORGOTTEN)
