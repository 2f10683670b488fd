"""The caller ends runs: `stop=` decides after each failure, and an event of `stop_on` interrupts waits."""

import asyncio
import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import Any

import pytest

from forbear.core.backoff import Constant
from forbear.core.budget import TokenBucket
from forbear.core.decide import Reason
from forbear.core.events import Event, Failed
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.read_modify_write import update
from forbear.run.budget import Budget
from forbear.run.stopping import stop_on
from forbear.testing import virtual_time
from forbear_testkit.run.cases import BUSY, Broken, Busy
from forbear_testkit.run.drivers import DRIVERS, SYNC, WITH_VALUES, Driver

MINUTES = retry(Busy, backoff=Constant(600), timeout=3600)
SYNC_FORMS = pytest.mark.parametrize("driver", SYNC, ids=lambda driver: driver.name)
EVERY_FORM = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)


def at_once(failed: Failed) -> bool:
    """Stop after the first attempt."""
    return True


def at_the_second(failed: Failed) -> bool:
    """Stop after the second attempt."""
    return failed.attempt == 2


@EVERY_FORM
def test_a_callable_stops(driver: Driver) -> None:
    """It sees every failure that would be retried; the original error has the reason."""
    seen: list[tuple[int, float, bool]] = []

    def stop(failed: Failed) -> str | None:
        seen.append((failed.attempt, failed.elapsed, isinstance(failed.error, Busy)))
        return "enough seen" if failed.elapsed >= 2 else None

    outcome = driver(BUSY.replace(stop=stop), Busy, Busy, Busy, "done")
    assert isinstance(outcome.error, Busy)
    assert seen == [(1, 0, True), (2, 1, True), (3, 2, True)]
    found = report(outcome.error)
    assert found is not None
    assert (found.reason, found.text, found.count) == (Reason.STOPPED, "enough seen", 3)
    assert outcome.error.__notes__ == ["forbear: gave up after 3 attempts in 2 s: enough seen [stopped]"]


@EVERY_FORM
def test_limits_and_permanent_errors_come_first(driver: Driver) -> None:
    """A stop is calls only where another attempt would follow."""
    calls: list[Failed] = []
    policy = BUSY.with_attempts(2).replace(stop=calls.append)
    assert isinstance(driver(policy, Broken).error, Broken)
    assert isinstance(driver(policy, Busy, Busy).error, Busy)
    assert [failed.attempt for failed in calls] == [1]


@pytest.mark.parametrize("driver", WITH_VALUES, ids=lambda driver: driver.name)
def test_a_refused_value_is_returned(driver: Driver) -> None:
    """There is no error to raise."""
    policy = BUSY.with_on_result(lambda value: value == "pending").replace(stop=at_the_second)
    outcome = driver(policy, "pending", "pending", "done")
    assert (outcome.value, len(outcome.calls)) == ("pending", 2)


@EVERY_FORM
def test_a_stop_that_fails(driver: Driver) -> None:
    """The error of the attempt is raised; its note says what `stop` raised."""

    def stop(failed: Failed) -> bool:
        raise ZeroDivisionError

    outcome = driver(BUSY.replace(stop=stop), Busy, "done")
    assert isinstance(outcome.error, Busy)
    assert outcome.report.text == "a function of the policy raised an error: ZeroDivisionError"
    outcome = driver(BUSY.replace(stop=id_of), Busy, "done")
    assert isinstance(outcome.error, Busy)
    assert "`stop` must return True, False, None or the reason as a string, got 5" in outcome.report.text


def id_of(failed: Failed) -> int:
    """Return what no stop may return."""
    return 5


async def never(failed: Failed) -> bool:
    """An async stop."""
    return False


@pytest.mark.parametrize(
    ("wrong", "text"), [(5, "`stop` must be callable or None, got 5"), (never, "must not be async")]
)
def test_wrong_stops(wrong: Any, text: str) -> None:
    """They are refused when the policy is made."""
    with pytest.raises(TypeError, match=text):
        retry(Busy, stop=wrong)


def test_a_stop_is_asked_before_the_budget() -> None:
    """No token is spent on a retry that does not happen."""
    budget = Budget(TokenBucket(capacity=1, deposit=0))
    with virtual_time(), pytest.raises(Busy):
        BUSY.replace(stop=at_once, budget=budget).call(raising(Busy()))
    assert budget.take()
    assert not budget.take()


