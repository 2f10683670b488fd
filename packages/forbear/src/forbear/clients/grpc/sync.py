"""The interceptor for sync channels, and functions with which both kinds of interceptor read a call's details.

A call is sent again only while the caller has received nothing of it, and only if its requests can be read again. A
message can, and so can a list or tuple of messages. A call with any other stream is sent once.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc

from forbear.clients.grpc.ready import (
    AioReadiness,
    Continuation,
    Readiness,
    Settled,
    Unsent,
    details_of_read,
    with_changes,
)
from forbear.exchange.call_state import RetriedCall
from forbear.exchange.chosen import choose
from forbear.exchange.grpc import BEGUN, ONCE, Rpc, Rpcs
from forbear.exchange.repeat import settle_call
from forbear.exchange.settling import RpcReadBack, read_settle
from forbear.grpc.vouch import RpcVouch
from forbear.policy import Policy

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.exchange.settling import SettleRpcs
    from forbear.grpc.vouch import SafeRpcs
    from forbear.run.derive import ClientOptions


class Interceptor:
    """The base of all interceptors: the RPCs of a channel, and the state of its connection if that can be known."""

    _rpcs: Rpcs
    _ready: Readiness | AioReadiness | None

    def _find(self, continuation: Continuation, details: Any, message: object) -> tuple[Rpc, Continuation]:
        """Return the RPC of a call, and `continuation`, behind a wait for the connection if it may not be repeated."""
        method: str | bytes = details.method  # asyncio has bytes
        rpc = self._rpcs[method if isinstance(method, str) else method.decode()]
        if self._ready is None or rpc.judge(message).repeatable:
            return rpc, continuation
        return rpc, self._ready.gate(continuation)


def read_rpcs(
    adapter: str,
    policy: Policy | None,
    safe: "SafeRpcs",
    not_executed: Iterable[grpc.StatusCode],
    settle: "SettleRpcs",
    options: "ClientOptions",
) -> Rpcs:
    """Return the RPCs of a channel under the options of an adapter; TypeError or ValueError for wrong ones."""
    policy, changes = choose(adapter, policy, options, ("safe", "not_executed", "channel", "settle"))
    return Rpcs(policy, RpcVouch(safe, not_executed, read_settle(settle)), changes, (grpc.RpcError,))


def with_time_left(details: Any, retried: RetriedCall) -> Any:
    """Return the details for the next attempt, with the seconds left of the caller's timeout; unchanged without one."""
    timeout = details.timeout
    return details if timeout is None else with_changes(details, timeout=retried.time_left(timeout))


def is_rereadable(requests: object) -> bool:
    """Return whether `requests` is a list or tuple: only such a stream can surely be sent again from its start."""
    return isinstance(requests, list | tuple)


def first_message(requests: Iterable[Any]) -> Any:
    """Return the first message of a stream, None if it is empty. An iterator would lose that message."""
    return next(iter(requests), None)


