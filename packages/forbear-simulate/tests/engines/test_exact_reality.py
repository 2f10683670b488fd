"""The exact engine against reality: real clients of forbear meet the service of a scenario, and both agree."""

import asyncio
import logging
from bisect import bisect
from collections import Counter
from itertools import accumulate

import httpx
import pytest

from forbear.clients.httpx import AsyncRetryTransport
from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear.run.runtime import FastClock, Runtime, current
from forbear.testing.virtual_clock import virtual_time
from forbear_cloud import Cloud, Fault, RandomFaults
from forbear_cloud.http.messages import HttpRequest
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.engines.time_series import TimeSeries
from forbear_simulate.scenario.scenario import Clients, RateChange, Scenario, Server, Window

OUT = Window("refuse", 10.005, 60)
SECONDS = 300


class Busy(Exception):
    """The service refuses a request."""


class Gate:
    """The rate limit and the outage of a scenario, for real requests, and counts of them by second."""

    def __init__(self, server: Server, runtime: Runtime, began: float) -> None:
        self._server = server
        self._runtime = runtime
        self._began = began
        self._tokens, self._filled_at = float(server.burst), 0.0
        self.counts: dict[str, Counter[int]] = {"attempts": Counter(), "refusals": Counter(), "successes": Counter()}
        self.delays: list[float] = []

    @property
    def now(self) -> float:
        """The seconds since the simulation began."""
        return self._runtime.monotonic() - self._began

    def count(self, name: str) -> None:
        """Count one in the present second."""
        self.counts[name][int(self.now)] += 1

    def refusal(self) -> int:
        """Count a request, and return the status of its refusal: 503 in the outage, 429 over the limit, or 0."""
        self.count("attempts")
        now, rate = self.now, self._server.rate_limit or 0.0
        status = 503
        if not OUT.start <= now < OUT.end:
            self._tokens = min(self._tokens + (now - self._filled_at) * rate, self._server.burst)
            self._filled_at = now
            status = 0 if self._tokens >= 1 - 1e-9 else 429
            self._tokens -= status == 0
        if status:
            self.count("refusals")
        return status


class GateFaults(RandomFaults):
    """The refusals of a `Gate`, for the embedded cloud; a 429 has a Retry-After of 3 s."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._faults = {0: None, 429: Fault.status(429, retry_after=3), 503: Fault.status(503)}

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """Return the fault for a request that is refused."""
        return self._faults[self._gate.refusal()]


def scenario(rate: float, calls: float, server: Server, policy: Policy) -> Scenario:
    """Calls at equal distances for some seconds, with an outage of 60 s from the tenth second on."""
    clients = Clients(arrivals="regular", rate=rate, changes=(RateChange(calls, 0),), count=1000, policy=policy)
    return Scenario(SECONDS, 1, clients, server, (OUT,))


def test_a_small_fleet_in_virtual_time_is_the_series_of_the_engine() -> None:
    """Without chance, each second has the same attempts, refusals and successes, and each call the same delay."""
    policy = Policy(Busy, Limits(8, 25), Exponential(0.7, 2, 8, "none"))
    server = Server(workers=1000, time=0.0201, times="constant", rate_limit=2, burst=5)
    simulated = scenario(1.53, 90, server, policy)

    async def call(gate: Gate, start: float) -> None:
        runtime = current.get()
        await runtime.asleep(start)

        async def attempt() -> None:
            if gate.refusal():
                raise Busy
            await runtime.asleep(0.0201)

        try:
            await policy.acall(attempt)
        except Busy:
            return
        gate.count("successes")
        gate.delays.append(gate.now - start)

    async def fleet(gate: Gate) -> None:
        await asyncio.gather(*(call(gate, n / 1.53) for n in range(int(90 * 1.53) + 1)))

    with virtual_time():
        runtime = current.get()
        gate = Gate(server, runtime, runtime.monotonic())
        asyncio.run(fleet(gate))
    series = simulate_exact(simulated)
    attempts = [first + retry for first, retry in zip(series.first_attempts, series.retries, strict=True)]
    assert [gate.counts["attempts"][i] for i in range(SECONDS)] == attempts
    assert [gate.counts["refusals"][i] for i in range(SECONDS)] == series.refusals
    assert [gate.counts["successes"][i] for i in range(SECONDS)] == series.successes
    assert sorted(gate.delays) == pytest.approx(sorted(series.delays))
    assert 0 < series.total("gave_up") < series.total("calls")


FACTOR = 2  # more, and the sockets of 1 000 clients would take too much of the time
SPEED = 8.0  # calls per second


async def _get(gate: Gate, client: httpx.AsyncClient, url: str, start: float, runtime: Runtime) -> None:
    await runtime.asleep(max(start - gate.now, 0.0))
    response = await client.get(url)
    assert response.status_code == 200
    gate.count("successes")
    gate.delays.append(gate.now - start)


async def _fleet(gate: Gate, url: str, policy: Policy, runtime: Runtime) -> None:
    """Let 1 000 clients, each with a connection of its own, make one call each."""
    bare = httpx.create_ssl_context(verify=False)
    clients = [
        httpx.AsyncClient(
            transport=AsyncRetryTransport(policy, transport=httpx.AsyncHTTPTransport(verify=bare)), timeout=60
        )
        for _ in range(1000)
    ]
    gate._began = runtime.monotonic()
    await asyncio.gather(*(_get(gate, client, url, n / SPEED, runtime) for n, client in enumerate(clients)))
    for client in clients:
        await client.aclose()


def _summary(attempts: list[float], successes: list[float], delays: list[float]) -> dict[str, float]:
    """Return the load of the outage, the amplification, the mean time to success, and how long 90 % took after it."""
    return {
        "load": sum(attempts[10:70]),
        "amplification": sum(attempts) / 1000,
        "time to success": sum(delays) / len(delays),
        "recovery": bisect(list(accumulate(successes)), 900) - OUT.end,
    }


def _sum_up(series: TimeSeries) -> dict[str, float]:
    attempts = [first + retry for first, retry in zip(series.first_attempts, series.retries, strict=True)]
    return _summary(attempts, series.successes, series.delays)


@pytest.mark.soak
def test_1000_real_clients_on_real_sockets() -> None:
    """Load, amplification and recovery of real clients are within 5 % of the mean of 40 runs of the engine."""
    policy = Policy(httpx.TransportError, Limits(None, 250), Exponential(1, 2, 16, "equal"))
    server = Server(workers=1000, time=0.02, times="constant", rate_limit=12, burst=10, retry_after=3)
    runs = [_sum_up(simulate_exact(scenario(SPEED, 124.99, server, policy), seed=seed)) for seed in range(40)]
    logging.getLogger("forbear").setLevel(logging.ERROR)
    with Cloud(connection_limit=2000) as cloud:
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "thing", b"data")
        runtime = FastClock(FACTOR)
        token = current.set(runtime)
        try:
            gate = Gate(server, runtime, runtime.monotonic())
            cloud.fault(GateFaults(gate))
            asyncio.run(_fleet(gate, f"{cloud.url}/storage/v1/b/bkt/o/thing?alt=media", policy, runtime))
        finally:
            current.reset(token)
            logging.getLogger("forbear").setLevel(logging.NOTSET)
    attempts, successes = ([float(gate.counts[name][i]) for i in range(SECONDS)] for name in ("attempts", "successes"))
    real = _summary(attempts, successes, gate.delays)
    for name, value in real.items():
        assert value == pytest.approx(sum(run[name] for run in runs) / len(runs), rel=0.05), (name, real, runs[:2])
