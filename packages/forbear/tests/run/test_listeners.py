"""Listeners that themselves use forbear end, and async ones are refused: nobody would await them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from forbear.core.backoff import Constant
from forbear.core.events import Event, Failed
from forbear.observe import all_of, listen
from forbear.policy import Policy, retry
from forbear.read_modify_write import update
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.observe.listening import listening_as_ever
from forbear_testkit.run.cases import BUSY, Busy

__all__ = ["listening_as_ever"]


def fail() -> None:
    """Fail every time."""
    raise Busy("down")


class Shipper(logging.Handler):
    """A log handler that sends each line by a function under forbear, to a collector that is down."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.sent = 0
        self.ship = policy(self._ship)

    def _ship(self, line: str) -> None:
        self.sent += 1
        raise Busy("the collector is down")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.ship(record.getMessage())
        except Busy:
            return


def test_a_log_handler_that_uses_forbear_ends() -> None:
    """Each line is shipped as often as the policy allows, and the failures of that are no new lines."""
    shipper = Shipper(BUSY.with_attempts(3))
    logger = logging.getLogger("forbear")
    logger.addHandler(shipper)
    try:
        with virtual_time(), pytest.raises(Busy):
            BUSY.with_attempts(2).call(fail)
    finally:
        logger.removeHandler(shipper)
    assert shipper.sent == 2 * 3  # a retry and the end, three attempts each


def test_a_listener_hears_nothing_of_what_it_does_itself() -> None:
    """Others do: a metric counts the runs of the handler that ships logs."""
    shipped: list[Event] = []
    counted: list[Event] = []

    def ship(event: Event) -> None:
        shipped.append(event)
        with pytest.raises(Busy):
            BUSY.with_attempts(2).with_name("ship").call(fail)

    def count(event: Event) -> None:
        counted.append(event)

    listen(ship, count)
    with virtual_time(), pytest.raises(Busy):
        BUSY.with_attempts(1).with_name("work").call(fail)
    assert [event.operation for event in shipped] == ["work"] * 2
    assert [event.operation for event in counted].count("work") == 2
    assert [event.operation for event in counted].count("ship") == 2 * 4


class Recursive:
    """Listeners that start a run with themselves as listeners, by whatever way; `calls` counts their calls."""

    def __init__(self) -> None:
        self.calls = 0

    def method(self, event: Event) -> None:
        """A bound method is made anew at each look-up."""
        self.again(self.method)

    def fresh(self, event: Event) -> None:
        """A listener that is never the same."""
        self.again(partial(self.fresh))

    def combined(self, event: Event) -> None:
        """Several in one."""
        self.again(all_of(self.combined))

    def in_a_loop(self, event: Event) -> None:
        """An event loop of its own."""
        self.calls += 1

        async def work() -> None:
            raise Busy

        with pytest.raises(Busy):
            asyncio.run(BUSY.with_attempts(1).with_on_event(self.in_a_loop).acall(work))

    def updating(self, event: Event) -> None:
        """A read-modify-write."""
        self.calls += 1
        policy = BUSY.with_attempts(1).with_on_event(self.updating)
        with pytest.raises(Busy):
            update(read=fail, modify=str, write=print, conflict=bool, policy=policy)

    def again(self, listener: Callable[[Event], object]) -> None:
        """Fail once more."""
        self.calls += 1
        assert self.calls < 1000
        with pytest.raises(Busy):
            BUSY.with_attempts(1).with_on_event(listener).call(fail)


@pytest.mark.parametrize("way", ["method", "fresh", "combined", "in_a_loop", "updating"])
def test_recursion_ends(way: str) -> None:
    """A listener gets the events of the run that it listens to, and of few more, whatever it does."""
    recursive = Recursive()
    with virtual_time(), pytest.raises(Busy):
        BUSY.with_attempts(1).with_on_event(getattr(recursive, way)).call(fail)
    assert recursive.calls >= 2
    assert recursive.calls == 2 or way == "fresh"


def test_a_task_of_a_listener_does_not_feed_itself() -> None:
    """Events of a task that a listener starts are kept from it, too: else each failure would start the next task."""
    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        raise Busy

    async def ship() -> None:
        with pytest.raises(Busy):
            await policy.acall(work)

    def hand_on(event: Event) -> None:
        tasks.append(asyncio.get_running_loop().create_task(ship()))

    policy = BUSY.with_attempts(1).with_on_event(hand_on)

    async def main() -> None:
        await ship()
        for task in tasks:
            await task

    asyncio.run(main())
    assert len(tasks) == 2


async def listener(event: Event) -> None:
    """An async listener."""


async def stream(event: Event) -> AsyncIterator[Event]:
    """An async generator."""
    yield event


class Asynchronous:
    """A callable object whose call is async."""

    async def __call__(self, event: Event) -> None:
        """Hear of an event."""

    async def method(self, event: Event) -> None:
        """Hear of an event."""

    @classmethod
    async def of_class(cls, event: Event) -> None:
        """Hear of an event."""

    @staticmethod
    async def static(event: Event) -> None:
        """Hear of an event."""


ASYNC = {
    "function": listener,
    "generator": stream,
    "object": Asynchronous(),
    "method": Asynchronous().method,
    "class-method": Asynchronous.of_class,
    "static-method": Asynchronous.static,
    "partial": partial(listener),
    "partial-of-object": partial(Asynchronous()),
}


def _as_on_event(hook: Any) -> Policy:
    return retry(on=OSError, on_event=hook)


def _as_on_result(hook: Any) -> Policy:
    return retry(on=OSError, on_result=hook)


def _as_on(hook: Any) -> Policy:
    return retry(on=hook)


@pytest.mark.parametrize("hook", ASYNC.values(), ids=ASYNC)
@pytest.mark.parametrize(
    ("take", "name"),
    [
        (_as_on_event, "`on_event`"),
        (BUSY.with_on_event, "`on_event`"),
        (listen, "a listener"),
        (all_of, "a listener"),
        (_as_on_result, "`on_result`"),
        (_as_on, "`on`"),
    ],
    ids=["retry", "with_on_event", "listen", "all_of", "on_result", "on"],
)
def test_async_hooks_are_refused(hook: Any, take: Callable[[Any], object], name: str) -> None:
    """When they are set up; the text names the parameter, the function and a cure."""
    with pytest.raises(TypeError, match=f"{name} must not be async, because it is not awaited, got .*; (use|judge) "):
        take(hook)


def test_a_listener_that_returns_a_coroutine_is_warned_about() -> None:
    """It cannot be told before; the coroutine is closed."""
    told = r"a listener failed on Failed: TypeError: .* returned a coroutine"
    with pytest.warns(RuntimeWarning, match=told), virtual_time(), pytest.raises(Busy):
        BUSY.with_attempts(1).with_on_event(lambda event: listener(event) if isinstance(event, Failed) else None).call(
            fail
        )


def test_waits_of_listeners_are_their_own() -> None:
    """A listener that retries takes its time; the run goes on after it."""

    def slow(event: Event) -> None:
        with pytest.raises(Busy):
            BUSY.with_attempts(2).with_backoff(Constant(5)).call(fail)

    with virtual_time() as time, pytest.raises(Busy):
        BUSY.with_attempts(2).with_on_event(slow).call(fail)
    assert time.slept == [5, 5, 1, 5, 5]
