"""A policy around a client that has one of its own: only what the inner one ended is not repeated by the outer."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import grpc
import grpc.aio
import httpx
import httpx2
import pytest
import requests
import urllib3
from google.api_core import exceptions, gapic_v1
from google.cloud import storage
from prometheus_client import CollectorRegistry

import forbear
from forbear.clients import google
from forbear.clients import httpx as our_httpx
from forbear.clients import httpx2 as our_httpx2
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.observe import all_of
from forbear.observe.prometheus import Prometheus
from forbear.run.functions import is_async
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.clients.wire import Wire, reply

# Transports have verify=False below: the certificates of all authorities take longer to load than most tests.
INNER = rfc9110.policy.with_attempts(3)
AT_ONCE = forbear.Constant(0)


def _status(error: BaseException) -> int | None:
    """The status that an error tells, in the way of its library."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None) or getattr(error, "status", None)


def _with_httpx(url: str) -> int:
    with httpx.Client(transport=our_httpx.RetryTransport(INNER, transport=httpx.HTTPTransport(verify=False))) as client:
        return client.get(url).raise_for_status().status_code


async def _with_async_httpx(url: str) -> int:
    async with httpx.AsyncClient(
        transport=our_httpx.AsyncRetryTransport(INNER, transport=httpx.AsyncHTTPTransport(verify=False))
    ) as client:
        return (await client.get(url)).raise_for_status().status_code


def _with_httpx2(url: str) -> int:
    with httpx2.Client(
        transport=our_httpx2.RetryTransport(INNER, transport=httpx2.HTTPTransport(verify=False))
    ) as client:
        return client.get(url).raise_for_status().status_code


async def _with_async_httpx2(url: str) -> int:
    async with httpx2.AsyncClient(
        transport=our_httpx2.AsyncRetryTransport(INNER, transport=httpx2.AsyncHTTPTransport(verify=False))
    ) as client:
        return (await client.get(url)).raise_for_status().status_code


def _with_requests(url: str) -> int:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter(INNER))
        response = session.get(url, timeout=10)
        response.raise_for_status()
        return response.status_code


async def _with_aiohttp(url: str) -> int:
    async with (
        aiohttp.ClientSession(middlewares=(RetryMiddleware(INNER),), raise_for_status=True) as session,
        session.get(url) as response,
    ):
        return response.status


GETS = {
    "httpx": _with_httpx,
    "httpx-async": _with_async_httpx,
    "httpx2": _with_httpx2,
    "httpx2-async": _with_async_httpx2,
    "requests": _with_requests,
    "aiohttp": _with_aiohttp,
}
every_client = pytest.mark.parametrize("get", GETS.values(), ids=GETS)


def outer(*statuses: int, attempts: int = 4) -> forbear.Policy:
    """A policy for these statuses, as somebody writes it who waits for something to appear."""
    return forbear.retry(on=lambda error: _status(error) in statuses, attempts=attempts, backoff=AT_ONCE)


def finish(policy: forbear.Policy, get: Callable[..., Any], url: Any) -> Any:
    """Call a function of either kind under a policy."""
    if is_async(get):
        return asyncio.run(policy.acall(get, url))
    return policy.call(get, url)


@every_client
@pytest.mark.parametrize("statuses", [(404, 200), (503, 404, 200), (503, 404, 503, 404, 200)], ids=str)
def test_a_status_that_the_client_lets_out_is_the_callers(get: Callable[[str], Any], statuses: tuple[int, ...]) -> None:
    """The client may have retried something else before."""
    with Wire(*(reply(status, b"x") for status in statuses)) as wire, virtual_time():
        assert finish(outer(404), get, wire.url) == 200
        assert len(wire.seen) == len(statuses)


@every_client
def test_a_status_that_the_client_gave_up_on_is_not_repeated(get: Callable[[str], Any]) -> None:
    """Attempts do not multiply."""
    with Wire(reply(503, b"x")) as wire, virtual_time():
        with pytest.raises(Exception, match="503") as caught:
            finish(outer(503), get, wire.url)
        assert len(wire.seen) == 3
    assert _status(caught.value) == 503


def test_a_response_that_the_outer_policy_refuses_keeps_its_report() -> None:
    """If the outer policy judges the result, the report is that of the response."""

    def fetch(url: str) -> httpx.Response:
        with httpx.Client(
            transport=our_httpx.RetryTransport(INNER, transport=httpx.HTTPTransport(verify=False))
        ) as client:
            return client.get(url)

    policy = forbear.retry(on=OSError, on_result=lambda got: got.status_code >= 400, attempts=4, backoff=AT_ONCE)
    with Wire(reply(503, b"x")) as wire, virtual_time():
        assert policy.call(fetch, wire.url).status_code == 503
        assert len(wire.seen) == 3
    with Wire(reply(503, b"x"), reply(404, b"x"), reply(200, b"x")) as wire, virtual_time():
        assert policy.call(fetch, wire.url).status_code == 200


