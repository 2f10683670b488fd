"""RPCs that no table has, with their definitions loaded: executions on a real server, sync and asyncio."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.events import Reason
from forbear.testing import virtual_time
from forbear.testing.proxy import Proxy
from forbear_testkit.clients.google import protos
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import Server, running

SAFE = ("shop.v1.Orders/Show", "shop.v1.Orders/ReadStream", "shop.v1.Orders/Cancel", "shop.v1.Orders/Remove",
        "google.made.v1.Things/GetThing", "google.made.v1.Things/ListThings")  # fmt: skip
UNSAFE = ("shop.v1.Orders/GetTask", "shop.v1.Orders/Make", "google.made.v1.Things/Pull",
          "google.made.v1.Things/DeleteThing")  # fmt: skip
Send = Callable[[str, str], list[bytes]]


def call(target: str, name: str) -> list[bytes]:
    """Return the responses to one call on a sync channel."""
    with grpc.insecure_channel(target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor())
        if "Read" in name:
            return list(channel.unary_stream(f"/{name}")(b""))
        return [channel.unary_unary(f"/{name}")(b"")]


def acall(target: str, name: str) -> list[bytes]:
    """The same on an asyncio channel."""

    async def run() -> list[bytes]:
        async with grpc.aio.insecure_channel(target, interceptors=aio_interceptors()) as opened:
            channel: Any = opened
            if "Read" in name:
                return [each async for each in channel.unary_stream(f"/{name}")(b"")]
            return [await channel.unary_unary(f"/{name}")(b"")]

    return asyncio.run(run())


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Send:
    """One of the two styles, with the definitions loaded."""
    protos.load()
    chosen: Send = request.param
    return chosen


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends calls as the test says."""
    with running() as server:
        server.replies = [b"first", b"second"]
        yield server


@pytest.mark.parametrize("name", SAFE)
def test_what_its_definition_calls_safe_is_repeated(server: Server, send: Send, name: str) -> None:
    """It is executed again after UNAVAILABLE, after the wait that the server asks for, by whichever style."""
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", "20000"),))
    with virtual_time(seed=1) as time:
        assert send(server.target, name)[0] == b"first"
    assert server.calls == [name.rpartition("/")[2]] * 2
    assert time.slept[0] >= 20


@pytest.mark.parametrize("name", UNSAFE)
def test_anything_else_is_executed_once(server: Server, send: Send, name: str) -> None:
    """Whatever its name is; the note has the reason and the line that vouches for it."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server.target, name)
    assert len(server.calls) == 1
    source = "no annotation in shop.v1.proto" if name.startswith("shop") else "no rule for Google's APIs"
    assert f"({source} says that it may be); if that does no harm, vouch for it with safe=" in caught.value.__notes__[0]


@pytest.mark.parametrize("name", ["shop.v1.Orders/Show", "shop.v1.Orders/GetTask"])
def test_a_lost_response(server: Server, send: Send, name: str) -> None:
    """The connection breaks after the call was executed: only what may be executed twice is sent again."""
    lost = list[bytes]()

    def cut(_: bytes, response: bytes | None) -> bool:
        if response is None or b"first" not in response or lost:
            return False
        lost.append(response)
        return True

    host, port = server.target.split(":")
    with Proxy((host, int(port)), cut) as proxy, virtual_time(seed=1):
        target = f"{proxy.host}:{proxy.port}"
        if name in SAFE:
            assert send(target, name) == [b"first"]
        else:
            with pytest.raises(grpc.RpcError):
                send(target, name)
    assert len(server.calls) == (2 if name in SAFE else 1)


def test_a_stream_is_opened_again_until_its_first_response(server: Server, send: Send) -> None:
    """Later a repeat would deliver a response twice."""
    server.fail(UNAVAILABLE)
    server.fail(UNAVAILABLE, after=1)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server.target, "shop.v1.Orders/ReadStream")
    assert server.calls == ["ReadStream"] * 2
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.BODY


@pytest.mark.parametrize(("name", "attempts"), [("shop.v1.Orders/Show", 5), ("shop.v1.Orders/GetTask", 1)])
def test_a_refused_connection(send: Send, name: str, attempts: int) -> None:
    """Without the channel, the outcome is unknown: only what may be executed twice is tried again."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with virtual_time(seed=1), pytest.raises(grpc.RpcError) as caught:
            send(f"127.0.0.1:{reserved.getsockname()[1]}", name)
    report = forbear.report(caught.value)
    assert report is not None
    assert len(report.attempts) == attempts


@pytest.mark.parametrize("name", ["shop.v1.Orders/Show", "shop.v1.Orders/GetTask"])
def test_a_server_that_goes_away(server: Server, send: Send, name: str) -> None:
    """It executes a call and ends the connection with GOAWAY; only what may be executed twice goes to the next one."""
    with running() as leaving:
        leaving.replies = [b"late"]
        leaving.leave_at_next_call()
        target = f"ipv4:{leaving.target},{server.target}"
        with virtual_time(seed=1):
            if name in SAFE:
                assert send(target, name) == [b"first"]
            else:
                with pytest.raises(grpc.RpcError):
                    send(target, name)
        assert len(leaving.calls) == 1
    assert len(server.calls) == (1 if name in SAFE else 0)


_CONFIG = """{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}"""


@pytest.mark.parametrize(("switch", "executions"), [(1, 2), (0, 1)])
def test_a_service_config_that_retries_is_switched_off(server: Server, switch: int, executions: int) -> None:
    """A retryPolicy below the interceptor repeats even what must not be; an option of the channel switches it off."""
    protos.load()
    server.fail(UNAVAILABLE)
    options = [("grpc.service_config", _CONFIG), ("grpc.enable_retries", switch)]
    with grpc.insecure_channel(server.target, options) as plain, virtual_time():
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor())
        send = channel.unary_unary("/shop.v1.Orders/GetTask")
        if switch:
            assert send(b"") == b"first"
        else:
            with pytest.raises(grpc.RpcError):
                send(b"")
    assert len(server.calls) == executions
