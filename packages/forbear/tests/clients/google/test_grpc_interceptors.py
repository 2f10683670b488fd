"""The interceptors for gRPC: all four kinds of calls, sync and asyncio, against a real server."""

import asyncio
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from google.cloud import _storage_v2 as storage_v2
from google.cloud._storage_v2.services.storage import transports

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.services import cloud_storage, memorystore
from forbear.testing import virtual_time
from forbear_testkit.clients.google.intercepted import EARLY, KINDS, SAFE, UNAVAILABLE, acall, call
from forbear_testkit.clients.google.rpc_server import Server


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Callable[..., list[bytes]]:
    """One of the two styles."""
    chosen: Callable[..., list[bytes]] = request.param
    return chosen


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_retried(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """Until it succeeds, with all its requests each time."""
    server.fail(UNAVAILABLE, times=2)
    with virtual_time(seed=1) as time:
        assert send(server, name) == ([b"1"] if KINDS[name].endswith("unary") else [b"1", b"2", b"3"])
    assert (server.calls, len(time.slept)) == ([name] * 3, 2)
    assert server.requests == ([b"a"] if KINDS[name].startswith("unary") else [b"a", b"b"]) * 3


@pytest.mark.parametrize("name", KINDS)
def test_an_unknown_rpc_is_sent_once(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """An RPC in no table and not in `safe` may do harm; the error says so, and how to vouch for it."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, name, safe=())
    assert server.calls == [name]
    assert caught.value.__notes__[0].endswith(
        f"t.T/{name} may have been executed and must not be executed twice "
        f"(no module with its definition is loaded); "
        f'if that does no harm, vouch for it with safe="/t.T/{name}" [unsafe]'
    )


@pytest.mark.parametrize("name", ["Watch", "Bidi"])
def test_no_response_comes_twice(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """A stream that breaks after its first response is not opened again, and its error says why."""
    server.fail(UNAVAILABLE, after=2)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, name)
    assert server.calls == [name]
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.BODY


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
def test_requests_that_come_once(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """An iterator of requests is sent once: half of it would be gone."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError):
        send(server, name, request=iter([b"a", b"b"]))
    assert server.calls == [name]


MANY = [bytes([number]) * 50_000 for number in range(40)]
"""More than the flow control of a stream lets through unread."""


@pytest.mark.parametrize("name", EARLY)
def test_a_list_that_is_still_being_sent_when_the_call_fails(
    server: Server, send: Callable[..., list[bytes]], name: str
) -> None:
    """The next attempt sends it from its beginning, whatever the one before had got to."""
    server.fail(UNAVAILABLE, times=2)
    with virtual_time():
        assert send(server, name, request=MANY)[0] == b"1"
    assert server.calls == [name] * 3
    assert server.requests == MANY


@pytest.mark.parametrize("name", EARLY)
def test_an_iterator_that_is_still_being_sent_when_the_call_fails(
    server: Server, send: Callable[..., list[bytes]], name: str
) -> None:
    """The failure is that of the plain channel, and nothing of the iterator goes into another call."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, name, request=iter(MANY))
    error: Any = caught.value
    if error.code() is not grpc.StatusCode.INTERNAL:  # as grpc.aio has it where its own next write comes first
        assert (error.code(), error.details()) == (UNAVAILABLE, "as told")
    assert (server.calls, server.requests) == ([name], [])


class Queue:
    """A stream of requests that no one has twice, although it can be iterated over as often as one likes."""

    def __init__(self) -> None:
        self.left = iter([b"a", b"b"])

    def __iter__(self) -> Iterator[bytes]:
        return self.left


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
def test_only_a_list_is_known_to_come_again(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """Nothing is taken from other requests to be judged, and none of them are missing."""
    server.fail(UNAVAILABLE)
    for _ in range(2):
        with virtual_time(), suppress(grpc.RpcError):
            send(server, name, request=Queue())
    assert server.calls == [name] * 2
    assert server.requests == [b"a", b"b"] * 2


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
def test_the_error_of_requests_that_come_once_names_the_cure(server: Server, name: str) -> None:
    """On a sync channel, where the call is decided when it comes back."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        call(server, name, request=iter([b"a"]))
    assert caught.value.__notes__[0].endswith("the requests can be read only once; pass a list [body]")
    assert call(server, name, request=iter([b"a"]))[0] == b"1"


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
@pytest.mark.parametrize("way", ["iterator", "written"])
def test_a_policy_around_requests_that_come_once_does_not_send_them_again(server: Server, name: str, way: str) -> None:
    """The function makes a new iterator each time, but the call may have been executed."""
    server.fail(UNAVAILABLE, times=9)

    async def requests() -> AsyncIterator[bytes]:
        yield b"a"

    async def run() -> None:
        async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors()) as opened:
            channel: Any = opened
            make = channel.stream_unary if name == "Collect" else channel.stream_stream

            @forbear.retry(grpc.RpcError)
            async def send() -> None:
                made = make(f"/t.T/{name}")(requests() if way == "iterator" else None)
                if way == "written":
                    await made.write(b"a")
                    await made.done_writing()
                if name == "Collect":
                    await made
                else:
                    async for _ in made:
                        pass

            await send()

    with virtual_time(), pytest.raises(grpc.RpcError):
        asyncio.run(run())
    assert server.calls == [name]


def test_an_error_of_the_users_judge_does_not_change_the_call(server: Server) -> None:
    """The caller gets the error of gRPC, and a policy around it stops."""
    server.fail(UNAVAILABLE, times=9)

    def judge(error: Exception) -> bool:
        raise LookupError("no such error")

    async def run() -> None:
        async with grpc.aio.insecure_channel(
            server.target, interceptors=aio_interceptors(forbear.retry(on=judge))
        ) as opened:
            channel: Any = opened

            @forbear.retry(grpc.RpcError)
            async def send() -> None:
                await channel.stream_unary("/t.T/Collect")(iter([b"a"]))

            await send()

    with virtual_time(), pytest.raises(grpc.RpcError):
        asyncio.run(run())
    assert server.calls == ["Collect"]


def test_a_future_does_not_wait_for_its_requests(server: Server) -> None:
    """It comes back before there are any."""
    asked: queue.Queue[bytes | None] = queue.Queue()
    with grpc.insecure_channel(server.target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(safe=SAFE))
        future = channel.stream_unary("/t.T/Collect").future(iter(asked.get, None))
        asked.put(b"a")
        asked.put(None)
        assert future.result() == b"1"


def test_a_stream_that_is_cancelled_is_not_opened_again(server: Server) -> None:
    """Not even after the wait that was under way."""
    server.fail(UNAVAILABLE)
    with grpc.insecure_channel(server.target) as plain, virtual_time():
        policy = forbear.retry(on=grpc.RpcError, on_event=lambda _: stream.cancel())
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(policy, safe=SAFE))
        stream: Any = channel.unary_stream("/t.T/Watch")(b"a")
        with pytest.raises(grpc.RpcError, match="as told"):
            next(stream)
    assert server.calls == ["Watch"]


