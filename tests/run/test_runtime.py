"""The real runtime: it does wait, in sync code, asyncio and trio, with a jitter of its own."""

import time

import anyio
import pytest

from forbear.core.backoff import Constant, Exponential
from forbear.core.events import Event, Scheduled
from forbear.policy import retry
from forbear.run.runtime import Runtime, current, in_trio
from forbear.testing.script import AsyncScript, Script
from tests.run.cases import Busy

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
