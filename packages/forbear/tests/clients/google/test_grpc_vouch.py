"""`safe` and `not_executed` of the gRPC interceptors: the user's word, sync and asyncio, against a real server."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.grpc.call import GrpcCall
from forbear.testing import virtual_time
from forbear_testkit.clients.google.intercepted import acall, call
from forbear_testkit.clients.google.rpc_server import Server, running

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends calls as the test says."""
    with running() as server:
        server.replies = [b"1", b"2", b"3"]
        yield server


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Callable[..., list[bytes]]:
    """One of the two styles."""
    chosen: Callable[..., list[bytes]] = request.param
    return chosen


def is_a(call: GrpcCall) -> bool:
    """Return whether the message of a call is "a"."""
    return call.message == b"a"


@pytest.mark.parametrize(
    "safe",
    ["/t.T/Say", "/t.T/*", ["t.T/S*y"], is_a],
    ids=["name", "star", "list", "predicate"],
)
def test_a_vouch(server: Server, send: Callable[..., list[bytes]], safe: Any) -> None:
    """It covers the calls that it names, and no other."""
    server.fail(UNAVAILABLE)
    with virtual_time():
        assert send(server, "Say", safe=safe) == [b"1"]
        server.fail(UNAVAILABLE)
        with pytest.raises(grpc.RpcError):
            send(server, "Watch" if isinstance(safe, str) and "Say" in safe else "Say", safe="/t.T/Other")
    assert len(server.calls) == 3


@pytest.mark.parametrize("policy", [None, forbear.retry(on=grpc.RpcError)])
def test_a_status_that_refuses(server: Server, send: Callable[..., list[bytes]], policy: forbear.Policy | None) -> None:
    """A call that the server refused is sent again, after the wait that it asks for; after another status it is not."""
    refused = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED]
    for code in refused:
        server.fail(code, metadata=(("grpc-retry-pushback-ms", "20000"),))
    with virtual_time(seed=1) as time:
        assert send(server, "Say", safe=(), not_executed=refused, policy=policy) == [b"1"]
        assert [delay >= 20 for delay in time.slept] == [True, True]
        server.fail(UNAVAILABLE)
        with pytest.raises(grpc.RpcError):
            send(server, "Say", safe=(), not_executed=refused, policy=policy)
    assert len(server.calls) == 4


def harmless(error: Exception) -> forbear.verdicts.Verdict:
    """Return that nothing was executed, whatever the error is."""
    return forbear.verdicts.NOT_EXECUTED


@pytest.mark.parametrize("word", ["not_executed", "on"])
def test_reports_of_refusals(server: Server, send: Callable[..., list[bytes]], word: str) -> None:
    """They say that only the user's word allowed the retry."""
    refused = [grpc.StatusCode.ABORTED] if word == "not_executed" else ()
    on = grpc.RpcError if refused else harmless
    events: list[forbear.events.Event] = []
    policy = forbear.retry(on=on, attempts=2, on_event=events.append)
    for _ in range(2):
        server.fail(grpc.StatusCode.ABORTED)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, "Say", safe=(), not_executed=refused, policy=policy)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.vouched
    assert [event.vouched for event in events if isinstance(event, forbear.events.Scheduled)] == [True]


def test_a_response_that_is_too_large_was_executed(server: Server, send: Callable[..., list[bytes]]) -> None:
    """gRPC ends such a call with RESOURCE_EXHAUSTED; it is not sent again."""
    server.replies = [b"x" * 1000]
    with virtual_time(), pytest.raises(grpc.RpcError, match="larger than max"):
        send(server, "Say", safe=(), not_executed=[grpc.StatusCode.RESOURCE_EXHAUSTED], most=100)
    assert server.calls == ["Say"]


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
def test_a_vouch_does_not_cover_requests_that_come_once(
    server: Server, send: Callable[..., list[bytes]], name: str
) -> None:
    """An iterator of requests cannot be sent again, whatever the user says of the RPC."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError):
        send(server, name, safe="/t.T/*", request=iter([b"a", b"b"]))
    assert server.calls == [name]


@pytest.mark.parametrize("name", ["Watch", "Bidi"])
def test_a_vouch_does_not_bring_responses_twice(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """A stream that breaks after its first response is not opened again, even by a status that refuses."""
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    server.fail(exhausted, after=1)
    with virtual_time(), pytest.raises(grpc.RpcError):
        send(server, name, safe="/t.T/*", not_executed=[exhausted])
    assert server.calls == [name]


async def _never(_: object) -> bool:
    return False


def test_async_functions() -> None:
    """They are refused at once, since nobody awaits them."""
    makers: list[Callable[..., object]] = [RetryInterceptor, aio_interceptors]
    for make in makers:
        with pytest.raises(TypeError, match="`safe` must not be async"):
            make(safe=_never)
