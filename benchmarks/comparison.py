"""Compare what retry libraries do to the same requests when a server fails: the server counts.

The server is the embedded cloud. Libraries for functions wrap a function that sends one request with httpx and raises
for a status from 400. All make at most 5 attempts, on every error of httpx or every response that they call transient.
Waits take no real time.
"""

import asyncio
import random
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from time import monotonic
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import aiohttp
import httpx
import httpx_retries
import stamina
import stamina.instrumentation
import tenacity
from aiohttp_retry import ExponentialRetry, RetryClient
from google.api_core.retry import Retry as GoogleRetry
from google.api_core.retry import if_exception_type
from redress.errors import ErrorClass
from redress.policy.decorator import retry as redress_retry
from redress.strategies import decorrelated_jitter

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

Send = Callable[[str, str, bytes], bytes]
Wrap = Callable[[Callable[[], bytes]], Callable[[], bytes]]

ATTEMPTS, TIMEOUT = 5, 60
_UPLOAD = "/upload/storage/v1/b/my-bucket/o?uploadType=media&name=new"
_READ = "/storage/v1/b/my-bucket/o/there?alt=media"
_BODY = bytes(1000)


def _forbear(function: Callable[[], bytes]) -> Callable[[], bytes]:
    return forbear.retry(on=forbear.transient, attempts=ATTEMPTS, timeout=TIMEOUT)(function)


def _tenacity(function: Callable[[], bytes]) -> Callable[[], bytes]:
    return tenacity.retry(
        retry=tenacity.retry_if_exception_type((httpx.HTTPError, aiohttp.ClientError)),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(max=TIMEOUT),
        reraise=True,
    )(function)


def _stamina(function: Callable[[], bytes]) -> Callable[[], bytes]:
    stamina.instrumentation.set_on_retry_hooks([])
    return stamina.retry(on=httpx.HTTPError, attempts=ATTEMPTS, timeout=TIMEOUT)(function)


def _classified(error: BaseException) -> ErrorClass:
    return ErrorClass.TRANSIENT if isinstance(error, httpx.HTTPError) else ErrorClass.PERMANENT


def _redress(function: Callable[[], bytes]) -> Callable[[], bytes]:
    return redress_retry(
        classifier=_classified, deadline_s=TIMEOUT, max_attempts=ATTEMPTS, strategy=decorrelated_jitter(1, TIMEOUT)
    )(function)


def _google(function: Callable[[], bytes]) -> Callable[[], bytes]:
    return GoogleRetry(if_exception_type(httpx.HTTPError), timeout=TIMEOUT)(function)


FUNCTIONS: dict[str, Wrap] = {
    "forbear, a function": _forbear,
    "tenacity": _tenacity,
    "stamina": _stamina,
    "redress": _redress,
    "google-api-core": _google,
}


def _plain(method: str, url: str, content: bytes) -> bytes:
    with httpx.Client() as client:
        return client.request(method, url, content=content).raise_for_status().content


def _wrapped(wrap: Wrap) -> Send:
    return lambda method, url, content: wrap(lambda: _plain(method, url, content))()


def _with_transport(make: Callable[[], httpx.BaseTransport]) -> Send:
    def send(method: str, url: str, content: bytes) -> bytes:
        with httpx.Client(transport=make()) as client:
            return client.request(method, url, content=content).raise_for_status().content

    return send


def _aiohttp_retry(method: str, url: str, content: bytes) -> bytes:
    async def send() -> bytes:
        options = ExponentialRetry(attempts=ATTEMPTS)
        async with (
            aiohttp.ClientSession() as session,
            RetryClient(session, retry_options=options).request(method, url, data=content) as got,
        ):
            got.raise_for_status()
            return await got.read()

    return asyncio.run(send())


