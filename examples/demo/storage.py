"""The Cloud Storage part: every contender performs the same workload against a fresh cloud with the same random faults.

Waits are shortened by `FACTOR`.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import httpx

from examples.demo.checker import Claim, Score, score
from examples.demo.contenders import CONTENDERS, Network
from examples.demo.faults import random_faults
from examples.demo.model import DemoBucket, DemoOperation, DemoRequest, Send
from examples.demo.workload import workload
from forbear.run.runtime import FastClock, Runtime, current
from forbear_cloud import Cloud

FACTOR = 60
"""The factor by which time is compressed: a minute takes a second."""

SERVER_TIMEOUT = 30.0
"""A client's timeout for the server, in real (not compressed) seconds: far more than a slow machine takes."""

_WORKERS = 12
_TICK = 0.1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A contender's progress so far: requests, requests that met a fault, and how many callers now wait for a retry."""

    contender: str
    requests: int
    faults: int
    waiting: int


class CountingRuntime(FastClock):
    """A clock of compressed time that counts in `waiting` how many callers are in `asleep`."""

    def __init__(self, factor: float) -> None:
        super().__init__(factor)
        self.waiting = 0

    async def asleep(self, seconds: float) -> None:
        """Sleep for `seconds` of compressed time, which is less real time; meanwhile `waiting` counts this caller."""
        self.waiting += 1
        try:
            await super().asleep(seconds)
        finally:
            self.waiting -= 1


def compare(seed: int, each: int, watch: Callable[[Snapshot], None]) -> "Iterator[tuple[str, Score, float]]":
    """Let each contender perform `each` operations of every kind. Yield each contender's name, score and real seconds.

    `watch` is called with a snapshot of the progress ten times a second of real time.
    """
    for name in CONTENDERS:
        start = time.monotonic()
        with Cloud() as cloud:
            claims, operations = asyncio.run(_perform_all(name, cloud, seed, each, watch))
            yield name, score(operations, claims, cloud), time.monotonic() - start


async def _perform_all(
    name: str, cloud: Cloud, seed: int, each: int, watch: Callable[[Snapshot], None]
) -> tuple[dict[str, Claim], list[DemoOperation]]:
    make_transport, send_once = CONTENDERS[name]
    runtime = CountingRuntime(FACTOR)
    current.set(runtime)
    groups = workload(DemoBucket(cloud.store, seed), seed, each)
    watching = asyncio.create_task(_watch(name, cloud, runtime, watch))
    transport = make_transport(Network(cloud.url))
    async with httpx.AsyncClient(
        base_url=cloud.url, transport=transport, timeout=SERVER_TIMEOUT, trust_env=False
    ) as client:

        async def send(request: DemoRequest) -> httpx.Response:
            cloud.fault(*random_faults(seed, request))
            return await send_once(client, request)

        claims: dict[str, Claim] = {}
        pending = iter(groups)
        async with asyncio.TaskGroup() as workers:
            for _ in range(_WORKERS):
                workers.create_task(_work(pending, send, claims))
    watching.cancel()
    return claims, [operation for group in groups for operation in group]


async def _work(pending: Iterable[tuple[DemoOperation, ...]], send: Send, claims: dict[str, Claim]) -> None:
    """Perform the pending groups one by one, and record in `claims`, by operation name, what the client learned.

    An httpx.HTTPError counts as "not done"; other errors propagate.
    """
    for group in pending:
        for operation in group:
            try:
                claims[operation.name] = Claim(True, await operation.perform(send))
            except httpx.HTTPError:
                claims[operation.name] = Claim(False)


async def _watch(name: str, cloud: Cloud, runtime: CountingRuntime, watch: Callable[[Snapshot], None]) -> None:
    real = Runtime()
    while True:
        requests = list(cloud.requests)
        faults = sum(request.fault is not None for request in requests)
        watch(Snapshot(name, len(requests), faults, runtime.waiting))
        await real.asleep(_TICK)
