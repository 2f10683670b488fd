"""A write that a client gave up as unsafe is executed once, whatever the code around the client raises instead."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import aiohttp
import grpc
import grpc.aio
import httpx
import httpx2
import pytest
import requests
import urllib3
from anyio.lowlevel import checkpoint

import forbear
from forbear.clients import httpx as our_httpx
from forbear.clients import httpx2 as our_httpx2
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.run.functions import is_async
from forbear.testing import virtual_time
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.wire import Answer, Wire, reply

OUTER = forbear.retry(on=Exception, attempts=3, backoff=forbear.Constant(0))


def _with_httpx(url: str, **options: Any) -> None:
    plain = httpx.HTTPTransport(verify=False)  # certificates take long to load
    with httpx.Client(transport=our_httpx.RetryTransport(transport=plain, **options), trust_env=False) as client:
        client.post(url, content=b"x").raise_for_status()


async def _with_async_httpx(url: str, **options: Any) -> None:
    plain = httpx.AsyncHTTPTransport(verify=False)
    transport = our_httpx.AsyncRetryTransport(transport=plain, **options)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        (await client.post(url, content=b"x")).raise_for_status()


def _with_httpx2(url: str, **options: Any) -> None:
    plain = httpx2.HTTPTransport(verify=False)
    with httpx2.Client(transport=our_httpx2.RetryTransport(transport=plain, **options), trust_env=False) as client:
        client.post(url, content=b"x").raise_for_status()


def _with_requests(url: str, **options: Any) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter(**options))
        session.post(url, data=b"x", timeout=10).raise_for_status()


async def _with_aiohttp(url: str, **options: Any) -> None:
    middlewares = (RetryMiddleware(**options),)
    async with aiohttp.ClientSession(middlewares=middlewares) as session:
        (await session.post(url, data=b"x")).raise_for_status()


def _with_urllib3(url: str, **options: Any) -> None:
    with urllib3.PoolManager(retries=Retry(**options), timeout=10) as pool:
        response = pool.request("POST", url, body=b"x")
        if response.status >= 400:
            raise Answered(response)


def _with_grpc(target: str, **options: Any) -> None:
    with grpc.insecure_channel(target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(**options))
        channel.unary_unary("/t.T/Say")(b"x")


async def _with_async_grpc(target: str, **options: Any) -> None:
    interceptors: Any = aio_interceptors(**options)
    async with grpc.aio.insecure_channel(target, interceptors=interceptors) as plain:
        channel: Any = plain
        await channel.unary_unary("/t.T/Say")(b"x")


class Answered(Exception):
    """The error that code around urllib3 raises for a failed response."""

    def __init__(self, response: Any) -> None:
        super().__init__(response)
        self.response = response


HTTP = {
    "httpx": _with_httpx,
    "httpx-async": _with_async_httpx,
    "httpx2": _with_httpx2,
    "requests": _with_requests,
    "aiohttp": _with_aiohttp,
    "urllib3": _with_urllib3,
}
GRPC = {"grpc": _with_grpc, "grpc-async": _with_async_grpc}
WITH_WORDS = {name: post for name, post in HTTP.items() if name != "urllib3"}
FATES = {"lost": Answer(end="close"), "503": reply(503, b"x")}

every_fate = pytest.mark.parametrize("fate", FATES.values(), ids=FATES)


def _posts(clients: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("post", clients.values(), ids=clients)


class Failed(Exception):
    """The error of the code around the client."""


@contextmanager
def unchanged() -> Generator[None]:
    """The client's own error."""
    yield


@contextmanager
def caused() -> Generator[None]:
    """An error with the client's as its cause."""
    try:
        yield
    except Exception as error:
        raise Failed from error


@contextmanager
def anew() -> Generator[None]:
    """An error with the client's as its context."""
    try:
        yield
    except Exception:
        raise Failed  # noqa: B904


@contextmanager
def from_none() -> Generator[None]:
    """The same, with a suppressed context."""
    try:
        yield
    except Exception:
        raise Failed from None


@contextmanager
def swallowed() -> Generator[None]:
    """A later error, after the client's was handled."""
    with suppress(Exception):
        yield
    raise Failed


@contextmanager
def grouped() -> Generator[None]:
    """A group with the client's error in a member's context."""
    try:
        with from_none():
            yield
    except Failed as error:
        raise ExceptionGroup("several", [ExceptionGroup("one", [error])]) from None


SHAPES = [unchanged, caused, anew, from_none, swallowed, grouped]


def _under_outer(post: Callable[..., Any], shape: Any, url: Any, **options: Any) -> BaseException:
    """Return the error that leaves the outer policy."""

    async def arun() -> None:
        with shape():
            await post(url, **options)

    def run() -> None:
        with shape():
            post(url, **options)

    with virtual_time(), pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(OUTER.acall(arun)) if is_async(post) else OUTER.call(run)
    return caught.value


def _assert_stopped(error: BaseException) -> None:
    found = forbear.report(error)
    assert found is not None
    assert found.reason in (forbear.events.Reason.UNSAFE, forbear.events.Reason.BODY)


@_posts(HTTP)
@every_fate
def test_a_write_is_executed_once(post: Callable[..., Any], fate: Answer) -> None:
    """Counted at the server, for each way in which the code around the client raises."""
    for shape in SHAPES:
        with Wire(fate) as wire:
            _assert_stopped(_under_outer(post, shape, wire.url))
            assert len(wire.seen) == 1, shape.__name__


