"""Nested retries do not multiply: an error that was retried inside a run is not retried by the run around it."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import pytest

from forbear.core.backoff import Constant
from forbear.core.budget import TokenBucket
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.core.verdict import CONFLICT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.run.functions import is_async
from forbear.testing.script import AsyncScript, Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Broken, Busy
from forbear_testkit.run.drivers import DRIVERS, WITH_VALUES, Driver

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
    """The error has the inner run's report."""
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
    """No clock separates an old error from a new one: runs that take no time are kept apart, too."""
    error = Busy()
    with virtual_time():
        for _ in range(3):
            script = Script(error, error)
            with pytest.raises(Busy):
                retry(on=Busy, attempts=2, backoff=Constant(0)).call(script)
            assert len(script.calls) == 2


class Taken(Exception):
    """A conflict, to the policies that know it."""


@every_driver
@pytest.mark.parametrize(
    ("inner", "last"),
    [(INNER, Taken), (INNER.with_on(lambda error: CONFLICT if isinstance(error, Taken) else TRANSIENT), Taken)],
    ids=["permanent", "conflict"],
)
def test_what_an_inner_policy_leaves_to_others_is_retried(drive: Driver, inner: Policy, last: type[Exception]) -> None:
    """It had retried another error before, so its report is there; but this error it only calls none of its own."""
    function, script = nested(drive, inner, Busy, last, "done")
    outcome = drive(BUSY.with_on(Taken), function, function)
    assert (outcome.value, len(script.calls), len(outcome.calls)) == ("done", 3, 2)


@every_driver
def test_what_nobody_wants_comes_out_with_the_inner_report(drive: Driver) -> None:
    """The outer run has tried once, as if it were not there."""
    function, script = nested(drive, INNER, Busy, Broken)
    outcome = drive(BUSY, function)
    assert isinstance(outcome.error, Broken)
    found = report(outcome.error)
    assert found is not None
    assert (len(script.calls), found.reason, found.count) == (2, Reason.PERMANENT, 2)


STOPS = [
    (INNER, Reason.ATTEMPTS),
    (INNER.with_timeout(0.5), Reason.TIMEOUT),
    (INNER.with_on(lambda _: Verdict(Kind.TRANSIENT, retry_after=1000)), Reason.RETRY_AFTER),
    (INNER.with_budget(Budget(TokenBucket(0.5))), Reason.BUDGET),
    (INNER.with_repeatable(False), Reason.UNSAFE),
]


@every_driver
@pytest.mark.parametrize(("inner", "reason"), STOPS, ids=[reason.name.lower() for _, reason in STOPS])
def test_every_limit_stops_the_outer_run(drive: Driver, inner: Policy, reason: Reason) -> None:
    """So does the refusal to execute something twice that may have been executed."""
    function, _ = nested(drive, inner, *(5 * [Busy]))
    outcome = drive(BUSY, *(5 * [function]))
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    assert (len(outcome.calls), found.reason) == (1, reason)


class Wrapped(Exception):
    """The error that a library raises for another one."""


@every_driver
def test_an_error_made_of_an_exhausted_one_is_not_retried(drive: Driver) -> None:
    """Raised `from` it, or in a group with it."""
    for wrap in (_wrapped, _grouped):
        function, script = nested(drive, INNER, *(10 * [Busy]))
        outcome = drive(BUSY.with_on((Wrapped, ExceptionGroup)), *(3 * [wrap(function)]))
        assert isinstance(outcome.error, Wrapped | ExceptionGroup)
        assert (len(outcome.calls), len(script.calls)) == (1, 3)
        found = report(outcome.error)
        assert found is not None
        assert found.count == 3


def _wrapped(function: Any) -> Any:
    return _made_anew(function, Wrapped)


def _grouped(function: Any) -> Any:
    def group(error: Exception) -> Exception:
        return ExceptionGroup("several", [Broken(), error])

    return _made_anew(function, group)


def _made_anew(function: Any, make: Callable[..., Exception]) -> Any:
    async def arun() -> object:
        try:
            return await function()
        except Busy as error:
            raise make(error) from error

    def run() -> object:
        try:
            return function()
        except Busy as error:
            raise make(error) from error

    return arun if is_async(function) else run


