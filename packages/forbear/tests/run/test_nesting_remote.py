"""Errors of worker processes say what must not be repeated."""

import concurrent.futures.process
import contextlib
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import pool
from typing import Any

import pytest

from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Broken, Busy
from forbear_testkit.run.drivers import SYNC, Driver
from forbear_testkit.run.shapes import (
    INNER,
    OUTER,
    Failed,
    Function,
    Payments,
    raised_anew,
    raised_from,
    unchanged,
)

_process: Any = concurrent.futures.process
_pool: Any = pool
SENT = [_process._ExceptionWithTraceback, _pool.ExceptionWithTraceback]
"""The objects that the executors of processes pickle in place of an error."""


def _twice(pay: Function) -> None:
    """A context of a cause."""
    try:
        raised_from(pay)
    except Failed:
        raise Broken  # noqa: B904


def _in_a_group(pay: Function) -> None:
    """A member of a group within a group."""
    try:
        raised_anew(pay)
    except Failed as error:
        raise ExceptionGroup("several", [ExceptionGroup("two", [Broken(), error])]) from None


class _Stripped(Exception):
    """An error that pickle restores without its attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Stripped, self.args


def _stripped(pay: Function) -> None:
    """An error that carries its report itself, and loses it."""
    with virtual_time():
        INNER.with_on(_Stripped).call(_strip, pay)


def _strip(pay: Function) -> None:
    with contextlib.suppress(Busy):
        pay()
    raise _Stripped


@pytest.mark.parametrize("wrap", SENT, ids=["executor", "pool"])
@pytest.mark.parametrize("shape", [unchanged, raised_from, raised_anew, _twice, _in_a_group, _stripped])
def test_errors_of_worker_processes(wrap: Callable[..., object], shape: Callable[[Function], None]) -> None:
    """Pickle drops causes, contexts and some attributes; the text of the worker's traceback still has the note.

    The workers' own ways to send an error are used here, without the process.
    """
    pay = Payments()

    def work() -> bytes:
        try:
            shape(pay)
        except Exception as error:
            return pickle.dumps(wrap(error, error.__traceback__))
        raise AssertionError

    def attempt() -> None:
        with ThreadPoolExecutor(1) as pool:
            raise pickle.loads(pool.submit(work).result())

    with virtual_time(), pytest.raises(Exception) as caught:  # noqa: PT011
        OUTER.call(attempt)
    assert pay.made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


@pytest.mark.parametrize(
    "inner",
    [BUSY.with_attempts(1), BUSY.with_timeout(0.5), retry(on=LookupError)],
    ids=["attempts", "timeout", "permanent"],
)
def test_a_worker_that_only_ran_into_a_limit(inner: Policy) -> None:
    """The text of its traceback does not stop the outer run, unless it says that a repeat could do harm."""
    pay = Payments(inner)

    def attempt() -> None:
        try:
            raised_from(pay)
        except Exception as error:
            raise pickle.loads(pickle.dumps(SENT[0](error, error.__traceback__))) from None

    with virtual_time(), pytest.raises(Failed):
        OUTER.call(attempt)
    assert pay.made == 3


def _remote() -> Exception:
    """An error as it comes from a worker process that gave up there."""
    try:
        raised_from(Payments())
    except Failed as error:
        restored: Exception = pickle.loads(pickle.dumps(SENT[0](error, error.__traceback__)))
        return restored
    raise AssertionError


@pytest.mark.parametrize("driver", SYNC, ids=lambda driver: driver.name)
def test_a_run_in_the_handler_of_a_workers_failure(driver: Driver) -> None:
    """The same for a failure in another process, whose time is not known."""
    try:
        raise _remote()
    except Failed:
        outcome = driver(OUTER, Failed, Broken, "done")
    assert (outcome.value, len(outcome.calls)) == ("done", 3)


def test_what_a_worker_says() -> None:
    """Its note, wherever it stands in the text, gives the reason; other notes say nothing."""
    note = "forbear: gave up after 2 attempts in 3.5 s: it may have [been] paid s: twice"
    for line, reason in (
        (f"    | {note} [unsafe]", "it may have [been] paid s: twice"),
        (f"{note} [body]", "it may have [been] paid s: twice"),
        (f"{note} [attempts]", None),
        (f"{note} [unsafe] and more", None),
        (f"said {note} [unsafe]", None),
    ):
        made = type("_RemoteTraceback", (Exception,), {"tb": f"Traceback\n{line}\nOSError"})
        calls = list[int]()

        def pay(cause: Any = made, calls: list[int] = calls) -> None:
            calls.append(1)
            raise Busy from cause()

        with virtual_time(), pytest.raises(Busy) as caught:
            BUSY.call(pay)
        found = report(caught.value)
        assert found is not None
        assert len(calls) == (5 if reason is None else 1)
        if reason is not None:
            assert (found.operation, found.reason, found.text, found.attempts, found.elapsed) == (
                "a call in another process", Reason.UNSAFE, reason, (), 0.0,
            )  # fmt: skip
