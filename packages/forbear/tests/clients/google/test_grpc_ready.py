"""gRPC calls that may not be repeated, on a channel that forbear knows: sent only over a connection, else repeated."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors, ready
from forbear.events import Reason
from forbear_testkit.clients.google.intercepted import KINDS, UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.clients.listen import listening

QUICK = forbear.retry(on=grpc.RpcError, attempts=3, backoff=forbear.Constant(0))
SOON = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 100)]
Send = Callable[..., list[bytes]]


def call(target: str, name: str, request: Any, policy: forbear.Policy = QUICK, **options: Any) -> list[bytes]:
    """Return the responses to one call on a sync channel, which forbear knows."""
    with grpc.insecure_channel(target, SOON) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(policy, channel=plain))
        kind = KINDS[name]
        found = getattr(channel, kind)(f"/t.T/{name}")(request, **options)
        return list(found) if kind.endswith("stream") else [found]


def acall(target: str, name: str, request: Any, policy: forbear.Policy = QUICK, **options: Any) -> list[bytes]:
    """The same on an asyncio channel."""

    async def again(requests: Any) -> AsyncIterator[bytes]:
        for each in requests:
            yield each

    async def run() -> list[bytes]:
        interceptors = aio_interceptors(policy, channel=lambda: channel)
        channel: Any = grpc.aio.insecure_channel(target, SOON, interceptors=interceptors)
        async with channel:
            kind = KINDS[name]
            sent = again(request) if isinstance(request, Iterator) else request
            call = getattr(channel, kind)(f"/t.T/{name}")(sent, **options)
            return [reply async for reply in call] if kind.endswith("stream") else [await call]

    return asyncio.run(run())


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Send:
    """One of the two styles."""
    chosen: Send = request.param
    return chosen


@pytest.fixture
def closed() -> Iterator[str]:
    """The address of a port that refuses connections."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def request_of(name: str, *, once: bool) -> Any:
    """Return the request of a call, as an iterator if it can be read `once`."""
    if KINDS[name].startswith("unary"):
        return b"a"
    return iter([b"a", b"b"]) if once else [b"a", b"b"]


@pytest.mark.parametrize("once", [False, True], ids=["list", "iterator"])
@pytest.mark.parametrize("name", KINDS)
def test_a_refused_connection_is_repeated_for_any_call(closed: str, send: Send, name: str, once: bool) -> None:
    """Nothing was sent, not even a request that can be read only once; the error is one of gRPC, and says so."""
    with pytest.raises(grpc.RpcError) as caught:
        send(closed, name, request_of(name, once=once))
    error: Any = caught.value
    assert error.code() is UNAVAILABLE
    assert error.details() == "the call was not sent: the channel is in TRANSIENT_FAILURE"
    report = forbear.report(error)
    assert report is not None
    assert (report.count, report.reason) == (3, Reason.ATTEMPTS)


@pytest.mark.parametrize("once", [False, True], ids=["list", "iterator"])
@pytest.mark.parametrize("name", KINDS)
def test_a_call_over_a_connection_is_sent_once(send: Send, name: str, once: bool) -> None:
    """Whatever was handed to gRPC may have been executed."""
    with running() as server:
        server.replies = [b"1"]
        assert send(server.target, name, request_of(name, once=once)) == [b"1"]
        server.fail(UNAVAILABLE)
        with pytest.raises(grpc.RpcError, match="as told"):
            send(server.target, name, request_of(name, once=once))
        assert server.calls == [name] * 2


