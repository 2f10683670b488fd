"""The httpx transport on its happy path: alone, with nothing to send through, and on real connections over loopback."""

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import httpx

from benchmarks.measure import Effort, arepeated, race, repeated
from benchmarks.table import OURS, Table, Target
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport

BARE = "bare client"
_OBJECT = "https://storage.googleapis.com/storage/v1/b/bucket/o/photos%2Fcat.jpg"
_UPLOAD = "https://storage.googleapis.com/upload/storage/v1/b/bucket/o?uploadType=media&name=cat&ifGenerationMatch=0"
_ELSEWHERE = "https://api.example.com/things/1"
PATIENCE = "a few requests of each in turn, in eight times as many rounds: the network is noisy"
_COMPARED = [
    (", any host", ""),
    (", Cloud Storage read", ""),
    (", Cloud Storage upload", ", upload"),
    (", async, any host", ", async"),
]


def alone(effort: Effort) -> Table:
    """What the transport adds, next to a client whose own transport does nothing."""
    with (
        httpx.Client(transport=_nothing()) as bare,
        httpx.Client(transport=RetryTransport(transport=_nothing())) as client,
        asyncio.Runner() as runner,
    ):
        abare = httpx.AsyncClient(transport=_nothing())
        aclient = httpx.AsyncClient(transport=AsyncRetryTransport(transport=_nothing()))
        samplers = {
            BARE: repeated(partial(bare.get, _ELSEWHERE)),
            f"{OURS}, any host": repeated(partial(client.get, _ELSEWHERE)),
            f"{OURS}, Cloud Storage read": repeated(partial(client.get, _OBJECT)),
            f"{BARE}, upload": repeated(partial(bare.post, _UPLOAD, content=b"meow")),
            f"{OURS}, Cloud Storage upload": repeated(partial(client.post, _UPLOAD, content=b"meow")),
            f"{BARE}, async": arepeated(runner, partial(abare.get, _ELSEWHERE)),
            f"{OURS}, async, any host": arepeated(runner, partial(aclient.get, _ELSEWHERE)),
        }
        samples = race(samplers, effort)
        runner.run(_close(abare, aclient))
    pairs = [(f"{OURS}{what}", f"{BARE}{base}") for what, base in _COMPARED]
    notes = [f"{ours}: {_added(samples[ours], samples[bare]):.1f} us more than {bare}" for ours, bare in pairs]
    return Table("httpx", "httpx, with nothing to send through", "us", 1e6, samples, notes=tuple(notes))


def loopback(effort: Effort) -> Table:
    """The share of a real request: a GET of 1 kB over a connection that is kept."""
    with (
        server() as url,
        httpx.Client(transport=httpx.HTTPTransport()) as bare,
        httpx.Client(transport=RetryTransport()) as client,
    ):
        samplers = {BARE: repeated(partial(bare.get, url)), OURS: repeated(partial(client.get, url))}
        samples = race(samplers, patient(effort))
    target = Target(OURS, 1.03, BARE)
    title = "httpx, GET over loopback"
    return Table("httpx-loopback", title, "us", 1e6, samples, (BARE,), (target,), notes=(PATIENCE,))


def loopback_async(effort: Effort) -> Table:
    """The same with async clients."""
    with server() as url, asyncio.Runner() as runner:
        bare = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport())
        client = httpx.AsyncClient(transport=AsyncRetryTransport())
        samplers = {BARE: arepeated(runner, partial(bare.get, url)), OURS: arepeated(runner, partial(client.get, url))}
        samples = race(samplers, patient(effort))
        runner.run(_close(bare, client))
    target = Target(OURS, 1.03, BARE)
    title = "httpx, awaited GET over loopback"
    return Table("httpx-loopback-async", title, "us", 1e6, samples, (BARE,), (target,), notes=(PATIENCE,))


def _added(ours: list[float], bare: list[float]) -> float:
    """Microseconds more, by the median of the differences within each round."""
    return 1e6 * median(a - b for a, b in zip(ours, bare, strict=True))


def patient(effort: Effort) -> Effort:
    """More rounds, for what is looked for is small."""
    return effort._replace(rounds=8 * effort.rounds)


def _nothing() -> httpx.MockTransport:
    return httpx.MockTransport(lambda request: httpx.Response(200, content=b"ok"))


async def _close(*clients: httpx.AsyncClient) -> None:
    for client in clients:
        await client.aclose()


@contextmanager
def server() -> Generator[str, None, None]:
    command = [sys.executable, "-I", str(Path(__file__).with_name("loopback.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("pipes were asked for")
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/thing"
        server.stdin.close()  # ends it
