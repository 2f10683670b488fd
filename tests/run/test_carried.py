"""What must not be repeated stops every outer run, whatever becomes of the error that said so on its way out."""

import asyncio
import contextlib
import copy
import pickle
import traceback
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import _ExceptionWithTraceback
from multiprocessing.pool import ExceptionWithTraceback
from typing import Any

import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.run.endings import TryAgain, Unsatisfied
from forbear.testing.script import Script
from forbear.testing.virtual_time import virtual_time
from tests.support.run.cases import BUSY, Broken, Busy
from tests.support.run.drivers import DRIVERS, SYNC, Driver

INNER = BUSY.with_repeatable(False)
OUTER = retry(on=Exception, attempts=3, backoff=Constant(1))


class Failed(Exception):
    """The error that a function makes of another one."""


class Closed(Exception):
    """The error of a clean-up."""


Function = Callable[[], object]


def unchanged(pay: Function) -> None:
    """The error itself."""
    pay()


def raised_from(pay: Function) -> None:
    """An error with a cause."""
    try:
        pay()
    except Busy as error:
        raise Failed("no money") from error


def raised_anew(pay: Function) -> None:
    """An error with a context."""
    try:
        pay()
    except Busy:
        raise Failed("no money")  # noqa: B904


def raised_from_none(pay: Function) -> None:
    """An error whose context is suppressed."""
    try:
        pay()
    except Busy:
        raise Failed("no money") from None


def raised_three_times(pay: Function) -> None:
    """A context of a cause of a context."""
    try:
        try:
            raised_anew(pay)
        except Failed as error:
            raise Broken from error
    except Broken:
        raise Failed from None


def swallowed(pay: Function) -> None:
    """An error after a failure that was handled."""
    with contextlib.suppress(Busy):
        pay()
    raise Failed("of something else")


def replaced_by_a_clean_up(pay: Function) -> None:
    """An error of a `finally` clause."""
    try:
        pay()
    finally:
        raise Closed


def grouped(pay: Function) -> None:
    """A group within a group, with a member that has the failure as its context."""
    try:
        raised_from_none(pay)
    except Failed as error:
        inner = ExceptionGroup("two", [Broken(), error])
    raise ExceptionGroup("several", [Broken(), inner])


def copied(pay: Function) -> None:
    """A copy, without cause and context."""
    try:
        raised_from(pay)
    except Failed as error:
        twin = copy.copy(error)
    raise twin


def pickled(pay: Function) -> None:
    """What pickle restores, without cause and context."""
    try:
        raised_from(pay)
    except Failed as error:
        data = pickle.dumps(error)
    raise pickle.loads(data)


def in_another_context(pay: Function) -> None:
    """A failure in a context of its own, as that of a callback."""
    import contextvars

    contextvars.copy_context().run(raised_from_none, pay)


def _in_a_thread(fail: Callable[[Function], None]) -> Callable[[Function], None]:
    def run(pay: Function) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(fail, pay).result()

    return run


def asked_to_try_again(pay: Function) -> None:
    """A request for another attempt, made while the failure is handled."""
    try:
        pay()
    except Busy:
        raise TryAgain from None


SHAPES = {
    "unchanged": unchanged,
    "from": raised_from,
    "anew": raised_anew,
    "from-none": raised_from_none,
    "three-times": raised_three_times,
    "swallowed": swallowed,
    "clean-up": replaced_by_a_clean_up,
    "group": grouped,
    "copy": copied,
    "pickle": pickled,
    "context": in_another_context,
    "thread": _in_a_thread(unchanged),
    "thread-from": _in_a_thread(raised_from),
    "thread-anew": _in_a_thread(raised_anew),
    "thread-from-none": _in_a_thread(raised_from_none),
    "thread-three-times": _in_a_thread(raised_three_times),
    "thread-group": _in_a_thread(grouped),
    "try-again": asked_to_try_again,
}
SOME = [raised_from, raised_anew, raised_from_none, swallowed]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


class Payments:
    """A function that takes effect and then fails, under a policy that does not repeat it; `made` counts."""

    def __init__(self, inner: Policy = INNER) -> None:
        self.made = 0
        self.inner = inner

    def __call__(self) -> object:
        return self.inner.call(self._pay)

    def _pay(self) -> None:
        self.made += 1
        raise Busy("lost")


def _played(function: Function, driver: Driver) -> Any:
    async def arun() -> object:
        return function()

    return arun if driver.backend else function


