"""An unsafe request that is cut off under way may have been executed: no outer policy sends it again."""

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import grpc
import grpc.aio
import httpx
import httpx2
import pytest
import requests

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google import async_retry_for
from forbear.clients.grpc import aio_interceptors
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.clients.httpx2 import AsyncRetryTransport as AsyncRetryTransport2
from forbear.clients.requests import RetryAdapter
from forbear_testkit.clients.cut_off import OUTER, WAYS, Arrival, Failed, Send, by_a_task, by_a_timeout_that_is_handled
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.wire import Answer, Wire, reply

Open = Callable[[str], Any]


@asynccontextmanager
async def _httpx(url: str) -> AsyncGenerator[Callable[[str], Awaitable[object]]]:
    transport = AsyncRetryTransport(transport=httpx.AsyncHTTPTransport(verify=False))
    async with httpx.AsyncClient(transport=transport) as client:
        yield lambda method: client.request(method, url)


@asynccontextmanager
async def _httpx2(url: str) -> AsyncGenerator[Callable[[str], Awaitable[object]]]:
    transport = AsyncRetryTransport2(transport=httpx2.AsyncHTTPTransport(verify=False))
    async with httpx2.AsyncClient(transport=transport) as client:
        yield lambda method: client.request(method, url)


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncGenerator[Callable[[str], Awaitable[object]]]:
    async with aiohttp.ClientSession(middlewares=(RetryMiddleware(),)) as session:

        async def send(method: str) -> bytes:
            async with session.request(method, url) as response:
                return await response.read()

        yield send


HTTP = [_httpx, _httpx2, _aiohttp]
MOMENTS: dict[str, Callable[[Arrival], Answer]] = {
    "before the response": lambda arrival: Answer(first=arrival.come, end="stall"),
    "in a short body": lambda arrival: _stalled(100, arrival),
    "in a long body": lambda arrival: _stalled(1_000_000, arrival),
}


def _stalled(length: int, arrival: Arrival) -> Answer:
    answer = reply(200, b"every", length=length, end="stall")
    return Answer(answer.data, "stall", then=arrival.come)


async def _order(way: Callable[[Send, Arrival], Awaitable[None]], send: Send, arrival: Arrival) -> BaseException:
    """Return the error of a function that is repeated, whose request is cut off."""

    @OUTER
    async def order() -> None:
        await way(send, arrival)

    with pytest.raises((TimeoutError, Failed, ExceptionGroup)) as caught:
        await order()
    return caught.value


@pytest.mark.parametrize(
    ("way", "moment"),
    [(way, "before the response") for way in WAYS] + [(by_a_task, moment) for moment in list(MOMENTS)[1:]],
)
@pytest.mark.parametrize("opened", HTTP, ids=lambda client: client.__name__)
def test_a_post_that_is_cut_off_is_sent_once(opened: Open, way: Any, moment: str) -> None:
    """The error that the function raises has the report."""

    async def main() -> None:
        arrival = Arrival()
        with Wire(MOMENTS[moment](arrival)) as wire:
            async with opened(wire.url) as send:
                error = await _order(way, lambda: send("POST"), arrival)
            assert [seen.method for seen in wire.seen] == ["POST"]
        found = forbear.report(error)
        assert found is not None
        assert found.reason is forbear.events.Reason.UNSAFE

    asyncio.run(main())


@pytest.mark.parametrize("opened", HTTP, ids=lambda client: client.__name__)
def test_a_get_that_is_cut_off_is_sent_again(opened: Open) -> None:
    """A repeat is harmless, so the outer policy decides by the error."""

    async def main() -> None:
        arrival = Arrival()
        with Wire(Answer(first=arrival.come, end="stall")) as wire:
            async with opened(wire.url) as send:
                error = await _order(by_a_timeout_that_is_handled, lambda: send("GET"), arrival)
            assert len(wire.seen) == 3
        found = forbear.report(error)
        assert found is not None
        assert found.reason is forbear.events.Reason.ATTEMPTS

    asyncio.run(main())


