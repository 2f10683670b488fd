"""The part about Redis: several writers increment counters in a real Valkey, and requests and replies get lost.

`none` sends HINCRBY once, by redis-py with its retries switched off. `naive` is redis-py as it comes, which repeats
whatever command met a lost connection. `forbear` is `forbear.aupdate` around WATCH and MULTI over forbear's own client:
each writer leaves the number of its change in a field of its own, and looks for it where it does not know whether the
change was made.
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

from forbear.cli.demo.tally import Losses, Tally, Told, tally
from forbear.clients.redis import AsyncRedis as RetryingRedis
from forbear.core.report import report
from forbear.services import redis as rules
from forbear.testing.proxy import Cut, Proxy
from forbear.testing.valkey import valkey_server
from forbear.update import aupdate

WRITERS = 4

Fields = dict[Any, Any]
"""Of a counter: its "count", and for each writer the number of its last change."""

_LOST = 0.05
_COUNTERS = tuple(f"counter-{number}" for number in range(4))
_ONE = re.compile(rb"counter-\d")
_POLICY = rules.policy.with_attempts(50).with_timeout(30)  # on a slow machine, four writers get in each other's way


@dataclass(frozen=True, slots=True)
class Change:
    """One increment that one writer is to make; its number tells it from the writer's others."""

    counter: str
    writer: str
    number: str


async def _increment(client: AsyncRedis, change: Change) -> None:
    await client.hincrby(change.counter, "count", 1)


async def _update(client: AsyncRedis, change: Change) -> None:
    pipeline: Any = client.pipeline()  # its types leave too much open
    async with pipeline as pipe:

        async def read() -> Fields:
            await pipe.reset()
            await pipe.watch(change.counter)
            found: Fields = await pipe.hgetall(change.counter)
            return found

        async def write(fields: Fields) -> None:
            pipe.multi()
            pipe.hset(change.counter, mapping=fields)
            await pipe.execute()

        await aupdate(
            read=read,
            modify=lambda found: {"count": str(int(found.get("count", 0)) + 1), change.writer: change.number},
            write=write,
            conflict=rules.is_conflict,
            mine=lambda found: found.get(change.writer) == change.number,
            policy=_POLICY,
        )


@dataclass(frozen=True, slots=True)
class _Contender:
    name: str
    client: Callable[..., AsyncRedis]
    increment: Callable[[AsyncRedis, Change], Awaitable[None]]


_CONTENDERS = (
    _Contender("none", partial(AsyncRedis, retry=Retry(NoBackoff(), 0)), _increment),
    _Contender("naive", AsyncRedis, _increment),
    _Contender("forbear", partial(RetryingRedis, policy=_POLICY), _update),
)


def contest(seed: int, increments: int) -> Iterator[tuple[str, Tally]]:
    """Let one contender after the other make so many increments per writer: name and tally; NoValkey if none."""
    with valkey_server() as path, Redis(unix_socket_path=path, decode_responses=True) as server:
        for contender in _CONTENDERS:
            server.delete(*_COUNTERS)
            with Proxy(path, _losing(Losses(seed, _LOST))) as proxy:
                claims = asyncio.run(_compete(contender, proxy, increments))
            counted = {counter: int(server.hget(counter, "count") or 0) for counter in _COUNTERS}
            yield contender.name, tally(claims, counted)


def _losing(losses: Losses) -> Cut:
    def cut(asked: bytes, reply: bytes | None) -> bool:
        """Lose requests about a counter, and replies to them."""
        found = _ONE.search(asked)
        return found is not None and losses(f"{found[0]!r} {'request' if reply is None else 'reply'}")

    return cut


async def _compete(contender: _Contender, proxy: Proxy, increments: int) -> list[tuple[str, Told]]:
    claims = list[tuple[str, Told]]()

    async def write(writer: str) -> None:
        async with contender.client(host=proxy.host, port=proxy.port, decode_responses=True) as client:
            for number in range(increments):
                change = Change(_COUNTERS[number % len(_COUNTERS)], writer, str(number))
                claims.append((change.counter, await _told(contender.increment(client, change))))

    async with asyncio.TaskGroup() as writers:
        for number in range(WRITERS):
            writers.create_task(write(f"writer-{number}"))
    return claims


async def _told(work: Awaitable[None]) -> Told:
    """What a writer learns of its change."""
    try:
        await work
    except RedisError as error:
        told = report(error)
        return Told.UNKNOWN if told is None or told.maybe_done else Told.FAILED
    return Told.DONE