class RetryInterceptor(
    Interceptor,
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[type-arg] # generic for type checkers only
    grpc.UnaryStreamClientInterceptor,  # type: ignore[type-arg] # generic for type checkers only
    grpc.StreamUnaryClientInterceptor,  # type: ignore[type-arg] # generic for type checkers only
    grpc.StreamStreamClientInterceptor,  # type: ignore[type-arg] # generic for type checkers only
):
    """An interceptor that retries calls: `grpc.intercept_channel(channel, RetryInterceptor())`.

    The request message decides, by the tables of Cloud Storage, IAM and Memorystore. An RPC that they do not know is
    repeated only if it was certainly not executed, or if you vouch for it. Without a `policy`, each service has its
    recommended one. The keywords of `forbear.retry` but `on`, such as `attempts=3`, change it. The caller's `timeout`
    is for all attempts together. `grpc-retry-pushback-ms` and RetryInfo are obeyed.

    - `safe`: the RPCs that may be executed twice. A full name ("/helloworld.Greeter/SayHello"), in which one `*` may
      stand for any part of the method's name ("/helloworld.Greeter/*"). Or several names, or a function that takes the
      call (`forbear.grpc.call.GrpcCall`) and returns a bool.
    - `channel`: the channel itself, as passed to `intercept_channel`. Then a call that may not be repeated is handed to
      gRPC only once the channel is connected. A call that was never handed over was not executed, and is repeated.
      Without it, the outcome is unknown even if the server could not be reached.
    - `not_executed`: the status codes by which the server refuses calls before it executes them, such as
      `[grpc.StatusCode.RESOURCE_EXHAUSTED]`. After one of them, any call is repeated.
    - `settle`: whether a Get may say what became of a Create or Delete of Google's APIs, if a later attempt finds it
      done. True: the state counts, whoever made it. Names of RPCs, or a function of the call, limit that. A function
      `mine(sent, read)` of two messages decides itself.

    A stream of responses is opened again until its first response arrives; if it breaks later, its error is raised with
    a note. A stream of requests is repeated if it is a list or tuple; an iterator is sent once. A call by `.future()`
    returns once its attempts are over. The last error is raised with a note and a report.

    >>> import grpc
    >>> with grpc.insecure_channel("localhost:50051") as channel:  # load_definitions(channel) asks what may be repeated
    ...     retried = grpc.intercept_channel(channel, RetryInterceptor(attempts=3, safe="/helloworld.Greeter/*"))
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        safe: "SafeRpcs" = (),
        not_executed: Iterable[grpc.StatusCode] = (),
        channel: grpc.Channel | None = None,
        settle: "SettleRpcs" = False,
        **options: "Unpack[ClientOptions]",
    ) -> None:
        self._rpcs = read_rpcs("RetryInterceptor", policy, safe, not_executed, settle, options)
        if channel is not None and not isinstance(channel, grpc.Channel):
            raise TypeError(f"`channel` must be a grpc.Channel, as passed to grpc.intercept_channel; got {channel!r}")
        self._ready = None if channel is None else Readiness(channel)

    def __repr__(self) -> str:
        return self._rpcs.show_as("RetryInterceptor")

    def intercept_unary_unary(
        self, continuation: Continuation, client_call_details: grpc.ClientCallDetails, request: Any
    ) -> Any:
        return self._send(continuation, client_call_details, request, lambda: request)

    def intercept_unary_stream(
        self, continuation: Continuation, client_call_details: grpc.ClientCallDetails, request: Any
    ) -> Any:
        rpc, continuation = self._find(continuation, client_call_details, request)
        return _Responses(rpc, continuation, client_call_details, request, lambda: request)

    def intercept_stream_unary(
        self, continuation: Continuation, client_call_details: grpc.ClientCallDetails, request_iterator: Iterable[Any]
    ) -> Any:
        if not is_rereadable(request_iterator):
            return self._send_once(continuation, client_call_details, request_iterator)
        message = first_message(request_iterator)
        return self._send(continuation, client_call_details, message, lambda: iter(request_iterator))

    def intercept_stream_stream(
        self, continuation: Continuation, client_call_details: grpc.ClientCallDetails, request_iterator: Iterable[Any]
    ) -> Any:
        stuck = None if is_rereadable(request_iterator) else ONCE
        message = first_message(request_iterator) if stuck is None else None
        rpc, continuation = self._find(continuation, client_call_details, message)
        return _Responses(rpc, continuation, client_call_details, message, lambda: iter(request_iterator), stuck)

    def _send(self, continuation: Continuation, details: Any, message: Any, requests: Callable[[], Any]) -> Any:
        rpc, continuation = self._find(continuation, details, message)
        retried = rpc.begin(details.timeout, message)
        try:
            while True:
                call = continuation(with_time_left(details, retried), requests())
                try:
                    error = call.exception()
                except grpc.FutureCancelledError as cancellation:
                    rpc.cut_off(retried, cancellation, message)
                    retried.end()
                    return call
                except BaseException as interrupt:
                    rpc.cut_off(retried, interrupt, message)
                    raise
                if error is None:
                    retried.succeeded()
                    return call
                response = settle_call(rpc, retried, error, message, partial(_read, continuation, details, message))
                if response is not None:
                    return Settled(call, response, retried.report)
                grant = rpc.failed(retried, error, message)
                if grant is None or not grant.ask():
                    return call
                grant.sleep()
        except BaseException:
            retried.end()
            raise

    def _send_once(self, continuation: Continuation, details: Any, requests: Any) -> Any:
        rpc, continuation = self._find(continuation, details, None)
        retried = rpc.begin(details.timeout)
        try:
            call = continuation(with_time_left(details, retried), iter(requests))
            while isinstance(call, Unsent):  # nothing of the requests was read
                grant = rpc.failed(retried, call, None)
                if grant is None or not grant.ask():
                    return call
                grant.sleep()
                call = continuation(with_time_left(details, retried), iter(requests))
        except BaseException:
            retried.end()
            raise
        if call.done() and not call.cancelled():  # a caller may need the future before it has the requests
            error = call.exception()
            if error is not None:
                rpc.failed(retried, error, None, ONCE)
        if rpc.policy.budget is not None:
            call.add_done_callback(partial(_count, retried))
        return call


def _read(continuation: Continuation, details: Any, message: Any, look: RpcReadBack) -> Any:
    return continuation(details_of_read(details, look), look.encode_as(type(message))).result()


def _count(retried: RetriedCall, call: Any) -> None:
    if not call.cancelled() and call.exception() is None:
        retried.succeeded()
    retried.end()


class _Responses(Iterator[Any]):
    """A stream of responses that is opened again until its first response arrives.

    Later responses come from the call unchanged. `stuck` is the reason why it cannot be opened again, None if it can.
    Other attributes are those of the current attempt's call.
    """

    def __init__(
        self,
        rpc: Rpc,
        continuation: Continuation,
        details: Any,
        message: Any,
        requests: Callable[[], Any],
        stuck: str | None = None,
    ) -> None:
        self._rpc = rpc
        self._retried = rpc.begin(details.timeout, message)
        self._message = message
        self._stuck = stuck
        self._cancelled = threading.Event()
        self._open: Callable[[], Any] = lambda: continuation(with_time_left(details, self._retried), requests())
        try:
            self._call = self._open()
        except BaseException:
            self._retried.end()
            raise
        self._begun = False

    def __next__(self) -> Any:
        while True:
            try:
                response = next(self._call)
            except StopIteration:
                self._succeeded()
                raise
            except Exception as error:
                stuck = None if isinstance(error, Unsent) else BEGUN if self._begun else self._stuck
                grant = self._rpc.failed(self._retried, error, self._message, stuck)
                if grant is None or not grant.ask():
                    raise
                grant.sleep()
                if self._cancelled.is_set():  # by another thread
                    raise
                self._call = self._open()
                if self._cancelled.is_set():
                    self._call.cancel()
            except BaseException as interrupt:
                self._rpc.cut_off(self._retried, interrupt, self._message)
                raise
            else:
                self._succeeded()
                return response

    def cancel(self) -> Any:
        """Cancel the current attempt's call, and prevent further attempts."""
        self._cancelled.set()
        self._retried.end()
        return self._call.cancel()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def _succeeded(self) -> None:
        if not self._begun:
            self._begun = True
            self._retried.succeeded()