def test_the_attempt_timeout_of_an_outer_policy() -> None:
    """It cancels the function, and with it the request."""

    async def main() -> None:
        arrival = Arrival()
        with Wire(Answer(first=arrival.come, end="stall")) as wire:
            async with _httpx(wire.url) as send:

                @OUTER.replace(attempt_timeout=0.2)
                async def order() -> None:
                    await send("POST")

                with pytest.raises(forbear.AttemptTimeout):
                    await order()
            assert len(wire.seen) == 1

    asyncio.run(main())


def test_a_vouch_that_raises_hides_no_cancellation() -> None:
    """The cancellation passes, and the request counts as unsafe."""

    def fail(request: object) -> bool:
        raise KeyError(request)

    async def main() -> None:
        arrival = Arrival()
        transport = AsyncRetryTransport(transport=httpx.AsyncHTTPTransport(verify=False), safe=fail)
        with Wire(Answer(first=arrival.come, end="stall")) as wire:
            async with httpx.AsyncClient(transport=transport) as client:
                await _order(by_a_task, lambda: client.post(wire.url), arrival)
            assert len(wire.seen) == 1

    asyncio.run(main())


# gRPC


class _Held(list[bytes]):
    """The responses of a server that answers nothing before the test ends."""

    def __init__(self, arrival: Arrival, ended: threading.Event) -> None:
        self._arrival = arrival
        self._ended = ended

    def __iter__(self) -> Iterator[bytes]:
        self._arrival.come()
        self._ended.wait(20)
        return iter([b""])


def _by_interceptor(channel: Any) -> Awaitable[object]:
    call: Awaitable[object] = channel.unary_unary("/t.T/Say")(b"a")
    return call


async def _by_stream(channel: Any) -> list[object]:
    return [response async for response in channel.unary_stream("/t.T/Watch")(b"a")]


@pytest.mark.parametrize("call", [_by_interceptor, _by_stream])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_call_of_grpc_that_is_cut_off_is_made_once(way: Any, call: Any) -> None:
    """Nobody knows what the method does, so that a repeat could do harm."""
    ended = threading.Event()

    async def main() -> None:
        arrival = Arrival()
        server.replies = _Held(arrival, ended)
        async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors()) as channel:
            try:
                await _order(way, lambda: call(channel), arrival)
            finally:
                ended.set()
        assert arrival.count == 1

    with running() as server:
        asyncio.run(main())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_call_of_a_generated_client_that_is_cut_off_is_made_once(way: Any) -> None:
    """The retry object of an RPC that creates a key judges the cancellation, too."""

    async def main() -> None:
        arrival = Arrival()

        async def create(request: object) -> None:
            arrival.come()
            await asyncio.get_running_loop().create_future()

        retried: Any = async_retry_for("google.iam.admin.v1.IAM/CreateServiceAccountKey")(create)
        await _order(way, lambda: retried({"name": "projects/p/serviceAccounts/a"}), arrival)
        assert arrival.count == 1

    asyncio.run(main())


# Sync clients: a signal handler, or whatever raises in the middle of a request


class _TimeIsUp(Exception):
    """The error of a worker that limits the time of its tasks."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], None]]:
    """A function that interrupts the main thread, from any thread."""

    def handle(*_: object) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGUSR1, handle)
    yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def _post_httpx(url: str) -> object:
    with httpx.Client(transport=RetryTransport(transport=httpx.HTTPTransport(verify=False))) as client:
        return client.post(url)


def _post_requests(url: str) -> object:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter())
        return session.post(url)


@pytest.mark.parametrize("post", [_post_httpx, _post_requests], ids=lambda post: post.__name__)
def test_a_post_that_a_signal_interrupts_is_sent_once(post: Callable[[str], object], alarm: Callable[[], None]) -> None:
    """The handler's error passes, and carries the report."""
    with Wire(Answer(first=alarm, end="stall")) as wire:
        with pytest.raises(_TimeIsUp) as caught:
            OUTER.call(post, wire.url)
        assert len(wire.seen) <= 1  # the server notes a request once it has raised the alarm
    found = forbear.report(caught.value)
    assert found is not None
    assert found.reason is forbear.events.Reason.UNSAFE
