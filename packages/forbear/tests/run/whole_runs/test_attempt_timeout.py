"""Attempt timeouts: enforced in async code, in real and in virtual time, and never confused with other timeouts."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import retry
from forbear.run.runtime import AttemptTimeout
from forbear.testing.script import AsyncScript
from forbear.testing.virtual_clock import clock, virtual_time
from forbear_testkit.run.cases import BUSY, UNSAFE, Busy
from forbear_testkit.run.drivers import ASYNC, Driver, Outcome

async_drivers = pytest.mark.parametrize("drive", ASYNC, ids=lambda driver: driver.name)
both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def lasting(seconds: float, value: object = "done") -> Callable[[], Awaitable[object]]:
    """A function that takes so many virtual seconds."""

    async def last() -> object:
        await clock().asleep(seconds)
        if isinstance(value, Exception):
            raise value
        return value

    return last


def check(outcome: Outcome, starts: list[float], reason: Reason, text: str) -> None:
    """The run ended with an attempt timeout, and this is why."""
    assert isinstance(outcome.error, AttemptTimeout)
    found = report(outcome.error)
    assert found is not None
    assert (outcome.starts, found.reason, found.text) == (starts, reason, text)


@async_drivers
def test_too_long_attempts_are_retried(drive: Driver) -> None:
    """Whatever `on` says: an attempt timeout is the policy's own doing."""
    outcome = drive(BUSY.with_attempt_timeout(5), lasting(9), lasting(6), lasting(4))
    assert outcome.value == "done"
    assert outcome.starts == [0, 6, 12]
    assert outcome.elapsed == 16


@async_drivers
def test_giving_up_on_too_long_attempts(drive: Driver) -> None:
    """The error says after how long the attempt was cut short."""
    outcome = drive(BUSY.with_attempt_timeout(2.5), *(5 * [lasting(9)]))
    check(outcome, [0, 3.5, 7, 10.5, 14], Reason.ATTEMPTS, "default limit of 5 attempts reached")
    assert str(outcome.error) == "the attempt was cut short after 2.5 s"
    assert isinstance(outcome.error, TimeoutError)


@async_drivers
def test_an_unsafe_attempt_that_was_cut_short_is_not_repeated(drive: Driver) -> None:
    """An unsafe attempt may have taken effect when its time ends."""
    outcome = drive(BUSY.with_attempt_timeout(5).replace(repeatable=False), lasting(9))
    check(outcome, [0], Reason.UNSAFE, UNSAFE)


@async_drivers
def test_no_attempt_outlasts_the_timeout_of_the_run(drive: Driver) -> None:
    """The last attempt gets what is left, not its full time."""
    outcome = drive(BUSY.with_attempt_timeout(7).with_timeout(10), lasting(9), lasting(9))
    check(outcome, [0, 8], Reason.TIMEOUT, "timeout of 10 s reached")
    assert outcome.elapsed == 10
    assert str(outcome.error) == "the attempt was cut short after 2 s"


@async_drivers
def test_a_final_attempt_at_the_deadline_has_its_full_time(drive: Driver) -> None:
    """Or it would have none at all."""
    policy = BUSY.with_attempt_timeout(4).with_timeout(5)
    assert drive(policy, lasting(9), lasting(3)).value == "done"
    check(drive(policy, lasting(9), lasting(9)), [0, 5], Reason.TIMEOUT, "timeout of 5 s reached")


@async_drivers
def test_without_a_limit_for_the_run(drive: Driver) -> None:
    """Every attempt has its full time."""
    policy = BUSY.with_attempt_timeout(100).with_timeout(None)
    assert drive(policy, lasting(200), lasting(99)).elapsed == 200


@async_drivers
def test_a_timeout_of_the_function_itself_is_any_other_error(drive: Driver) -> None:
    """It is judged as any other error and raised unchanged."""
    error = TimeoutError("mine")
    outcome = drive(BUSY.with_attempt_timeout(5), lasting(1, error))
    assert outcome.error is error
    assert outcome.starts == [0]
    assert drive(BUSY.with_attempt_timeout(5).with_on(TimeoutError), lasting(1, error), lasting(1)).value == "done"


@async_drivers
def test_failures_within_the_time(drive: Driver) -> None:
    """The timeout of an attempt that failed does not strike the wait or the next attempt."""
    policy = BUSY.with_attempt_timeout(5).with_backoff(Constant(20))
    outcome = drive(policy, lasting(4, Busy()), lasting(4, Busy()), lasting(4))
    assert outcome.starts == [0, 24, 48]
    assert outcome.elapsed == 52


@both
def test_a_decorated_function_keeps_its_bounds(backend: str) -> None:
    """Called with arguments and again, each attempt has its own time."""
    script = AsyncScript(Busy, "one", Busy, "two", takes=4)
    decorated = BUSY.with_attempt_timeout(5)(script)

    async def main() -> list[object]:
        return [await decorated(1), await decorated(2)]

    with virtual_time():
        assert anyio.run(main, backend=backend) == ["one", "two"]
    assert [call.args for call in script.calls] == [(1,), (1,), (2,), (2,)]


@both
@pytest.mark.parametrize("form", ["decorated", "called", "block"])
def test_in_real_time(backend: str, form: str) -> None:
    """Hanging attempts are cut short and retried; the waits between them are real, too."""
    policy = retry(on=Busy, attempts=3, attempt_timeout=0.005, backoff=Constant(0.001))
    calls: list[str] = []

    async def hang() -> None:
        calls.append("hang")
        await anyio.sleep_forever()

    async def main() -> None:
        if form == "decorated":
            await policy(hang)()
        elif form == "called":
            await policy.acall(hang)
        else:
            async for attempt in policy:
                async with attempt:
                    await hang()

    with pytest.raises(AttemptTimeout, match=r"^the attempt was cut short after 0\.005 s"):
        anyio.run(main, backend=backend)
    assert len(calls) == 3


@both
def test_in_real_time_within_the_limit(backend: str) -> None:
    """Values are returned and errors raised unchanged by attempts that are quick enough."""
    policy = retry(on=Busy, attempt_timeout=30, backoff=Constant(0))
    error = TimeoutError("mine")

    async def fail() -> None:
        raise error

    async def main() -> None:
        assert await policy.acall(AsyncScript(Busy, "done")) == "done"
        with pytest.raises(TimeoutError) as caught:
            await policy.acall(fail)
        assert caught.value is error

    anyio.run(main, backend=backend)
