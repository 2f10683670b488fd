"""Faults in httpcore (httpx) and httpcore2 (httpx2), at the connection: below the pool, httpx and its transports."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from forbear_audit.storm.patching import replace
from forbear_audit.storm.run_record import RunRecord, SentCall, current_record, record_http_call
from forbear_audit.storm.wire import canned


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
        record = current_record()
        if record is None:
            return original(self, request)
        call = _begin(record, request)
        if (response := _unsent(core, call, self)) is not None:
            return response
        if call.fault == "refused" and _is_open(self):
            record.withdraw(call)
            self._connection.close()
            raise core.ConnectionNotAvailable  # so that the pool sends the request over a new connection
        try:
            with record.time.sending(), _refusing(core, record, call, self, request):
                response = original(self, request)
                call.responded, call.has_body = True, canned.has_body(_names(response))
                if call.fault in {None, "refused"}:
                    return response
                body = response.read()
                response.close()
        except core.ConnectionNotAvailable:
            record.withdraw(call)
            raise
        return _spoil(core, record, call, response, body)

    return handle_request


def _async(core: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    async def handle_async_request(self: Any, request: Any) -> Any:
        record = current_record()
        if record is None:
            return await original(self, request)
        call = _begin(record, request)
        if (response := _unsent(core, call, self)) is not None:
            return response
        if call.fault == "refused" and _is_open(self):
            record.withdraw(call)
            await self._connection.aclose()
            raise core.ConnectionNotAvailable  # so that the pool sends the request over a new connection
        try:
            with record.time.sending(), _refusing(core, record, call, self, request):
                response = await original(self, request)
                call.responded, call.has_body = True, canned.has_body(_names(response))
                if call.fault in {None, "refused"}:
                    return response
                body = await response.aread()
                await response.aclose()
        except core.ConnectionNotAvailable:
            record.withdraw(call)
            raise
        return _spoil(core, record, call, response, body)

    return handle_async_request


def _begin(record: RunRecord, request: Any) -> SentCall:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers}
    timeout = request.extensions.get("timeout", {}).get("read")
    target = request.url.target.decode("latin-1")
    return record_http_call(
        record, request.method.decode(), request.url.host.decode("latin-1"), target, headers, timeout
    )


def _names(response: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


def _unsent(core: Any, call: SentCall, connection: Any) -> Any:
    """Return the response to a request that is not sent, None if it is to be sent."""
    if not canned.is_status(call.fault):
        return None
    if connection._connection is None:
        connection._connect_failed = True  # so that the pool drops the connection, which was never made
    fault = str(call.fault)
    return core.Response(int(fault), headers=canned.headers(fault), content=canned.body(fault))


def _is_open(connection: Any) -> bool:
    return connection._connection is not None


@contextmanager
def _refusing(core: Any, record: RunRecord, call: SentCall, connection: Any, request: Any) -> Generator[None]:
    """Refuse connects within the block if the call has that fault."""
    if call.fault != "refused":
        yield
        return
    backend = connection._network_backend
    connection._network_backend = _RefusingBackend(backend, core, record, call, request)
    try:
        yield
    finally:
        connection._network_backend = backend


@dataclass(eq=False)
class _RefusingBackend:
    """A network backend, sync or async, whose connects meet the fault; each one after the first is a call of its own.

    So retries of the connection itself (`retries=` of a transport) are seen.
    """

    _backend: Any
    _core: Any
    _record: RunRecord
    _call: SentCall | None
    _request: Any

    def _meet(self) -> None:
        call, self._call = self._call or _begin(self._record, self._request), None
        if call.fault == "refused":
            raise self._record.inject(self._core.ConnectError("[Errno 111] Connection refused"))

    def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, unless this connect is refused."""
        self._meet()
        return self._backend.connect_tcp(*args, **kwargs)

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, unless this connect is refused."""
        self._meet()
        return self._backend.connect_unix_socket(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def _spoil(core: Any, record: RunRecord, call: SentCall, response: Any, body: bytes) -> Any:
    """Raise the error of a lost or slow response, or return the response with half of its body."""
    if call.fault == "lost":
        raise record.inject(core.RemoteProtocolError("Server disconnected without sending a response."))
    if call.fault == "slow":
        record.time.advance(call.timeout or 0)
        raise record.inject(core.ReadTimeout("timed out"))
    error = core.RemoteProtocolError("peer closed connection without sending complete message body")
    half = _Half(body, record.inject(error))
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
