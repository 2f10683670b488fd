"""Faults in httpcore (httpx) and httpcore2 (httpx2), at the connection: below the pool, httpx and its transports."""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from forbear_audit.storm.patching import finish, lead, run_now
from forbear_audit.storm.run_record import RunRecord, SentCall, record_http_call
from forbear_audit.storm.wire import canned


def install(undo: ExitStack) -> None:
    """Stand in the way of both libraries, where they are installed."""
    for name in ("httpcore", "httpcore2"):
        try:
            core = import_module(name)
        except ImportError:
            continue
        handle = partial(_handle, core)
        lead(undo, core.HTTPConnection, "handle_request", run_now(handle))
        lead(undo, core.AsyncHTTPConnection, "handle_async_request", handle)


async def _handle(core: Any, record: RunRecord, original: Callable[..., Any], self: Any, request: Any) -> Any:
    call = _begin(record, request)
    if canned.is_status(call.fault):
        return _unsent(core, str(call.fault), self)
    mark = "a" if isinstance(self, core.AsyncHTTPConnection) else ""  # of methods that an async client awaits
    if call.fault == "refused" and self._connection is not None:
        record.withdraw(call)
        await finish(getattr(self._connection, f"{mark}close")())
        raise core.ConnectionNotAvailable  # so that the pool sends the request over a new connection
    try:
        with record.time.sending(), _refusing(core, record, call, self, request):
            response = await finish(original(self, request))
            call.responded, call.has_body = True, canned.has_body(_names(response))
            if call.fault in {None, "refused"}:
                return response
            body = await finish(getattr(response, f"{mark}read")())
            await finish(getattr(response, f"{mark}close")())
    except core.ConnectionNotAvailable:
        record.withdraw(call)
        raise
    return _spoil(core, record, call, response, body)


def _begin(record: RunRecord, request: Any) -> SentCall:
    host, target = (part.decode("latin-1") for part in (request.url.host, request.url.target))
    timeout = request.extensions.get("timeout", {}).get("read")
    return record_http_call(record, request.method.decode(), host, target, _names(request), timeout)


def _names(message: Any) -> dict[str, str]:
    """Return the headers of a request or a response."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message.headers}


def _unsent(core: Any, fault: str, connection: Any) -> Any:
    if connection._connection is None:
        connection._connect_failed = True  # so that the pool drops the connection, which was never made
    return core.Response(int(fault), headers=canned.headers(fault), content=canned.body(fault))


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

    def __getattr__(self, name: str) -> Any:
        if name in ("connect_tcp", "connect_unix_socket"):  # each is called at once
            call, self._call = self._call or _begin(self._record, self._request), None
            if call.fault == "refused":
                raise self._record.inject(self._core.ConnectError("[Errno 111] Connection refused"))
        return getattr(self._backend, name)


def _spoil(core: Any, record: RunRecord, call: SentCall, response: Any, body: bytes) -> Any:
    """Raise the error of a lost or slow response, or return the response with half of its body."""
    if call.fault in ("lost", "slow"):
        lost = core.RemoteProtocolError("Server disconnected without sending a response.")
        raise record.lose(call, lost, core.ReadTimeout("timed out"))
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