@pytest.mark.parametrize("drive", WITH_VALUES, ids=lambda driver: driver.name)
@pytest.mark.parametrize("value", [None, False, "not yet", {"state": "pending"}], ids=str)
def test_a_value_that_an_inner_policy_gave_up_on_is_not_asked_for_again(drive: Driver, value: object) -> None:
    """A plain value carries no report, but the run knows that it comes from a run within."""
    polling = BUSY.with_attempts(3).with_on_result(lambda got: got == value)
    function, script = nested(drive, polling, *(10 * [value]))
    outcome = drive(polling, *(10 * [function]))
    assert (outcome.value, len(script.calls), len(outcome.calls)) == (value, 3, 1)
    fresh = drive(polling, value, value, "ready")
    assert (fresh.value, len(fresh.calls)) == ("ready", 3)


async def _gathered(function: Any) -> object:
    return await asyncio.gather(function())


async def _waited_for(function: Any) -> object:
    return await asyncio.wait_for(function(), 60)


async def _in_a_task(function: Any) -> object:
    return await asyncio.ensure_future(function())


@pytest.mark.parametrize("through", [_gathered, _waited_for, _in_a_task])
def test_an_inner_run_in_a_task_of_its_own(through: Callable[..., Awaitable[object]]) -> None:
    """Whoever waits for the task is the outer run: attempts do not multiply."""
    script = AsyncScript(*(10 * [Busy]))
    inner = INNER(script)

    async def attempt() -> object:
        return await through(inner)

    with virtual_time(), pytest.raises(Busy):
        asyncio.run(BUSY.acall(attempt))
    assert len(script.calls) == 3


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_inner_run_in_a_thread(backend: str) -> None:
    """A coroutine that has a thread do the work is the outer run, too."""
    script = Script(*(10 * [Busy]))

    async def attempt() -> object:
        return await anyio.to_thread.run_sync(INNER(script))

    with virtual_time(), pytest.raises(Busy):
        anyio.run(BUSY.acall, attempt, backend=backend)
    assert len(script.calls) == 3


def test_an_inner_run_in_an_executor() -> None:
    """Threads of an executor know nothing of the context that they were asked from."""
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise Busy

    inner = INNER.with_backoff(Constant(0))
    with ThreadPoolExecutor(1) as pool, pytest.raises(Busy):
        BUSY.with_backoff(Constant(0)).call(lambda: pool.submit(inner.call, fail).result())
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("inner", "times"), [(INNER, 3), (INNER.with_repeatable(False), 1)], ids=["exhausted", "unsafe"]
)
def test_an_inner_run_by_another_clock(inner: Policy, times: int) -> None:
    """Times of two clocks cannot be compared: an inner run in virtual time is one within a run in real time, too."""
    script = AsyncScript(*(10 * [Busy]))

    def attempt() -> object:
        with virtual_time():
            return asyncio.run(inner.acall(script))

    with pytest.raises(Busy):
        BUSY.with_backoff(Constant(0)).call(attempt)
    assert len(script.calls) == times


def test_what_could_do_harm_is_not_repeated_in_doubt() -> None:
    """A library that strips the traceback leaves it open where an error comes from; a write is not sent again then."""
    script = AsyncScript(*(10 * [Busy]))

    async def attempt() -> object:
        try:
            return await asyncio.ensure_future(INNER.with_repeatable(False)(script)())
        except Busy as error:
            raise error.with_traceback(None) from None

    with virtual_time(), pytest.raises(Busy):
        asyncio.run(BUSY.acall(attempt))
    assert len(script.calls) == 1


@every_driver
def test_an_error_of_an_earlier_attempt_counts_no_more(drive: Driver) -> None:
    """An error that an inner run gave up on in the attempt before does not stop this one."""
    error = Busy("kept")
    function, script = nested(drive, BUSY.with_attempts(1), error)
    outcome = drive(BUSY.with_on((Busy, Taken)), _forgetful(function), error, "done")
    assert report(error) is not None
    assert (outcome.value, len(outcome.calls), len(script.calls)) == ("done", 3, 1)


def _forgetful(function: Any) -> Any:
    """Return the function, with another error in place of each that it raises."""

    async def arun() -> object:
        with suppress(Busy):
            return await function()
        raise Taken

    def run() -> object:
        with suppress(Busy):
            return function()
        raise Taken

    return arun if is_async(function) else run


def test_origins_keep_nothing_alive() -> None:
    """A report knows its place by numbers: no frame, traceback or error is held."""

    class Local:
        """Stands for what a frame holds."""

    held: list[weakref.ref[Local]] = []

    def fail() -> None:
        local = Local()
        held.append(weakref.ref(local))
        raise Busy

    found = None
    try:
        BUSY.with_attempts(1).call(fail)
    except Busy as error:
        found = report(error)
    assert found is not None
    assert found.origin is not None
    assert held[0]() is None