@pytest.mark.parametrize("shape", SOME)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_every_form_ends(driver: Driver, shape: Callable[[Function], None]) -> None:
    """Decorated, called or in a block, sync or async: the error has the report of the inner run."""
    pay = Payments()
    error = driver(OUTER, *(5 * [_played(lambda: shape(pay), driver)])).error
    assert pay.made == 1
    assert error is not None
    found = report(error)
    assert found is not None
    assert found.reason is Reason.UNSAFE


@every_shape
def test_whatever_is_raised_carries_what_must_not_be_repeated(shape: Callable[[Function], None]) -> None:
    """No run around it calls it again, the middle one leaves the error to others, and a traceback shows the note."""
    pay = Payments()
    middle = retry(on=LookupError, attempts=2)
    with virtual_time(), pytest.raises(Exception) as caught:  # noqa: PT011
        OUTER.call(middle.call, shape, pay)
    assert pay.made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE
    assert found.note in "".join(traceback.format_exception(caught.value))


async def _gathered(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.gather(pay())


async def _grouped(pay: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(pay())  # type: ignore[arg-type]


async def _shielded(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.shield(asyncio.ensure_future(pay()))


async def _timed(pay: Callable[[], Awaitable[object]]) -> None:
    await asyncio.wait_for(asyncio.ensure_future(pay()), 60)


TASKS = {"gather": _gathered, "group": _grouped, "shield": _shielded, "wait_for": _timed}


@pytest.mark.parametrize("through", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("shape", [raised_from, raised_from_none])
def test_tasks_of_their_own(through: Any, shape: Callable[[Function], None]) -> None:
    """Whoever waits for a task gets what its error carries."""
    pay = Payments()

    async def work() -> None:
        shape(pay)

    with virtual_time(), pytest.raises(Exception):  # noqa: B017, PT011
        asyncio.run(OUTER.acall(through, work))
    assert pay.made == 1


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_thread_of_a_coroutine(backend: str) -> None:
    """A coroutine that has a thread do the work does not do it again."""
    pay = Payments()
    with virtual_time(), pytest.raises(Failed):
        anyio.run(OUTER.acall, anyio.to_thread.run_sync, lambda: raised_from_none(pay), backend=backend)
    assert pay.made == 1


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


@pytest.mark.parametrize("wrap", [_ExceptionWithTraceback, ExceptionWithTraceback], ids=["executor", "pool"])
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
            data = pickle.dumps(_ExceptionWithTraceback(error, error.__traceback__))
        raise pickle.loads(data)

    with virtual_time(), pytest.raises(Failed):
        OUTER.call(attempt)
    assert pay.made == 3


@pytest.mark.parametrize("shape", [raised_anew, raised_from_none, swallowed, _in_a_thread(raised_anew)])
def test_a_fallback_for_what_ran_into_a_limit_is_repeated(shape: Callable[[Function], None]) -> None:
    """Only harm is looked for behind an error: a new error that stands in for an exhausted read is judged by itself."""
    pay = Payments(BUSY.with_attempts(1))
    with virtual_time(), pytest.raises(Failed):
        OUTER.call(shape, pay)
    assert pay.made == 3


def _remote() -> Exception:
    """An error as it comes from a worker process that gave up there."""
    try:
        raised_from(Payments())
    except Failed as error:
        restored: Exception = pickle.loads(pickle.dumps(_ExceptionWithTraceback(error, error.__traceback__)))
        return restored
    raise AssertionError


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_run_in_the_handler_of_an_older_failure(driver: Driver) -> None:
    """Its errors have that failure in their context, which says nothing about what this run calls."""
    with virtual_time():
        try:
            raised_anew(Payments())
        except Failed:
            outcome = driver(OUTER, Failed, Broken, "done")
    assert (outcome.value, len(outcome.calls)) == ("done", 3)


@pytest.mark.parametrize("driver", SYNC, ids=lambda driver: driver.name)
def test_a_run_in_the_handler_of_a_workers_failure(driver: Driver) -> None:
    """The same for a failure in another process, whose time is not known."""
    try:
        raise _remote()
    except Failed:
        outcome = driver(OUTER, Failed, Broken, "done")
    assert (outcome.value, len(outcome.calls)) == ("done", 3)


def test_a_handled_failure_before_the_run() -> None:
    """What was given up in this thread before the run began does not count."""
    script = Script(Failed, "done")
    with virtual_time():
        with contextlib.suppress(Busy):
            Payments()()
        assert OUTER.call(script) == "done"


def test_the_failure_of_another_task() -> None:
    """What another task gives up meanwhile does not count."""
    script = Script(Failed, "done")

    async def attempt() -> object:
        await checkpoint()
        await checkpoint()
        return script()

    async def other() -> None:
        with contextlib.suppress(Busy):
            Payments()()

    async def main() -> object:
        return (await asyncio.gather(OUTER.acall(attempt), other()))[0]

    with virtual_time():
        assert asyncio.run(main()) == "done"


def test_what_a_listener_gives_up() -> None:
    """A listener that sends something of its own does not stop the run that it listens to."""
    sent = []

    def listen(event: object) -> None:
        with contextlib.suppress(Busy):
            sent.append(event)
            Payments()()

    inner = Script(*(9 * [Busy]))
    with virtual_time(), pytest.raises(Failed):
        OUTER.call(swallowed, lambda: BUSY.with_attempts(1).with_on_event(listen).call(inner))
    assert len(inner.calls) == 3
    assert len(sent) == 6


@pytest.mark.parametrize("shape", [raised_anew, raised_from_none, swallowed])
def test_retry_exhausted_repeats_it(shape: Callable[[Function], None]) -> None:
    """Told to, the outer policy repeats what an inner one gave up; the last error has its report."""
    pay = Payments()
    with virtual_time(), pytest.raises(Failed) as caught:
        OUTER.replace(retry_exhausted=True).call(shape, pay)
    assert pay.made == 3
    found = report(caught.value)
    assert found is not None
    assert (found.reason, found.count) == (Reason.ATTEMPTS, 3)


def test_a_value_after_what_must_not_be_repeated() -> None:
    """A function that has handled the failure is not called again to return a better value."""
    pay = Payments()

    def poll() -> str:
        with contextlib.suppress(Busy):
            pay()
        return "pending"

    policy = OUTER.with_on_result(lambda value: value == "pending")
    with virtual_time():
        assert policy.call(poll) == "pending"
        with pytest.raises(Unsatisfied) as caught:
            policy.replace(raise_unsatisfied=True).call(poll)
    assert pay.made == 2
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


BREAKING = {
    "on": lambda fail: {"on": fail},
    "delay": lambda fail: {"delay": fail},
    "stop": lambda fail: {"stop": fail},
    "on_result": lambda fail: {"on_result": fail},
}


@pytest.mark.parametrize("options", BREAKING.values(), ids=BREAKING)
@pytest.mark.parametrize("own", [True, False], ids=["not-repeatable", "inner-unsafe"])
def test_a_judge_that_raises(options: Callable[[Any], dict[str, Any]], own: bool) -> None:
    """Its error takes the place of what it judged, and says that this must not be repeated."""
    made = 0

    def fail(thing: object) -> Any:
        raise KeyError(thing)

    chosen = options(fail)

    def pay() -> object:
        nonlocal made
        made += 1
        if not own:
            with contextlib.suppress(Busy):
                INNER.call(Script(Busy))
        if "on_result" in chosen:
            return made
        raise Busy

    policy = BUSY.replace(**chosen)
    policy = policy.with_repeatable(False) if own else policy.replace(retry_exhausted=True)
    with virtual_time(), pytest.raises((KeyError, Busy)) as caught:  # a run that must stop does not ask `stop`
        OUTER.call(policy.call, pay)
    assert made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


def test_a_judge_that_raises_where_repeats_are_harmless() -> None:
    """Then its error is like any other."""
    script = Script(Busy, Busy, Busy)

    def fail(thing: object) -> Any:
        raise KeyError(thing)

    with virtual_time(), pytest.raises(KeyError):
        OUTER.call(BUSY.with_on(fail).call, script)
    assert len(script.calls) == 3


def test_cycles_of_causes_and_contexts_end() -> None:
    """Errors that lead back to each other are searched once."""
    first, second = Failed(), Failed()
    first.__cause__, second.__context__, second.__cause__ = second, first, first
    script = Script(first, second, "done")
    with virtual_time():
        assert OUTER.call(script) == "done"


def test_nothing_is_kept_alive() -> None:
    """What a thread remembers of a failure has no frames and no errors."""
    with virtual_time(), pytest.raises(Failed) as caught:
        OUTER.call(swallowed, Payments())
    remembered = weakref.ref(caught.value)
    del caught
    assert remembered() is None
