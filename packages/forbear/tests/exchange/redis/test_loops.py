"""A budget that does I/O is awaited in async code, whatever is sent to Redis."""

from collections.abc import Awaitable, Callable

import pytest

from forbear.exchange.redis.aloops import listen, send
from forbear.exchange.redis.descriptions import describe_command
from forbear.exchange.redis.settings import RedisSettings
from forbear.services import redis
from forbear.testing import virtual_time
from forbear_testkit.run.remote_budget import Remote

Loop = Callable[[RedisSettings, Callable[[], Awaitable[str]]], Awaitable[str]]


def _send(settings: RedisSettings, attempt: Callable[[], Awaitable[str]]) -> Awaitable[str]:
    return send(settings, describe_command, ("GET", "key"), attempt)


@pytest.mark.parametrize("loop", [_send, listen], ids=["command", "subscription"])
async def test_async_loops_await_the_budget(loop: Loop) -> None:
    """It is awaited before each wait, and its refusal ends the run with the error."""
    budget = Remote(True, False)

    async def attempt() -> str:
        raise ConnectionRefusedError

    settings = RedisSettings(redis.policy.with_budget(budget))
    with virtual_time(), pytest.raises(ConnectionRefusedError):
        await loop(settings, attempt)
    assert [step for step in budget.log if step.endswith("take")] == ["atake", "atake"]
