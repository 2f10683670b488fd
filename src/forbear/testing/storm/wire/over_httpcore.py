"""Faults in httpcore (httpx) and httpcore2 (httpx2), at the connection: below the pool, httpx and its transports."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from forbear.testing.storm.shifted_time import replace
from forbear.testing.storm.tape import SentCall, Tape, active, http_call
from forbear.testing.storm.wire import canned


def install(undo: ExitStack) -> None:
    """Stand in the way of both libraries, where they are installed."""
    for name in ("httpcore", "httpcore2"):
        try:
            core = import_module(name)
        except ImportError:
            continue
        replace(undo, core.HTTPConnection, "handle_request", _sync(core, core.HTTPConnection.handle_request))
        asynchronous = core.AsyncHTTPConnection
        replace(undo, asynchronous, "handle_async_request", _async(core, asynchronous.handle_async_request))


def _sync(core: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    def handle_request(self: Any, request: Any) -> Any:
        tape = active()
        if tape is None:
            return original(self, request)
        call = _begin(tape, request)
        if (response := _unsent(core, tape, call, self)) is not None:
            return response
        try:
            with tape.time.sending():
                response = original(self, request)
                call.has_body = canned.has_body(_names(response))
                if call.fault is None:
                    return response
                body = response.read()
                response.close()
        except core.ConnectionNotAvailable:
            tape.withdraw(call)
            raise
        return _spoiled(core, tape, call, response, body)

    return handle_request


def _async(core: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    async def handle_async_request(self: Any, request: Any) -> Any:
        tape = active()
        if tape is None:
            return await original(self, request)
        call = _begin(tape, request)
        if (response := _unsent(core, tape, call, self)) is not None:
            return response
        try:
            with tape.time.sending():
                response = await original(self, request)
                call.has_body = canned.has_body(_names(response))
                if call.fault is None:
                    return response
                body = await response.aread()
                await response.aclose()
        except core.ConnectionNotAvailable:
            tape.withdraw(call)
            raise
        return _spoiled(core, tape, call, response, body)

    return handle_async_request


def _begin(tape: Tape, request: Any) -> SentCall:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
    timeout = request.extensions.get("timeout", {}).get("read")
    target = request.url.target.decode("latin-1")
    return http_call(tape, request.method.decode(), request.url.host.decode("latin-1"), target, headers, timeout)


def _names(response: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


def _unsent(core: Any, tape: Tape, call: SentCall, connection: Any) -> Any:
    """Return the response to a request that is not sent, None if it is to be sent; raise the error of a refused one."""
    if call.fault != "refused" and not canned.is_status(call.fault):
        return None
    if connection._connection is None:
        connection._connect_failed = True  # so that the pool drops the connection, which was never made
    if call.fault == "refused":
        raise tape.inject(core.ConnectError("[Errno 111] Connection refused"))
    fault = str(call.fault)
    return core.Response(int(fault), headers=canned.headers(fault), content=canned.body(fault))


def _spoiled(core: Any, tape: Tape, call: SentCall, response: Any, body: bytes) -> Any:
    """Raise the error of a lost or slow response, or return the response with half of its body."""
    if call.fault == "lost":
        raise tape.inject(core.RemoteProtocolError("Server disconnected without sending a response."))
    if call.fault == "slow":
        tape.time.advance(call.timeout or 0)
        raise tape.inject(core.ReadTimeout("timed out"))
    error = core.RemoteProtocolError("peer closed connection without sending complete message body")
    half = _Half(body, tape.inject(error))
    return core.Response(response.status, headers=response.headers, content=half, extensions=response.extensions)


class _Half:
    """A body, sync and async, that breaks in the middle."""

    def __init__(self, body: bytes, error: Exception) -> None:
        self._half = body[: len(body) // 2]
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield self._half
        raise self._error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._half
        raise self._error