def test_an_asyncio_stream_that_is_cancelled_is_not_opened_again(server: Server) -> None:
    """Its reader learns of it at once."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        policy = forbear.retry(on=grpc.RpcError, on_event=lambda _: loop.call_soon(cancel))
        interceptors = aio_interceptors(policy, safe=SAFE)
        async with grpc.aio.insecure_channel(server.target, interceptors=interceptors) as opened:
            channel: Any = opened
            stream = channel.unary_stream("/t.T/Watch")(b"a")
            cancelled: list[bool] = []

            def cancel() -> None:
                cancelled.append(stream.done())
                stream.cancel()

            with pytest.raises(asyncio.CancelledError):
                await anext(aiter(stream))
            assert cancelled[0] is False
            assert stream.cancelled()

    server.fail(UNAVAILABLE)
    with virtual_time():
        asyncio.run(run())
    assert server.calls == ["Watch"]


@pytest.mark.parametrize("name", KINDS)
def test_limits_and_permanent_errors(server: Server, send: Callable[..., list[bytes]], name: str) -> None:
    """A permanent error is raised at once, others when the policy's limits are reached."""
    server.fail(grpc.StatusCode.INVALID_ARGUMENT)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, name)
    assert not hasattr(caught.value, "__notes__")
    server.fail(UNAVAILABLE, times=3)
    policy = forbear.retry(on=grpc.RpcError, attempts=3)
    with virtual_time(), pytest.raises(grpc.RpcError, match="as told") as caught:
        send(server, name, policy=policy)
    assert len(server.calls) == 4
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.ATTEMPTS


@pytest.mark.parametrize("policy", [None, forbear.retry(on=grpc.RpcError)])
def test_pushback_is_obeyed_under_any_policy(
    server: Server, send: Callable[..., list[bytes]], policy: forbear.Policy | None
) -> None:
    """The server's word is obeyed under any policy."""
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", "20000"),))
    with virtual_time(seed=1) as time:
        send(server, "Say", policy=policy)
    assert time.slept[0] >= 20
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", "-1"),))
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, "Say", policy=policy)
    assert "not to be called again" in caught.value.__notes__[0]


def test_the_timeout_of_a_call_is_for_all_attempts(server: Server, send: Callable[..., list[bytes]]) -> None:
    """No wait passes it."""
    server.fail(UNAVAILABLE, times=99)
    policy = forbear.retry(on=grpc.RpcError, backoff=forbear.Constant(4))
    with virtual_time(seed=1) as time, pytest.raises(grpc.RpcError) as caught:
        send(server, "Say", timeout=9, policy=policy)
    assert time.slept == [4, 4]
    assert "timeout of 9 s" in caught.value.__notes__[0]


