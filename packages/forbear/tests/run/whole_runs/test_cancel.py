"""Errors that end programs or tasks pass straight through, whatever the predicate says."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest
import trio

from forbear.core.backoff import Constant
from forbear.policy import Policy, retry
from forbear.testing.virtual_clock import VirtualTime, virtual_time
from forbear_testkit.run.drivers import DRIVERS, Driver

Function = Callable[[], Awaitable[object]]
Form = Callable[[Policy, Function], Awaitable[None]]


def everything(error: BaseException) -> bool:
    """The greediest predicate."""
    return True


GREEDY = retry(on=everything, attempts=None, timeout=None, unlimited=True, backoff=Constant(10))


class Ended(BaseException):
    """Somebody's own way to end."""


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, Ended])
def test_base_exceptions_are_not_caught(drive: Driver, kind: type[BaseException]) -> None:
    """One attempt after a retried one, no wait, no note."""
    error = kind()
    calls: list[str] = []

    def end() -> None:
        calls.append("ended")
        raise error

    with pytest.raises(kind) as caught:
        drive(GREEDY, OSError, end, "done")
    assert calls == ["ended"]
    assert not hasattr(caught.value, "__notes__")


async def _called(policy: Policy, function: Function) -> None:
    await policy.acall(function)


async def _decorated(policy: Policy, function: Function) -> None:
    await policy(function)()


async def _block(policy: Policy, function: Function) -> None:
    async for attempt in policy:
        async with attempt:
            await function()


FORMS = [_called, _decorated, _block]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
timeouts = pytest.mark.parametrize("attempt_timeout", [None, 100], ids=["plain", "attempt-timeout"])


class Service:
    """Fails at once, then hangs until it is cancelled."""

    def __init__(self, time: VirtualTime, failures: int) -> None:
        self.time = time
        self.failures = failures
        self.calls = 0
        self.cancelled_at: float | None = None

    async def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise OSError("lost")
        try:
            await self.time.asleep(50)
        finally:
            self.cancelled_at = self.time.elapsed


@forms
@timeouts
@pytest.mark.parametrize(
    ("failures", "at", "calls", "hanging"),
    [(0, 3, 1, True), (1, 3, 1, False), (1, 13, 2, True), (2, 13, 2, False)],
    ids=["first-attempt", "first-wait", "second-attempt", "second-wait"],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_task_ends_at_once(
    form: Form,
    attempt_timeout: float | None,
    failures: int,
    at: float,
    calls: int,
    hanging: bool,
    backend: str,
) -> None:
    """In an attempt or in a wait: the run ends there and then."""
    policy = GREEDY.with_attempt_timeout(attempt_timeout)

    async def in_asyncio(time: VirtualTime, service: Service) -> None:
        run = asyncio.ensure_future(form(policy, service))
        await time.asleep(at)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    async def in_trio(time: VirtualTime, service: Service) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(form, policy, service)
            await time.asleep(at)
            nursery.cancel_scope.cancel()

    with virtual_time() as time:
        service = Service(time, failures)
        anyio.run(in_trio if backend == "trio" else in_asyncio, time, service, backend=backend)
        assert time.elapsed == at
    assert service.calls == calls
    assert service.cancelled_at == (at if hanging else None)
    assert time._alarms == {}


@forms
def test_a_timeout_around_a_run_is_not_retried(form: Form) -> None:
    """`asyncio.timeout()` and `trio.move_on_after()` around a run end it, attempt timeout or not."""
    policy = GREEDY.with_attempt_timeout(100)

    async def in_asyncio() -> None:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.001):
                await form(policy, hang)
        assert type(caught.value) is TimeoutError

    async def in_trio() -> None:
        with trio.move_on_after(0.001) as scope:
            await form(policy, hang)
        assert scope.cancelled_caught

    async def hang() -> None:
        calls.append("hang")
        await anyio.sleep_forever()

    calls: list[str] = []
    anyio.run(in_asyncio)
    anyio.run(in_trio, backend="trio")
    assert len(calls) == 2
