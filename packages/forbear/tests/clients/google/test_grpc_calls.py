"""Calls through the interceptors that are cancelled, cut off or seen by others: what a plain channel does, they do."""

import asyncio
import signal
from collections.abc import Iterator
from typing import Any, ClassVar

import grpc
import grpc.aio
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.testing import virtual_time
from forbear_testkit.clients.google.intercepted import KINDS, SAFE, UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import Server

INTERCEPTORS: Any = {
    "Say": grpc.aio.UnaryUnaryClientInterceptor,
    "Watch": grpc.aio.UnaryStreamClientInterceptor,
    "Collect": grpc.aio.StreamUnaryClientInterceptor,
    "Bidi": grpc.aio.StreamStreamClientInterceptor,
}


def inner(name: str, intercept: Any) -> Any:
    """Return an interceptor of one kind of call, to stand behind those of forbear."""

    def call(_: object, *args: Any) -> Any:
        return intercept(*args)

    return type("Inner", (INTERCEPTORS[name],), {f"intercept_{KINDS[name]}": call})()


async def receive(channel: Any, name: str, **options: Any) -> list[bytes]:
    """Send a call, and return its responses."""
    request = b"a" if KINDS[name].startswith("unary") else [b"a"]
    call = getattr(channel, KINDS[name])(f"/t.T/{name}")(request, **options)
    return [response async for response in call] if KINDS[name].endswith("stream") else [await call]


@pytest.mark.parametrize("name", KINDS)
async def test_the_next_interceptor_gets_details_of_grpc(server: Server, name: str) -> None:
    """It may change them by `_replace`, as those of a plain channel, also where the timeout was shortened."""
    seen: list[tuple[Any, Any]] = []

    async def intercept(go_on: Any, details: Any, request: Any) -> Any:
        seen.append((type(details), details.metadata["k"]))
        return await go_on(details._replace(metadata=grpc.aio.Metadata(("k", "2"))), request)

    server.fail(UNAVAILABLE)
    chain = [*aio_interceptors(safe=SAFE), inner(name, intercept)]
    with virtual_time():
        async with grpc.aio.insecure_channel(server.target, interceptors=chain) as channel:
            assert (await receive(channel, name, timeout=9, metadata=(("k", "1"),)))[0] == b"1"
    assert seen == [(grpc.aio.ClientCallDetails, "1")] * 2


async def test_details_of_another_interceptor_keep_their_class(server: Server) -> None:
    """They may be an object of any kind, with attributes of its own; only the timeout is another one."""

    class Details(grpc.aio.ClientCallDetails):
        mark: ClassVar[str] = "own"

    class Plain:
        """The details as another interceptor may write them."""

        mark = "own"

        def __init__(self, details: Any) -> None:
            for field in ("method", "timeout", "metadata", "credentials", "wait_for_ready"):
                setattr(self, field, getattr(details, field))

    seen: list[tuple[str, bool]] = []

    async def intercept(go_on: Any, details: Any, request: Any) -> Any:
        seen.append((details.mark, details.timeout < 9))
        return await go_on(details, request)

    def copy(details: Any) -> Any:
        return Details(*details)

    for kind in (Plain, copy):

        async def begin(go_on: Any, details: Any, request: Any, kind: Any = kind) -> Any:
            return await go_on(kind(details), request)

        chain = [inner("Say", begin), *aio_interceptors(safe=SAFE), inner("Say", intercept)]
        async with grpc.aio.insecure_channel(server.target, interceptors=chain) as channel:
            assert await receive(channel, "Say", timeout=9) == [b"1"]
    assert seen == [("own", True)] * 2


@pytest.mark.parametrize("name", ["Watch", "Bidi"])
async def test_a_stream_that_is_cancelled_while_it_is_opened_again(server: Server, name: str) -> None:
    """Nothing more is sent, and its reader learns of the cancellation at once, whatever the opening waits for."""
    opening = asyncio.Event()

    async def intercept(go_on: Any, details: Any, request: Any) -> Any:
        if server.calls:
            opening.set()
            await asyncio.Event().wait()
        return await go_on(details, request)

    server.fail(UNAVAILABLE)
    chain = [*aio_interceptors(safe=SAFE), inner(name, intercept)]
    with virtual_time():
        async with grpc.aio.insecure_channel(server.target, interceptors=chain) as channel:
            call: Any = getattr(channel, KINDS[name])(f"/t.T/{name}")(b"a" if name == "Watch" else [b"a"])

            async def read() -> None:
                async for _ in call:
                    pass

            reader = asyncio.ensure_future(read())
            await opening.wait()
            assert (call.done(), call.cancel(), call.cancelled()) == (False, True, True)
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert (call.cancelled(), call.done()) == (True, True)
    assert server.calls == [name]