def raising(error: Exception, before: Callable[[], object] = lambda: None) -> Callable[[], None]:
    """A function that always raises this error, after `before`."""

    def function() -> None:
        before()
        raise error

    return function


@contextmanager
def setter(event: threading.Event) -> Generator[Callable[[], None]]:
    """Set the event from another thread, once the function that is yielded was called and its caller waits."""
    called = threading.Event()

    def set_it() -> None:
        called.wait(60)
        event.set()

    thread = threading.Thread(target=set_it)
    thread.start()
    try:
        yield called.set
    finally:
        called.set()
        thread.join()


def in_a_block(policy: Policy, function: Callable[[], None]) -> None:
    """Call the function in a block."""
    for attempt in policy:
        with attempt:
            function()


def updated(policy: Policy, function: Callable[[], None]) -> None:
    """Call the function as the read of an update."""
    update(
        read=function, modify=lambda value: value, write=lambda value: value, conflict=lambda _: False, policy=policy
    )


FORMS: dict[str, Callable[[Policy, Callable[[], None]], object]] = {
    "decorated": lambda policy, function: policy(function)(),
    "decorated, with a budget": lambda policy, function: policy.with_budget(Budget())(function)(),
    "called": lambda policy, function: policy.call(function),
    "block": in_a_block,
    "update": updated,
}
EACH_FORM = pytest.mark.parametrize("run", FORMS.values(), ids=FORMS)


@EACH_FORM
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_wait_is_interrupted(run: Callable[[Policy, Callable[[], None]], object], depth: int) -> None:
    """A real wait of ten minutes ends at once; the original error is raised. With nested scopes each event counts."""
    error, event, others = Busy("down"), threading.Event(), [threading.Event(), threading.Event()]
    kinds: list[str] = []
    policy = MINUTES.with_on_event(lambda happened: kinds.append(type(happened).__name__))
    with setter(event) as soon, ExitStack() as scopes:
        for one in [event] if depth == 1 else [others[0], event, others[1]][:depth]:
            scopes.enter_context(stop_on(one))
        with pytest.raises(Busy) as caught:
            run(policy, raising(error, soon))
    assert caught.value is error
    found = report(error)
    assert found is not None
    assert (found.reason, found.text, found.count, found.omitted) == (
        Reason.STOPPED,
        "the event of stop_on is set",
        1,
        0,
    )
    assert error.__notes__ == [found.note]
    assert kinds[-1] == "GaveUp"
    assert kinds in (["Failed", "GaveUp"], ["Failed", "Scheduled", "GaveUp"])


@SYNC_FORMS
def test_an_event_that_is_set_stops_after_a_failure(driver: Driver) -> None:
    """Before the wait; a success is returned all the same."""
    event = threading.Event()
    event.set()
    with stop_on(event):
        assert isinstance(driver(BUSY, Busy, "done").error, Busy)
        assert driver(BUSY, "done").value == "done"
    assert driver(BUSY, Busy, "done").value == "done"


@SYNC_FORMS
def test_waits_in_a_scope_are_the_same(driver: Driver) -> None:
    """Unless the event is set, nothing differs."""
    with stop_on(threading.Event()):
        outcome = driver(BUSY, Busy, Busy, "done")
    assert (outcome.value, outcome.slept, outcome.starts) == ("done", [1, 1], [0, 1, 2])


@pytest.mark.parametrize("driver", [driver for driver in DRIVERS if driver.backend == "asyncio"])
def test_async_code_looks_at_the_event_after_failures(driver: Driver) -> None:
    """It does not wait for it, since that would block the loop."""
    event = threading.Event()

    def listen(happened: Event) -> None:
        if isinstance(happened, Failed) and happened.attempt == 2:
            event.set()

    with stop_on(event):
        outcome = driver(BUSY.with_on_event(listen), *(3 * (Busy,)), "done")
    assert (type(outcome.error), outcome.slept) == (Busy, [1, 1])
    found = report(outcome.error)
    assert found is not None
    assert found.reason is Reason.STOPPED