@_posts(GRPC)
def test_an_rpc_is_executed_once(post: Callable[..., Any]) -> None:
    """The same over gRPC."""
    with running() as server:
        for number, shape in enumerate(SHAPES, 1):
            server.fail(grpc.StatusCode.UNAVAILABLE)
            _assert_stopped(_under_outer(post, shape, server.target))
            assert len(server.calls) == number, shape.__name__


@_posts(HTTP)
def test_a_read_is_repeated(post: Callable[..., Any]) -> None:
    """A failure that leaves no doubt is the outer policy's: here the server knows of nothing."""
    with Wire(reply(404, b"x")) as wire:
        _under_outer(post, anew, wire.url)
        assert len(wire.seen) == 3


def _fail(*things: object) -> Any:
    raise KeyError("of the user's own function")


def _policy(**changes: Any) -> dict[str, Any]:
    return {"policy": forbear.retry(on=Exception).replace(**changes)}


WORDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "safe": lambda url: {"safe": _fail},
}
JUDGES: dict[str, Callable[[str], dict[str, Any]]] = {
    "on": lambda url: _policy(on=_fail),
    "delay": lambda url: _policy(delay=_fail),
}


@contextmanager
def _executing(fate: Answer) -> Generator[Wire]:
    with Wire(fate) as wire:
        yield wire
        assert len(wire.seen) == 1


@pytest.mark.parametrize("options", WORDS.values(), ids=WORDS)
@_posts(WITH_WORDS)
def test_a_word_that_raises_after_a_response(post: Callable[..., Any], options: Callable[[str], Any]) -> None:
    """The error of `safe` takes the place of the response, and stops outer runs."""
    with _executing(FATES["503"]) as wire:
        error = _under_outer(post, unchanged, wire.url, **options(wire.url))
        assert isinstance(error, KeyError)
        _assert_stopped(error)


@_posts(WITH_WORDS)
def test_a_result_that_is_judged_with_an_error(post: Callable[..., Any]) -> None:
    """An `on_result` that raises after a success: the write was certainly executed."""
    with _executing(reply(200, b"x")) as wire:
        _assert_stopped(_under_outer(post, unchanged, wire.url, **_policy(on_result=_fail)))


@pytest.mark.parametrize("options", [*JUDGES.values(), WORDS["safe"]], ids=[*JUDGES, "safe"])
@_posts(HTTP)
def test_a_judge_that_raises_after_a_lost_response(post: Callable[..., Any], options: Callable[[str], Any]) -> None:
    """The error of `on`, `delay` or `safe` takes the place of the client's."""
    with _executing(FATES["lost"]) as wire:
        chosen = options(wire.url)
        if post is _with_urllib3 and "safe" in chosen:
            chosen = {}  # it has no such option
        _assert_stopped(_under_outer(post, unchanged, wire.url, **chosen))


@_posts(GRPC)
def test_a_judge_that_raises_after_an_rpc(post: Callable[..., Any]) -> None:
    """The same over gRPC: `safe`, `on` and `delay`."""
    with running() as server:
        for number, options in enumerate(({"safe": _fail}, _policy(on=_fail), _policy(delay=_fail)), 1):
            server.fail(grpc.StatusCode.UNAVAILABLE)
            error = _under_outer(post, unchanged, server.target, **options)
            assert isinstance(error, grpc.RpcError)
            _assert_stopped(error)
            assert len(server.calls) == number


@_posts(WITH_WORDS)
def test_a_judge_that_raises_where_nothing_was_sent(post: Callable[..., Any], closed_port: int) -> None:
    """A refused connection leaves no doubt: the outer policy decides, as about any error."""
    judged = []

    def fail(error: Exception) -> bool:
        judged.append(error)
        raise KeyError

    error = _under_outer(post, unchanged, f"http://127.0.0.1:{closed_port}", **_policy(on=fail))
    assert forbear.report(error) is not None
    assert len(judged) == 3


def _stream_httpx(wire: Wire) -> None:
    def body() -> Iterator[bytes]:
        yield b"x"
        while not wire.seen:
            threading.Event().wait(0.001)
        raise KeyError("after the last byte")

    plain = httpx.HTTPTransport(verify=False)
    with httpx.Client(transport=our_httpx.RetryTransport(transport=plain), trust_env=False) as client:
        client.post(wire.url, content=body(), headers={"content-length": "1"})


async def _stream_async_httpx(wire: Wire) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        while not wire.seen:
            await checkpoint()
        raise KeyError("after the last byte")

    plain = httpx.AsyncHTTPTransport(verify=False)
    transport = our_httpx.AsyncRetryTransport(transport=plain)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        await client.post(wire.url, content=body(), headers={"content-length": "1"})


async def _stream_aiohttp(wire: Wire) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        while not wire.seen:
            await checkpoint()
        raise KeyError("after the last byte")

    async with aiohttp.ClientSession(middlewares=(RetryMiddleware(),)) as session:
        await session.post(wire.url, data=body(), headers={"content-length": "1"})


STREAMS = {"httpx": _stream_httpx, "httpx-async": _stream_async_httpx, "aiohttp": _stream_aiohttp}


@_posts(STREAMS)
def test_a_body_that_fails_after_its_last_byte(post: Callable[..., Any]) -> None:
    """The server may have executed the write by then."""
    with _executing(Answer(end="stall")) as wire:
        _assert_stopped(_under_outer(post, unchanged, wire))
