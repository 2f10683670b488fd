"""The Cloud Storage part: every contender performs the same workload against a fresh cloud with the same random faults.

Time is compressed. The faults of a request depend on its key and the seed only, so they are the same for every
contender, in whatever order requests arrive. They meet the first attempts, so repeating often enough always succeeds.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import httpx

from forbear.cli.demo.checker import Claim, Score, score
from forbear.cli.demo.contenders import CONTENDERS, Network
from forbear.cli.demo.model import KEY, DemoBucket, DemoOperation, DemoRequest, Send
from forbear.cli.demo.workload import workload
from forbear.run.compressed import CompressedRuntime
from forbear.run.runtime import Runtime, current
from forbear.testing.cloud import Cloud, Fault

FACTOR = 60
"""The factor by which time is compressed: a minute takes a second."""

PATIENCE = 30.0
"""A client's timeout for the server, in real seconds: far more than a slow machine takes."""

MOST = 4
"""The maximum number of faults that one request meets. The contenders have more attempts than that."""

_WORKERS = 12
_TICK = 0.1
_RATES = (
    ("unavailable", 0.07),
    ("throttled", 0.05),
    ("reset before", 0.04),
    ("reset after", 0.07),
    ("unavailable after", 0.03),
    ("cut off", 0.06),
)
"""The share of all attempts that meet a fault. "cut off" stores half a chunk, or sends half a response."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A contender's progress: requests and faults so far, and how many callers wait for a retry."""

    contender: str
    requests: int
    faults: int
    waiting: int


class CountingRuntime(CompressedRuntime):
    """Compressed time that counts how many callers sleep."""

    def __init__(self, factor: float) -> None:
        super().__init__(factor)
        self.waiting = 0

    async def asleep(self, seconds: float) -> None:
        """Sleep for `seconds` of compressed time."""
        self.waiting += 1
        try:
            await super().asleep(seconds)
        finally:
            self.waiting -= 1


def compare(seed: int, each: int, watch: Callable[[Snapshot], None]) -> "Iterator[tuple[str, Score, float]]":
    """Let each contender perform `each` operations of every kind; yield its name, score and real seconds.

    `watch` is called ten times a second.
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
    async with httpx.AsyncClient(base_url=cloud.url, transport=transport, timeout=PATIENCE, trust_env=False) as client:

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
    """Perform the pending groups one by one, and record what the client believes."""
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


def random_faults(seed: int, request: DemoRequest) -> list[Fault]:
    """Return the faults that the request meets, in their order."""
    dice = random.Random(f"{seed} {request.key}")
    faults = list[Fault]()
    while len(faults) < MOST and (fault := _draw(dice, request)) is not None:
        faults.append(fault)
    return faults


def _draw(dice: random.Random, request: DemoRequest) -> Fault | None:
    number = dice.random()
    for name, rate in _RATES:
        if number < rate:
            return _fault(name, dice, request)
        number -= rate
    return None


def _fault(name: str, dice: random.Random, request: DemoRequest) -> Fault:
    header = (KEY, request.key)
    match name:
        case "unavailable":
            return Fault.status(503, header=header)
        case "throttled":
            return Fault.status(429, retry_after=dice.randint(1, 3), header=header)
        case "reset before":
            return Fault.reset(header=header)
        case "reset after":
            return Fault.reset(when="after", header=header)
        case "unavailable after":
            return Fault.status(503, when="after", header=header)
        case _ if request.step.startswith("chunk"):
            return Fault.partial(dice.randrange(100_000), header=header)
        case _ if request.method == "DELETE" or request.step == "start":  # the response has no body to cut
            return Fault.close(when="after", header=header)
        case _:
            return Fault.truncate(share=dice.random(), header=header)