def test_urllib3() -> None:
    """Its responses carry the report, too."""
    policy = forbear.retry(on=OSError, on_result=lambda got: got.status >= 400, attempts=4, backoff=AT_ONCE)
    for statuses, seen, last in (((503,), 3, 503), ((503, 404, 200), 3, 200)):
        with (
            Wire(*(reply(status, b"x") for status in statuses)) as wire,
            virtual_time(),
            urllib3.PoolManager(retries=Retry(INNER), timeout=10) as pool,
        ):
            assert policy.call(pool.request, "GET", wire.url).status == last
            assert len(wire.seen) == seen


def test_a_client_in_a_task_of_its_own() -> None:
    """As `wait_for` makes one on older Pythons: the response still says what was tried."""

    async def fetch(url: str) -> int:
        return await asyncio.wait_for(asyncio.ensure_future(_with_async_httpx(url)), 10)

    with Wire(reply(503, b"x")) as wire, virtual_time():
        with pytest.raises(httpx.HTTPStatusError):
            asyncio.run(outer(503).acall(fetch, wire.url))
        assert len(wire.seen) == 3


READ = "google.storage.v2.Storage/GetObject"
UNAVAILABLE, NOT_FOUND = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND
MISSING = forbear.retry(
    on=lambda error: isinstance(error, exceptions.NotFound) or getattr(error, "code", str)() is NOT_FOUND,
    attempts=4,
    backoff=AT_ONCE,
)


def _by_interceptor(server: Server) -> None:
    with grpc.insecure_channel(server.target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(INNER, safe=["t.T/Say"]))
        channel.unary_unary("/t.T/Say")(b"x")


async def _by_async_interceptor(server: Server) -> None:
    interceptors: Any = aio_interceptors(INNER, safe=["t.T/Say"])
    async with grpc.aio.insecure_channel(server.target, interceptors=interceptors) as plain:
        channel: Any = plain
        await channel.unary_unary("/t.T/Say")(b"x")


def _by_retry_object(server: Server) -> None:
    with grpc.insecure_channel(server.target) as plain:
        channel: Any = plain
        wrap: Any = gapic_v1.method.wrap_method
        wrap(channel.unary_unary("/t.T/Say"))(b"x", retry=google.retry_for(READ, cloud_storage.policy.with_attempts(3)))


CALLS = {"interceptor": _by_interceptor, "interceptor-async": _by_async_interceptor, "retry_for": _by_retry_object}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_policy_around_grpc_multiplies_no_attempts(call: Callable[..., Any]) -> None:
    """NOT_FOUND after UNAVAILABLE is the caller's; UNAVAILABLE to the end is not repeated."""
    with running() as server, virtual_time():
        server.fail(UNAVAILABLE)
        server.fail(NOT_FOUND)
        finish(MISSING, call, server)
        assert len(server.calls) == 3
        server.fail(UNAVAILABLE, times=10)
        with pytest.raises(Exception, match="as told"):
            finish(MISSING.with_on(Exception), call, server)
        assert len(server.calls) == 6


@pytest.mark.parametrize("through", ["retry-object", "install"])
def test_google_cloud_storage(cloud: Cloud, through: str) -> None:
    """A 404 after a 503 is the caller's, whichever way the client retries."""
    made: Any = storage.Client(project="p", credentials=ANONYMOUS, client_options={"api_endpoint": cloud.url})
    client = install(made, cloud_storage.policy.with_attempts(3)) if through == "install" else made
    retry = DEFAULT_RETRY.with_timeout(10) if through == "retry-object" else None
    options = {} if retry is None else {"retry": retry}

    def read() -> bytes:
        data: bytes = client.bucket("bkt").blob("late").download_as_bytes(**options)
        return data

    def appear(event: forbear.events.Event) -> None:
        if isinstance(event, forbear.events.Scheduled) and "404" in event.failure.text:
            cloud.store.put("bkt", "late", b"here")

    cloud.fault(Fault.status(503, times=1))
    policy = forbear.retry(on=exceptions.NotFound, attempts=2, backoff=AT_ONCE, on_event=appear)
    with virtual_time():
        assert policy.call(read) == b"here"
    client.close()


def test_metrics_do_not_grow_by_hosts() -> None:
    """Any number of hosts makes one series; what logs and reports say has the host."""
    registry = CollectorRegistry()
    events: list[forbear.events.Event] = []
    listen = all_of(Prometheus(registry), events.append)
    transport = httpx.MockTransport(lambda request: httpx.Response(503))
    policy = INNER.with_on_event(listen)
    with virtual_time(), httpx.Client(transport=our_httpx.RetryTransport(policy, transport=transport)) as client:
        for number in range(30):
            client.get(f"http://host{number}.example/")
            client.request(f"ODD{number}", f"http://host{number}.example/")
    labels = {sample.labels["operation"] for metric in registry.collect() for sample in metric.samples}
    assert labels == {"GET", "_OTHER"}
    assert {event.operation for event in events} >= {"GET host7.example", "ODD8 host8.example"}
