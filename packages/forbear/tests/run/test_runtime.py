"""The real runtime: it does wait, in sync code, asyncio and trio, with a jitter of its own."""

import time
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.events import Event, Scheduled
from forbear.policy import retry
from forbear.run.runtime import Runtime, _Current, current, in_trio
from forbear.testing.script import AsyncScript, Script
from forbear_testkit.run.cases import Busy

WAIT = 0.002
SHORT = retry(on=Busy, backoff=Constant(WAIT))


def test_sync_waits() -> None:
    """Two retries, two real waits."""
    began = time.monotonic()
    assert SHORT.call(Script(Busy, Busy, "done")) == "done"
    assert time.monotonic() - began >= 2 * WAIT


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_async_waits(backend: str) -> None:
    """Two retries, two real waits, while others may run."""
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            assert await SHORT.acall(AsyncScript(Busy, Busy, "done")) == "done"
            assert ran == ["other"]

    began = time.monotonic()
    anyio.run(main, backend=backend)
    assert time.monotonic() - began >= 2 * WAIT


def test_the_default_runtime() -> None:
    """Its clocks are those of the time module, its draws uniform in [0, 1) and not all the same."""
    runtime = current.get()
    assert type(runtime) is Runtime
    assert time.monotonic() <= runtime.monotonic() <= time.monotonic()
    assert time.time() - 1 <= runtime.now() <= time.time() + 1
    draws = [runtime.random() for _ in range(100)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len(set(draws)) > 90


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_telling_event_loops_apart(backend: str) -> None:
    """By what runs here, not by what is installed or imported."""

    async def main() -> bool:
        return in_trio()

    assert anyio.run(main, backend=backend) == (backend == "trio")
    assert not in_trio()


def test_real_jitter() -> None:
    """Two runs do not wait alike."""
    delays: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, Scheduled):
            delays.append(event.delay)

    policy = retry(on=Busy, backoff=Exponential(0.0001), on_event=listen)
    policy.call(Script(Busy, Busy, Busy, "done"))
    assert len(set(delays)) == 3


def test_the_clock_is_looked_up_only_once_a_runtime_was_replaced() -> None:
    """Every call reads it; in most processes it is the real one for ever."""

    class Stopped(Runtime):
        """A clock that stands still."""

        monotonic = staticmethod(lambda: 7.0)

    fresh = _Current()
    assert fresh.clock is time.monotonic
    token = fresh.set(Stopped())
    assert fresh.clock() == 7
    fresh.reset(token)
    assert time.monotonic() <= fresh.clock() <= time.monotonic()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("seconds", [1e12, 1e300, 10**308])
def test_limits_of_ages(backend: str, seconds: float) -> None:
    """Event loops take timeouts of any length; no attempt is cut short by one."""
    policy = retry(on=Busy, timeout=seconds, attempt_timeout=seconds, backoff=Constant(0))
    assert anyio.run(policy.acall, AsyncScript(Busy, "done"), backend=backend) == "done"


@pytest.mark.parametrize("backend", [None, "asyncio", "trio"])
def test_a_wait_of_ages_is_not_begun(backend: str | None) -> None:
    """No system can wait that long: the error is raised, and says why."""
    policy = retry(on=Busy, timeout=None, backoff=Constant(1e12))
    run: Callable[[], object] = partial(policy.call, Script(Busy))
    if backend is not None:
        run = lambda: anyio.run(policy.acall, AsyncScript(Busy), backend=backend)  # noqa: E731
    with pytest.raises(Busy) as caught:
        run()
    assert caught.value.__notes__[0].endswith(
        "the next wait of 1000000000000 s would be longer than 100 years [timeout]"
    )
