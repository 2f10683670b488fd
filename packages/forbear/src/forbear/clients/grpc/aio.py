"""The interceptors for asyncio channels. The rules are those of `sync.py`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import grpc
import grpc.aio

from forbear.clients.grpc.ready import AioReadiness, AioUnsent, details_of_read
from forbear.clients.grpc.sync import Interceptor, first_message, is_rereadable, read_rpcs, with_time_left
from forbear.exchange.arepeat import arepeat
from forbear.exchange.call_state import RetriedCall
from forbear.exchange.grpc import BEGUN, ONCE, Rpc, Rpcs
from forbear.exchange.settling import RpcReadBack
from forbear.policy import Policy

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.exchange.settling import SettleRpcs
    from forbear.grpc.vouch import SafeRpcs
    from forbear.run.derive import ClientOptions
    from forbear.run.grant import Grant

T = TypeVar("T")

Continuation = Callable[[Any, Any], Awaitable[Any]]

_AIO: Any = grpc.aio  # more than its types declare


def aio_interceptors(
    policy: Policy | None = None,
    *,
    safe: "SafeRpcs" = (),
    not_executed: Iterable[grpc.StatusCode] = (),
    channel: Callable[[], grpc.aio.Channel] | None = None,
    settle: "SettleRpcs" = False,
    **options: "Unpack[ClientOptions]",
) -> list[grpc.aio.ClientInterceptor]:
    """Return the interceptors for asyncio: `grpc.aio.insecure_channel(target, interceptors=aio_interceptors())`.

    There are four of them, one for each kind of call. The arguments and the rules are those of RetryInterceptor. A
    stream of requests is repeated if it is a list or tuple; an iterator, or one that is written with `write()`, is sent
    once.

    `channel` is a function that returns the channel, which is made later: `channel=lambda: channel`.

    >>> len(aio_interceptors(attempts=3))
    4
    """
    rpcs = read_rpcs("aio_interceptors", policy, safe, not_executed, settle, options)
    if channel is not None and not callable(channel):
        raise TypeError(f"`channel` must be a function that returns the channel (lambda: channel); got {channel!r}")
    ready = None if channel is None else AioReadiness(channel)
    four = [kind(rpcs, ready) for kind in (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)]
    return cast("list[grpc.aio.ClientInterceptor]", four)  # the types for gRPC declare only a part of their members


class _Interceptor(Interceptor):
    def __init__(self, rpcs: Rpcs, ready: AioReadiness | None) -> None:
        self._rpcs = rpcs
        self._ready = ready

    def __repr__(self) -> str:
        return f"<one of {self._rpcs.show_as('aio_interceptors')}>"

    # A plain function, as those that call it: each coroutine around that of the loop would cost time.
    def _send(self, continuation: Continuation, details: Any, message: Any, requests: Any) -> Coroutine[Any, Any, Any]:
        rpc, continuation = self._find(continuation, details, message)
        retried = rpc.begin(details.timeout, message, awaits=True)

        async def send() -> Any:
            call = await continuation(with_time_left(details, retried), requests)
            await call
            return call

        return arepeat(rpc, retried, message, send, partial(_read, continuation, details, message))

    async def _send_once(self, continuation: Continuation, details: Any, requests: Any) -> Any:
        rpc, continuation = self._find(continuation, details, None)
        retried = rpc.begin(details.timeout, awaits=True)
        try:
            call = await open_call(rpc, retried, continuation, details, None, requests)
        except BaseException:
            retried.end()
            raise
        call.add_done_callback(partial(_count_end, rpc, retried))
        return call


async def _read(continuation: Continuation, details: Any, message: Any, look: RpcReadBack) -> Any:
    return await (await continuation(details_of_read(details, look), look.encode_as(type(message))))


async def open_call(
    rpc: Rpc, retried: RetriedCall, continuation: Continuation, details: Any, message: Any, requests: Any
) -> Any:
    """Make a call and return it; if it was not sent for want of a connection, repeat that as the policy allows."""
    while True:
        try:
            return await continuation(with_time_left(details, retried), requests)
        except AioUnsent as error:
            grant = rpc.failed(retried, error, message)
            if grant is None or not await grant.aask():
                raise
        await grant.asleep()


def _count_end(rpc: Rpc, retried: RetriedCall, call: Any) -> None:
    """Count the end of a call that is sent once. If it failed, tell the runs around it that it must not be repeated.

    The caller may write its requests by hand, so the call cannot be awaited before it is handed out, and grpc makes its
    error later. The runs around it are those of this context: the call was made in it.
    """
    try:
        code = _read_result(call.code())
        if code is grpc.StatusCode.OK:
            retried.succeeded()
        elif call.cancelled():
            rpc.cut_off(retried, asyncio.CancelledError(), None)
        else:
            trailing = _read_result(call.trailing_metadata()) or grpc.aio.Metadata()
            error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, _read_result(call.details()), None)
            rpc.failed(retried, error, None, ONCE)
    finally:
        retried.end()


def _read_result(answer: Any) -> Any:
    """Return what a call that has ended knows of itself: the coroutine has nothing to wait for."""
    try:
        answer.send(None)
    except StopIteration as done:
        return done.value
    answer.close()
    raise RuntimeError("a call of gRPC that has ended does not know its status: this is a bug of forbear")


class _UnaryUnary(_Interceptor, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:  # a coroutine
        return self._send(continuation, client_call_details, request, request)


class _UnaryStream(_Interceptor, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        rpc, continuation = self._find(continuation, client_call_details, request)
        return await _UnaryResponses(rpc, continuation, client_call_details, request, request).open_call()


class _StreamUnary(_Interceptor, grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[type-arg]
    def intercept_stream_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request_iterator: Any
    ) -> Any:  # a coroutine
        if not is_rereadable(request_iterator):
            return self._send_once(continuation, client_call_details, request_iterator)
        return self._send(continuation, client_call_details, first_message(request_iterator), request_iterator)


class _StreamStream(_Interceptor, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request_iterator: Any
    ) -> Any:
        if not is_rereadable(request_iterator):
            return await self._send_once(continuation, client_call_details, request_iterator)
        first = first_message(request_iterator)
        rpc, continuation = self._find(continuation, client_call_details, first)
        return await _StreamReplies(rpc, continuation, client_call_details, first, request_iterator).open_call()


def _pass_on(name: str) -> Any:
    """Return a method that calls the method `name` of the current attempt's call."""

    def method(self: "_AsyncResponses", *args: Any) -> Any:
        return getattr(self._call, name)(*args)

    return method