async def test_a_stream_that_was_cancelled_after_its_failure_is_not_opened_again(server: Server) -> None:
    """Its reader has not seen the failure yet: it gets that, and no other attempt follows."""
    server.fail(UNAVAILABLE)
    async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors(safe=SAFE)) as opened:
        channel: Any = opened
        call = channel.unary_stream("/t.T/Watch")(b"a")
        assert await call.code() is UNAVAILABLE
        call.cancel()
        with virtual_time(), pytest.raises(grpc.RpcError) as caught:
            await call.read()
    error: Any = caught.value
    assert error.code() is UNAVAILABLE
    assert server.calls == ["Watch"]


async def test_the_text_for_debugging(server: Server) -> None:
    """A stream has it, and so has a call that was not sent."""
    server.fail(UNAVAILABLE)
    async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors()) as opened:
        channel: Any = opened
        call = channel.unary_stream("/t.T/Watch")(b"a")
        with pytest.raises(grpc.RpcError):
            await call.read()
        if hasattr(grpc.aio.Call, "debug_error_string") or hasattr(type(call), "debug_error_string"):
            assert "as told" in await call.debug_error_string()


async def test_a_closed_channel_has_executed_nothing() -> None:
    """Its error says that it is closed, and not that the call may have been executed."""
    channel: Any = grpc.aio.insecure_channel("127.0.0.1:1", interceptors=aio_interceptors())
    await channel.close()
    with pytest.raises(grpc.aio.UsageError) as caught:
        await channel.unary_unary("/t.T/Say")(b"a")
    assert forbear.report(caught.value) is None


class Cut(BaseException):
    """The error that cuts a call off, such as that of a signal handler."""


class Cutting(grpc.UnaryStreamClientInterceptor):  # type: ignore[type-arg] # generic for type checkers only
    """An interceptor whose stream is cut off before its first response, once the server has the request."""

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        def receive() -> Iterator[bytes]:
            for _ in continuation(client_call_details, request):
                raise Cut
            yield b""

        return receive()


def test_a_sync_stream_that_is_cut_off(server: Server) -> None:
    """The call may have been executed: a function that turns the interrupt into an error is not called again."""
    with grpc.insecure_channel(server.target) as plain, virtual_time():
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(), Cutting())
        with pytest.raises(Cut) as cut:
            list(channel.unary_stream("/t.T/Watch")(b"a"))

        @forbear.retry(OSError, attempts=3)
        def work() -> list[bytes]:
            try:
                return list(channel.unary_stream("/t.T/Watch")(b"a"))
            except Cut:
                raise OSError("cut off") from None

        with pytest.raises(OSError, match="cut off") as caught:
            work()
    for error in (cut.value, caught.value):
        report = forbear.report(error)
        assert report is not None
        assert report.reason is forbear.events.Reason.UNSAFE
    assert server.calls == ["Watch"] * 2


class Ringing(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    """An interceptor in which a signal arrives after each call."""

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        list(continuation(client_call_details, request).result())
        signal.raise_signal(signal.SIGUSR1)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        list(continuation(client_call_details, request))
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize("name", ["Say", "Watch"])
@pytest.mark.parametrize("kind", [TimeoutError, ConnectionResetError])
def test_what_a_signal_handler_raises_is_for_the_caller(server: Server, name: str, kind: type[Exception]) -> None:
    """The call is not sent again, although the error looks like one of the connection."""

    def ring(*_: object) -> None:
        raise kind("the time is up")

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with grpc.insecure_channel(server.target) as plain, virtual_time():
            channel: Any = grpc.intercept_channel(plain, RetryInterceptor(safe=SAFE), Ringing())
            with pytest.raises(kind, match="the time is up"):
                list(getattr(channel, KINDS[name])(f"/t.T/{name}")(b"a"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert server.calls == [name]
