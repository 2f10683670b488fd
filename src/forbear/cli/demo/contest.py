"""The contest: every contender performs the same workload in the same storm, on a fresh cloud, in compressed time."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import httpx

from forbear.cli.demo.ask import Ask, Operation, Send
from forbear.cli.demo.contenders import CONTENDERS, Contender, Wire
from forbear.cli.demo.referee import Claim, Score, score
from forbear.cli.demo.site import Site
from forbear.cli.demo.weather import faults
from forbear.cli.demo.workload import workload
from forbear.run.runtime import FastClock, Runtime, current
from forbear.testing.cloud import Cloud

FACTOR = 60
"""How many times faster time runs: a minute takes a second."""

_WORKERS = 12
_TICK = 0.1
PATIENCE = 30.0
"""Of a client for the server, in real seconds: far more than it takes on a slow machine."""


class Waiting(FastClock):
    """Compressed time that counts who is waiting."""

    def __init__(self, factor: float) -> None:
        super().__init__(factor)
        self.waiting = 0

    async def asleep(self, seconds: float) -> None:
        """Sleep for so many compressed seconds."""
        self.waiting += 1
        try:
            await super().asleep(seconds)
        finally:
            self.waiting -= 1


@dataclass(frozen=True, slots=True)
class Moment:
    """What is seen of a contender at one moment: requests and faults so far, and how many callers wait."""

    contender: str
    requests: int
    faults: int
    waiting: int


def contest(seed: int, each: int, watch: Callable[[Moment], None]) -> "Iterator[tuple[str, Score, float]]":
    """Let one contender after the other perform `each` operations of every kind; yields name, score, real seconds."""
    for contender in CONTENDERS:
        began = time.monotonic()
        with Cloud() as cloud:
            claims, operations = asyncio.run(_compete(contender, cloud, seed, each, watch))
            yield contender.name, score(operations, claims, cloud), time.monotonic() - began


async def _compete(
    contender: Contender, cloud: Cloud, seed: int, each: int, watch: Callable[[Moment], None]
) -> tuple[dict[str, Claim], list[Operation]]:
    runtime = Waiting(FACTOR)
    current.set(runtime)
    groups = workload(Site(cloud.store, seed), seed, each)
    watching = asyncio.create_task(_watch(contender.name, cloud, runtime, watch))
    wire = Wire(cloud.url)
    async with httpx.AsyncClient(
        base_url=cloud.url, transport=contender.transport(wire), timeout=PATIENCE, trust_env=False
    ) as client:

        async def send(ask: Ask) -> httpx.Response:
            cloud.fault(*faults(seed, ask))
            return await contender.send(client, ask)

        claims: dict[str, Claim] = {}
        left = iter(groups)
        async with asyncio.TaskGroup() as workers:
            for _ in range(_WORKERS):
                workers.create_task(_work(left, send, claims))
    watching.cancel()
    return claims, [operation for group in groups for operation in group]


async def _work(left: Iterable[tuple[Operation, ...]], send: Send, claims: dict[str, Claim]) -> None:
    """Perform what is left, one group after the other, and note what a client would believe."""
    for group in left:
        for operation in group:
            try:
                claims[operation.name] = Claim(True, await operation.perform(send))
            except httpx.HTTPError:
                claims[operation.name] = Claim(False)


async def _watch(name: str, cloud: Cloud, runtime: Waiting, watch: Callable[[Moment], None]) -> None:
    """Tell the watcher how it stands, ten times a second of real time."""
    real = Runtime()
    while True:
        seen = list(cloud.requests)
        watch(Moment(name, len(seen), sum(request.fault is not None for request in seen), runtime.waiting))
        await real.asleep(_TICK)