CONTENDERS: dict[str, Send] = {
    "forbear, a transport": _with_transport(lambda: RetryTransport(cloud_storage.policy.with_attempts(ATTEMPTS))),
    **{name: _wrapped(wrap) for name, wrap in FUNCTIONS.items()},
    "httpx-retries": _with_transport(
        lambda: httpx_retries.RetryTransport(retry=httpx_retries.Retry(total=ATTEMPTS - 1, backoff_factor=0.5))
    ),
    "aiohttp-retry": _aiohttp_retry,
}


class Behaviour(NamedTuple):
    """The counts of the server for one contender."""

    executed: int
    """The number of executions of an upload whose first response is lost; 1 is right."""
    recovered: bool
    """True if an upload with `ifGenerationMatch=0` succeeds whose first attempt gets a 503."""
    delivered: bool
    """True if a GET delivers all bytes although the connection breaks in the middle of the body."""
    waited: float
    """Seconds before the retry of a GET, after a 503 with `Retry-After: 20`; 20 or more is right."""
    sent: int
    """Requests for one call in a lasting outage, if a second layer of retries is around it; 5 is right."""


@contextmanager
def _no_sleeping(waits: list[float]) -> Generator[None]:
    """Record the waits of all libraries; forbear has a clock of its own."""
    real = asyncio.sleep  # noqa: TID251 - for turns of the event loop

    async def asleep(seconds: float, result: Any = None) -> Any:
        if seconds:
            waits.append(seconds)
        return await real(0, result)

    with ExitStack() as stack:
        clock = stack.enter_context(virtual_time(seed=1))
        stack.enter_context(patch("time.sleep", waits.append))
        stack.enter_context(patch("asyncio.sleep", asleep))
        fake = SimpleNamespace(sleep=waits.append, monotonic=lambda: monotonic() + sum(waits))
        for module in ("retry_base", "retry_unary"):  # it has no limit of attempts, so its clock has to move
            stack.enter_context(patch(f"google.api_core.retry.{module}.time", fake))
        yield
    waits += clock.slept


def behaviour(name: str) -> Behaviour:
    """Let a contender send its requests, and return what the server counted."""
    send = CONTENDERS[name]
    random.seed(1)  # what the libraries draw their waits with
    executed, _, _ = _meet(send, "POST", _UPLOAD, Fault.reset(when="after", times=1), "storage.objects.insert")
    _, got, _ = _meet(send, "GET", _READ, Fault.truncate(500, times=1))
    _, _, waits = _meet(send, "GET", _READ, Fault.status(503, headers={"Retry-After": "20"}, times=1))
    _, uploaded, _ = _meet(send, "POST", f"{_UPLOAD}&ifGenerationMatch=0", Fault.status(503, times=1))
    around = FUNCTIONS.get(name, _forbear if name.startswith("forbear") else _tenacity)

    def twice(method: str, url: str, content: bytes) -> bytes:
        return around(lambda: send(method, url, content))()

    outage, _, _ = _meet(twice, "GET", _READ, Fault.status(503, times=10_000))
    return Behaviour(executed, uploaded is not None, got == _BODY, round(waits[0], 1) if waits else 0.0, outage)


def _meet(
    send: Send, method: str, path: str, fault: Fault, effect: str | None = None
) -> tuple[int, bytes | None, list[float]]:
    """Send a request that meets a fault; return the number of effects or requests, the body, and the waits."""
    waits, body = list[float](), None
    with Cloud() as cloud:
        cloud.store.create_bucket("my-bucket")
        httpx.post(f"{cloud.url}{_UPLOAD.replace('=new', '=there')}", content=_BODY).raise_for_status()
        before = len(cloud.requests), cloud.effects.count("storage.objects.insert")
        cloud.fault(fault)
        try:
            with _no_sleeping(waits):
                body = send(method, cloud.url + path, b"content" if method == "POST" else b"")
        except Exception:
            pass
        count = cloud.effects.count(effect) - before[1] if effect else len(cloud.requests) - before[0]
    return count, body, waits
