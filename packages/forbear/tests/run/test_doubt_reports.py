"""Attempts in doubt: the report on the error of one, and its requests, for later attempts of the same run."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.core.attempt import Attempt
from forbear.events import Reason
from forbear.run import doubt
from forbear.run.doubt import UNSAFE_CALL, leave_in_doubt, leave_same_unknown, was_left_unknown
from forbear.run.runtime import current
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime

POLICY = forbear.retry(OSError, attempts=3, timeout=None, backoff=forbear.Constant(10))


@pytest.fixture(name="time", autouse=True)
def _time() -> Iterator[VirtualTime]:
    with virtual_time() as time:
        time.advance(50)  # so that no run begins at zero
        yield time


class Cut(Exception):
    """The error of a request that was cut off."""


def test_a_request_that_was_cut_off(time: VirtualTime) -> None:
    """The report has the attempt with its error and times, the request, and why it must not be repeated."""
    runtime = current.get()
    started = runtime.monotonic()
    time.advance(7)
    error = Cut("cut off")
    subject: Any = SimpleNamespace(method="POST", resource="https://shop.example/orders")
    leave_in_doubt(error, "shop.charge", "it may have charged", runtime, started, subject, 3)
    report = forbear.report(error)
    assert report is not None
    assert report.attempts == (Attempt(3, "Cut", "cut off", 7.0, None, runtime.now()),)
    assert (report.operation, report.elapsed, report.reason, report.text) == (
        "shop.charge", 7.0, Reason.UNSAFE, "it may have charged",
    )  # fmt: skip
    assert (report.omitted, report.count) == (2, 3)
    assert (report.method, report.resource) == ("POST", "https://shop.example/orders")
    assert error.__notes__ == [report.note]


def test_an_attempt_of_which_nothing_else_is_known() -> None:
    """It is the first one, and the request is not named."""
    runtime, error = current.get(), Cut()
    leave_in_doubt(error, "work", "unsafe", runtime, runtime.monotonic())
    report = forbear.report(error)
    assert report is not None
    assert (report.count, report.omitted, report.method, report.resource) == (1, 0, None, None)


def test_an_outer_run_stops() -> None:
    """The report counts for the runs around, whatever the function raises in place of the error."""
    calls = list[int]()

    def work() -> None:
        calls.append(1)
        runtime = current.get()
        leave_in_doubt(Cut(), "work", "it may have charged", runtime, runtime.monotonic())
        raise OSError

    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no text
        POLICY.call(work)
    report = forbear.report(caught.value)
    assert report is not None
    assert (len(calls), report.text) == (1, "it may have charged")


def test_a_judge_that_raises_after_a_retry(time: VirtualTime) -> None:
    """The report is about the attempt that was judged, with its number and its time."""
    calls = list[int]()

    def work() -> str:
        calls.append(1)
        time.advance(1)
        return "bad"

    def judge(value: object) -> forbear.verdicts.Verdict:
        if len(calls) < 2:
            return forbear.verdicts.NOT_EXECUTED
        raise KeyError(value)

    policy = POLICY.with_changes(on_result=judge, repeatable=False, name="shop.charge")
    with pytest.raises(KeyError) as caught:
        policy.call(work)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.operation, report.text, report.elapsed) == ("shop.charge", UNSAFE_CALL, 12.0)
    assert [(attempt.number, attempt.error) for attempt in report.attempts] == [(2, "KeyError")]
    assert UNSAFE_CALL.endswith("; if it does none, say so with policy.with_repeatable(True)")


def test_a_request_that_an_earlier_attempt_left_unknown() -> None:
    """Only the outermost run around the caller knows it, in all its attempts, and no run after it."""
    seen = list[bool]()

    def inner() -> None:
        seen.append(was_left_unknown("request"))
        leave_same_unknown("request")
        leave_same_unknown(None)
        seen.append(was_left_unknown("request"))

    def outer() -> None:
        POLICY.call(inner)
        seen.append(was_left_unknown("other") or was_left_unknown(None))
        thread = threading.Thread(target=lambda: seen.append(was_left_unknown("request")))
        thread.start()
        thread.join()
        if len(seen) < 8:
            raise OSError

    for _ in range(2):
        POLICY.call(outer)
        assert seen == [False, True, False, False, True, True, False, False]
        seen.clear()
        assert not was_left_unknown("request")
    leave_same_unknown("request")
    assert not was_left_unknown("request")


def test_the_number_of_unknown_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run remembers so many, and those that come later are not remembered."""
    monkeypatch.setattr(doubt, "_MOST", 2)

    def work() -> list[bool]:
        for request in "abc":
            leave_same_unknown(request)
        return [was_left_unknown(request) for request in "abc"]

    assert POLICY.call(work) == [True, True, False]