class _AsyncResponses:
    """A stream of responses that is opened again until its first one arrives; later ones come unchanged."""

    def __init__(self, rpc: Rpc, continuation: Continuation, details: Any, message: Any, requests: Any) -> None:
        self._rpc = rpc
        self._retried = rpc.begin(details.timeout, message, awaits=True)
        self._continuation = continuation
        self._details = details
        self._message = message
        self._requests = requests
        self._call: grpc.aio.StreamStreamCall[Any, Any]
        self._responses: AsyncIterator[Any] | None = None
        self._step: asyncio.Task[Any] | None = None  # between two attempts
        self._cancelled = self._is_cut_off = False

    async def open_call(self) -> Any:
        """Make the call of the next attempt, with the time left of the caller's timeout, and return this object."""
        try:
            self._call = await open_call(
                self._rpc, self._retried, self._continuation, self._details, self._message, self._requests
            )
        except BaseException:
            self._retried.end()
            raise
        return self

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._responses is None:
            self._responses = self._read()
        return self._responses

    async def _read(self) -> AsyncIterator[Any]:
        begun = False
        try:
            while True:
                try:
                    async for response in self._call:
                        if not begun:
                            begun = True
                            self._retried.succeeded()
                        yield response
                except Exception as error:
                    grant = self._rpc.failed(self._retried, error, self._message, BEGUN if begun else None)
                    if grant is None or (grant.is_open and not await self._run_step(grant.aask())):
                        raise
                    if self._cancelled:
                        raise
                except BaseException as interrupt:  # a cancellation, too
                    if not isinstance(interrupt, GeneratorExit):  # the reader wants no more
                        self._rpc.cut_off(self._retried, interrupt, self._message)
                    raise
                else:
                    if not begun:
                        self._retried.succeeded()
                    return
                await self._run_step(self._open_again(grant))
        finally:
            self._retried.end()

    async def read(self) -> Any:
        return await anext(aiter(self), _AIO.EOF)

    async def _open_again(self, grant: "Grant") -> None:
        await grant.asleep()
        await self.open_call()

    async def _run_step(self, step: Coroutine[Any, Any, T]) -> T:
        """Await a step between two attempts, which `cancel` ends: there is no call then."""
        self._step = task = asyncio.ensure_future(step)
        try:
            return await task
        finally:
            self._step = None

    def cancel(self) -> bool:
        self._retried.end()
        self._cancelled = True
        if self._step is None:
            return self._call.cancel()
        self._is_cut_off = self._step.cancel()
        return self._is_cut_off

    def cancelled(self) -> bool:
        return self._is_cut_off or self._call.cancelled()

    def done(self) -> bool:
        return self._step is None and self._call.done()

    time_remaining = _pass_on("time_remaining")
    add_done_callback = _pass_on("add_done_callback")
    initial_metadata = _pass_on("initial_metadata")
    trailing_metadata = _pass_on("trailing_metadata")
    code = _pass_on("code")
    details = _pass_on("details")
    debug_error_string = _pass_on("debug_error_string")
    wait_for_connection = _pass_on("wait_for_connection")


class _UnaryResponses(_AsyncResponses, grpc.aio.UnaryStreamCall):  # type: ignore[type-arg]
    pass


class _StreamReplies(_AsyncResponses, grpc.aio.StreamStreamCall):  # type: ignore[type-arg]
    write = _pass_on("write")
    done_writing = _pass_on("done_writing")