def test_a_server_that_comes_up_later_gets_the_call_once(send: Send) -> None:
    """`wait_for_ready` of the caller waits for it, within the timeout of the call."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        target = f"127.0.0.1:{found.getsockname()[1]}"
    with ExitStack() as stack:
        servers: list[Server] = []
        starting = threading.Thread(target=lambda: servers.append(stack.enter_context(running(target))))
        starting.start()
        assert send(target, "Say", b"a", timeout=60, wait_for_ready=True) == [b""]
        starting.join()
        assert servers[0].calls == ["Say"]


def test_a_peer_that_never_answers_takes_no_longer_than_the_call(send: Send) -> None:
    """A connection that is accepted and never becomes one of HTTP/2 ends with the timeout, and was not sent."""

    def listen(peer: socket.socket) -> None:
        while peer.recv(1 << 16):
            pass

    with listening(listen) as port, pytest.raises(grpc.RpcError) as caught:
        send(f"127.0.0.1:{port}", "Say", b"a", timeout=0.05, wait_for_ready=True)
    error: Any = caught.value
    assert (error.code(), error.details()) == (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "the call was not sent: no connection in time",
    )


def test_a_call_that_may_be_repeated_is_not_held_up(closed: str) -> None:
    """It goes straight to gRPC, and the caller gets the error of gRPC."""
    with grpc.insecure_channel(closed) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(QUICK, safe="/t.T/Say", channel=plain))
        with pytest.raises(grpc.RpcError, match="failed to connect"):
            channel.unary_unary("/t.T/Say")(b"a")


def test_a_call_that_was_not_sent_is_a_call_that_has_ended(closed: str) -> None:
    """It answers like any future of gRPC."""
    with grpc.insecure_channel(closed) as plain:
        channel: Any = grpc.intercept_channel(grpc.intercept_channel(plain), RetryInterceptor(QUICK, channel=plain))
        future = channel.unary_unary("/t.T/Say").future(b"a")
        ended: list[Any] = []
        future.add_done_callback(ended.append)
        assert future.exception() is future is ended[0]
        assert future.code() is UNAVAILABLE
        assert (future.done(), future.running(), future.cancelled(), future.cancel()) == (True, False, False, False)
        assert (future.initial_metadata(), future.trailing_metadata(), future.time_remaining()) == ((), (), 0.0)
        assert (future.is_active(), future.add_callback(print), future.traceback()) == (False, False, None)


def test_a_closed_channel_says_so(closed: str) -> None:
    """The error is that of gRPC."""

    async def run() -> None:
        channel: Any = grpc.aio.insecure_channel(closed, interceptors=aio_interceptors(channel=lambda: channel))
        multi = channel.unary_unary("/t.T/Say")
        await channel.close()
        with pytest.raises(grpc.aio.UsageError, match="closed"):
            await multi(b"a")

    asyncio.run(run())
    plain = grpc.insecure_channel(closed)
    channel: Any = grpc.intercept_channel(plain, RetryInterceptor(QUICK, channel=plain))
    plain.close()
    with pytest.raises(ValueError, match="closed channel"):
        channel.unary_unary("/t.T/Say")(b"a")


def test_what_is_no_channel_is_refused() -> None:
    """When the interceptor is made."""
    with pytest.raises(TypeError, match=r"`channel` must be a grpc.Channel"):
        RetryInterceptor(channel="localhost:1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="`channel` must be a function"):
        aio_interceptors(channel=3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_clock_that_is_set_back_prolongs_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The `timeout` of a call is counted by a clock that nobody sets."""
    passed, deadlines = [0.0], list[float]()
    monkeypatch.setattr(ready, "time", SimpleNamespace(time=lambda: -passed[0], monotonic=lambda: passed[0]))

    class Core:
        def check_connectivity_state(self, connect: bool) -> int:
            return 1  # connecting

        def watch_connectivity_state(self, state: int, deadline: float) -> None:
            deadlines.append(deadline + passed[0])
            passed[0] += 0.125
            assert passed[0] < 2, "the wait goes on"

    core: Any = Core()
    assert ready.Readiness(core)._wait(0.25, patient=True) is None
    assert deadlines == [0.2, 0.125]


LATE = 0.3  # seconds until the server listens


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
def test_the_wait_for_a_connection_counts(is_async: bool) -> None:
    """The call gets what the wait has left of its timeout, so both together take no longer than the timeout."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = grpc.server(ThreadPoolExecutor(1))
    left = list[float]()

    def say(request: bytes, context: grpc.ServicerContext) -> bytes:
        left.append(context.time_remaining())
        return request

    handler = grpc.unary_unary_rpc_method_handler(say)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", {"Say": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    timer = threading.Timer(LATE, server.start)
    timer.start()
    try:
        way = acall if is_async else call
        assert way(f"127.0.0.1:{port}", "Say", b"x", timeout=20, wait_for_ready=True) == [b"x"]
    finally:
        timer.join()
        server.stop(None).wait()
    assert left[0] <= 20 - LATE / 2