def test_the_timeout_of_a_call_is_for_joined_policies_too(server: Server, send: Callable[..., list[bytes]]) -> None:
    """None of them waits longer than the caller."""
    server.fail(UNAVAILABLE, times=99)
    policy = forbear.retry(on=KeyError) | forbear.retry(on=grpc.RpcError, attempts=9, backoff=forbear.Constant(4))
    with virtual_time(seed=1) as time, pytest.raises(grpc.RpcError) as caught:
        send(server, "Say", timeout=9, policy=policy)
    assert time.slept == [4, 4]
    assert "timeout of 9 s" in caught.value.__notes__[0]


def test_known_services_are_judged_by_the_message(server: Server) -> None:
    """On the channel of Google's own client, with its own loop off."""
    server.replies = [b""]
    with grpc.insecure_channel(server.target) as plain, virtual_time():
        channel = grpc.intercept_channel(plain, RetryInterceptor(memorystore.policy))
        client: Any = storage_v2.StorageClient(transport=transports.StorageGrpcTransport(channel=channel))
        server.fail(UNAVAILABLE)
        client.delete_object(storage_v2.DeleteObjectRequest(object_="o", if_generation_match=0), retry=None)
        server.fail(UNAVAILABLE)
        with pytest.raises(Exception, match="as told"):
            client.delete_object(storage_v2.DeleteObjectRequest(object_="o"), retry=None)
        server.fail(UNAVAILABLE)
        assert len(list(client.read_object(storage_v2.ReadObjectRequest(object_="o"), retry=None))) == 1
    assert server.calls == ["DeleteObject"] * 3 + ["ReadObject"] * 2


def test_a_future_is_returned_when_it_is_decided(server: Server) -> None:
    """A future comes back decided, and its error with a note."""
    with grpc.insecure_channel(server.target) as plain, virtual_time() as time:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(safe=SAFE))
        server.fail(UNAVAILABLE)
        assert channel.unary_unary("/t.T/Say").future(b"a").result() == b"1"
        server.fail(grpc.StatusCode.UNAVAILABLE)
        failed = channel.unary_unary("/t.T/Other").future(b"a")
        assert "must not be executed twice" in failed.exception().__notes__[0]
    assert len(time.slept) == 1


def test_the_call_can_still_be_asked(server: Server) -> None:
    """A retried stream answers for the call that it has come to."""
    server.fail(UNAVAILABLE)
    with grpc.insecure_channel(server.target) as plain, virtual_time():
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(safe=SAFE))
        stream = channel.unary_stream("/t.T/Watch")(b"a")
        assert [*stream] == [b"1", b"2", b"3"]
        assert stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("name", ["Watch", "Bidi"])
def test_the_asyncio_call_can_still_be_asked(server: Server, name: str) -> None:
    """Read by hand, it answers for the call that it has come to; cancelled, that one is."""

    async def run() -> None:
        async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors(safe=SAFE)) as opened:
            channel: Any = opened
            multi: Callable[..., Any] = getattr(channel, KINDS[name])(f"/t.T/{name}")
            request = b"a" if name == "Watch" else [b"a"]
            server.fail(UNAVAILABLE)
            stream = multi(request, timeout=60)
            assert await stream.read() == b"1"
            ended: list[object] = []
            stream.add_done_callback(ended.append)
            assert [reply async for reply in stream] == [b"2", b"3"]
            assert await stream.code() is grpc.StatusCode.OK
            assert (await stream.details(), stream.done(), stream.cancelled()) == ("", True, False)
            assert not dict(await stream.initial_metadata())
            assert not dict(await stream.trailing_metadata())
            await stream.wait_for_connection()
            server.fail(UNAVAILABLE)
            stream = multi(request)
            await stream.read()
            stream.cancel()
            assert await stream.code() is grpc.StatusCode.CANCELLED

    with virtual_time():
        asyncio.run(run())


def test_requests_written_by_hand(server: Server) -> None:
    """`write()` of asyncio goes through, sent once."""

    async def run() -> bytes:
        async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors(safe=SAFE)) as opened:
            channel: Any = opened
            collect = channel.stream_unary("/t.T/Collect")()
            await collect.write(b"x")
            await collect.done_writing()
            found: bytes = await collect
            return found

    assert asyncio.run(run()) == b"1"
    assert server.requests == [b"x"]


def test_wrong_arguments_are_refused_when_the_interceptor_is_made() -> None:
    """When the interceptor is made, not when the first call fails."""
    with pytest.raises(TypeError, match="`policy` must be a forbear"):
        aio_interceptors(3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`safe` must hold full names of RPCs"):
        RetryInterceptor(safe="Say")
    with pytest.raises(ValueError, match="`not_executed` must not list UNAVAILABLE"):
        aio_interceptors(not_executed=[UNAVAILABLE])
    with pytest.raises(TypeError, match=r"`safe` must hold full names of RPCs .* got 3"):
        RetryInterceptor(safe=[3])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="attempt_timeout"):
        RetryInterceptor(cloud_storage.policy.with_attempt_timeout(1))