def test_a_scope_ends() -> None:
    """Copies of its context that live longer see it no more, and other threads never did."""
    event = threading.Event()
    event.set()
    with stop_on(event):
        context = copy_context()
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.append(BUSY.with_backoff(Constant(0)).call(passing())))
        thread.start()
        thread.join()
        assert seen == ["done"]
    with virtual_time():
        assert context.run(BUSY.with_backoff(Constant(0)).call, passing()) == "done"


@pytest.mark.unmutated
def test_consumers_of_generators_go_on() -> None:
    """An event stops what its generator calls, not the loop that consumes the generator."""
    event = threading.Event()
    event.set()

    def inner() -> Iterator[None]:
        with stop_on(event):
            yield

    for _ in inner():
        with virtual_time():
            assert BUSY.with_backoff(Constant(0)).call(passing()) == "done"


def passing() -> Callable[[], str]:
    """A function that fails once."""
    outcomes = iter([Busy()])

    def function() -> str:
        for outcome in outcomes:
            raise outcome
        return "done"

    return function


def test_an_outer_policy_stops_too() -> None:
    """It does not repeat what the event ended."""
    event = threading.Event()
    calls: list[int] = []

    def function() -> None:
        calls.append(1)
        event.set()
        raise Busy

    with stop_on(event), pytest.raises(Busy):
        MINUTES(MINUTES(function))()
    assert calls == [1]


class Flag:
    """An event of one's own."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.looks = 0

    def is_set(self) -> bool:
        """Set once it was waited for, or looked at three times."""
        self.looks += 1
        return bool(self.waited) or self.looks > 3

    def wait(self, timeout: float) -> None:
        """Return at once, as if it had been set."""
        self.waited.append(timeout)


def test_any_object_with_these_methods() -> None:
    """The wait gets the delay, and its result does not matter; the main thread only looks."""

    def stopped() -> list[float]:
        flag = Flag()
        with stop_on(flag), pytest.raises(Busy):
            MINUTES.call(raising(Busy()))
        return flag.waited

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(stopped).result() == [600]
    assert stopped() == []


def test_a_signal_handler_may_set_the_event() -> None:
    """The main thread never holds the lock of an event while a signal may arrive."""

    class Held(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise AssertionError("a handler that calls set() now would wait for ever")

    def interrupt(_: Event) -> None:
        signal.raise_signal(signal.SIGINT)

    def handle(*_: object) -> None:
        event.set()

    event = Held()
    previous = signal.signal(signal.SIGINT, handle)
    try:
        with stop_on(event), pytest.raises(Busy):
            MINUTES.with_on_event(interrupt).call(raising(Busy()))
    finally:
        signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("wrong", [None, 5, threading.Event, threading.Lock(), asyncio.Event()])
def test_wrong_events(wrong: Any) -> None:
    """They are refused at once."""
    with pytest.raises(TypeError, match="`event` must"):
        stop_on(wrong)


def test_a_scope_is_entered_once() -> None:
    """One for each block."""
    scope = stop_on(threading.Event())
    with scope, pytest.raises(RuntimeError, match="make one for each block"), scope:
        pass


def fail() -> None:
    """Raise an error that nothing else refers to."""
    raise Busy


@EACH_FORM
def test_nothing_is_kept_alive(run: Callable[[Policy, Callable[[], None]], object]) -> None:
    """An error that was stopped dies with its last reference."""
    gc.disable()
    try:
        refs: list[weakref.ref[Exception]] = []
        try:
            with stop_on(Flag()):
                run(MINUTES, fail)
        except Busy as error:
            refs.append(weakref.ref(error))
        assert refs[0]() is None
    finally:
        gc.enable()


def test_fast_clocks_wait_less() -> None:
    """An interruption needs no clock: a minute at a factor of a million is over at once."""
    from forbear.run.runtime import FastClock, current

    policy = retry(Busy, attempts=2, backoff=Constant(600), timeout=None)  # an hour would be 4 ms, too short when busy
    began, token = time.monotonic(), current.set(FastClock(1e6))
    try:
        with stop_on(threading.Event()), stop_on(threading.Event()):
            assert policy.call(passing()) == "done"
    finally:
        current.reset(token)
    assert time.monotonic() - began < 60
