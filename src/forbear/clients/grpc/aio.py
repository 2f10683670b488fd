"""The interceptors for asyncio channels. What may be repeated, forbear.exchange says; the rule is that of `sync`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any, cast

import grpc
import grpc.aio

from forbear.clients.grpc.details import name_of, timed
from forbear.exchange.rpc import BEGUN, Rpc, Rpcs, is_once
from forbear.policy import Policy

Continuation = Callable[[Any, Any], Awaitable[Any]]

_AIO: Any = grpc.aio  # more than its types know


def aio_interceptors(policy: Policy | None = None, *, safe: Collection[str] = ()) -> list[grpc.aio.ClientInterceptor]:
    """The same as RetryInterceptor for asyncio: `grpc.aio.insecure_channel(target, interceptors=aio_interceptors())`.

    There are four of them, since a channel takes one for each kind of call. A stream of requests that is to be repeated
    must be a list or tuple here, too; one that is written with `write()` is sent once.
    """
    rpcs = Rpcs(policy, safe)
    four = [_UnaryUnary(rpcs), _UnaryStream(rpcs), _StreamUnary(rpcs), _StreamStream(rpcs)]
    return cast("list[grpc.aio.ClientInterceptor]", four)  # types for gRPC know only half of what they are


class _Interceptor:
    def __init__(self, rpcs: Rpcs) -> None:
        self._rpcs = rpcs

    async def _send(self, continuation: Continuation, details: Any, message: Any, requests: Any) -> Any:
        rpc = self._rpcs[name_of(details)]
        judged = rpc.begin(details.timeout)
        while True:
            try:
                call = await continuation(timed(details, judged), requests)
                await call
            except grpc.RpcError as error:
                delay = rpc.failed(judged, error, message)
                if delay is None:
                    raise
            else:
                judged.succeeded()
                return call
            await judged.asleep(delay)


class _UnaryUnary(_Interceptor, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        return await self._send(continuation, client_call_details, request, request)


class _UnaryStream(_Interceptor, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        rpc = self._rpcs[name_of(client_call_details)]
        return await _UnaryReplies(rpc, continuation, client_call_details, request, request).opened()


class _StreamUnary(_Interceptor, grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request_iterator: Any
    ) -> Any:
        if is_once(request_iterator):
            return await continuation(client_call_details, request_iterator)
        return await self._send(continuation, client_call_details, await _first(request_iterator), request_iterator)


class _StreamStream(_Interceptor, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request_iterator: Any
    ) -> Any:
        if is_once(request_iterator):
            return await continuation(client_call_details, request_iterator)
        rpc, first = self._rpcs[name_of(client_call_details)], await _first(request_iterator)
        return await _StreamReplies(rpc, continuation, client_call_details, first, request_iterator).opened()


class _Replies:
    """A stream of replies that is opened again until its first one is there; all else is asked of the call itself."""

    def __init__(self, rpc: Rpc, continuation: Continuation, details: Any, message: Any, requests: Any) -> None:
        self._rpc = rpc
        self._judged = rpc.begin(details.timeout)
        self._continuation = continuation
        self._details = details
        self._message = message
        self._requests = requests
        self._call: Any = None
        self._replies: AsyncIterator[Any] | None = None

    async def opened(self) -> Any:
        """This, after the first call was made."""
        self._call = await self._continuation(timed(self._details, self._judged), self._requests)
        return self

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._replies is None:
            self._replies = self._read()
        return self._replies

    async def _read(self) -> AsyncIterator[Any]:
        begun = False
        while True:
            try:
                async for reply in self._call:
                    if not begun:
                        begun = True
                        self._judged.succeeded()
                    yield reply
            except grpc.RpcError as error:
                delay = self._rpc.failed(self._judged, error, self._message, BEGUN if begun else None)
                if delay is None:
                    raise
            else:
                if not begun:
                    self._judged.succeeded()
                return
            await self._judged.asleep(delay)
            await self.opened()

    async def read(self) -> Any:
        """The next reply, or EOF."""
        return await anext(aiter(self), _AIO.EOF)

    def cancel(self) -> bool:
        """Cancel the call."""
        cancelled: bool = self._call.cancel()
        return cancelled

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        cancelled: bool = self._call.cancelled()
        return cancelled

    def done(self) -> bool:
        """Whether the call has ended."""
        done: bool = self._call.done()
        return done

    def time_remaining(self) -> float | None:
        """Seconds that are left of its timeout."""
        left: float | None = self._call.time_remaining()
        return left

    def add_done_callback(self, callback: Any) -> None:
        """Have `callback` called when the call ends."""
        self._call.add_done_callback(callback)

    async def initial_metadata(self) -> Any:
        """The metadata that came first."""
        return await self._call.initial_metadata()

    async def trailing_metadata(self) -> Any:
        """The metadata that came last."""
        return await self._call.trailing_metadata()

    async def code(self) -> grpc.StatusCode:
        """The status code."""
        code: grpc.StatusCode = await self._call.code()
        return code

    async def details(self) -> str:
        """What the server says of it."""
        details: str = await self._call.details()
        return details

    async def wait_for_connection(self) -> None:
        """Wait for the first metadata."""
        await self._call.wait_for_connection()


class _UnaryReplies(_Replies, grpc.aio.UnaryStreamCall):  # type: ignore[type-arg]
    pass


class _StreamReplies(_Replies, grpc.aio.StreamStreamCall):  # type: ignore[type-arg]
    async def write(self, request: Any) -> None:
        await self._call.write(request)

    async def done_writing(self) -> None:
        await self._call.done_writing()


async def _first(requests: Any) -> Any:
    """The first message of a stream, None if it is empty."""
    if hasattr(requests, "__aiter__"):
        return await anext(aiter(requests), None)
    return next(iter(requests), None)
