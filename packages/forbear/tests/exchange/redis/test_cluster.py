"""Test which failed commands of a cluster's pipeline are sent again, and what the errors say if none are."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
import redis

import forbear
from forbear.exchange.redis import aloops, loops
from forbear.exchange.redis.cluster import QueuedCommand, list_commands, list_results
from forbear.exchange.redis.settings import RedisSettings
from forbear.services import redis as service
from forbear.services.redis.errors import raise_first
from forbear.testing import virtual_time


@dataclass
class Queued:
    """A command of a pipeline, and its response or error."""

    args: tuple[Any, ...]
    position: int
    result: Any


def broken(*commands: tuple[Any, ...]) -> list[Queued]:
    """Return commands to as many nodes, none of which answered."""
    return [Queued(command, place, redis.ConnectionError("lost")) for place, command in enumerate(commands)]


def repaired(stack: list[Queued], *, is_async: bool) -> list[Queued]:
    """Return the commands that are sent again, all with success."""
    again: list[Queued] = []

    def send(queued: QueuedCommand) -> str:
        again.append(stack[queued.position])
        return "done"

    async def asend(queued: QueuedCommand) -> str:
        return send(queued)

    settings = RedisSettings(service.policy)
    with virtual_time(seed=1):
        if is_async:
            asyncio.run(aloops.repair(settings, stack, asend))
        else:
            loops.repair(settings, stack, send)
    return again


@pytest.mark.parametrize("is_async", [False, True])
def test_every_error_tells_that_nothing_is_sent_again(is_async: bool) -> None:
    """Every error carries the report, even of a harmless command: a policy around the client must repeat none."""
    stack = broken(("GET", "a"), ("INCRBY", "b", 1))
    assert repaired(stack, is_async=is_async) == []
    with pytest.raises(redis.ConnectionError) as caught:
        raise_first(list_commands(stack), list_results(stack))
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("is_async", [False, True])
def test_what_may_be_repeated_is(is_async: bool) -> None:
    """Each command is sent again by itself."""
    stack = broken(("GET", "a"), ("SET", "b", "1"))
    assert repaired(stack, is_async=is_async) == stack
    assert [queued.result for queued in stack] == ["done", "done"]
