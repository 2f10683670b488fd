"""Faults in aiohttp, between its session and its connector."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

from forbear_audit.storm.patching import lead
from forbear_audit.storm.run_record import RunRecord, SentCall, record_http_call
from forbear_audit.storm.wire import canned

_calls: "WeakKeyDictionary[Any, SentCall]" = WeakKeyDictionary()


def install(undo: ExitStack) -> None:
    """Stand in the way of aiohttp, where it is installed."""
    try:
        import aiohttp
    except ImportError:
        return
    lead(undo, aiohttp.BaseConnector, "connect", _connect)
    lead(undo, aiohttp.ClientRequest, "send", _send)
    lead(undo, aiohttp.ClientResponse, "start", _start)


async def _connect(
    record: RunRecord, original: Callable[..., Any], self: Any, req: Any, traces: Any, timeout: Any
) -> Any:
    from aiohttp import ClientConnectorError

    headers = {name.lower(): value for name, value in req.headers.items()}
    limit = timeout.sock_read or timeout.total
    call = record_http_call(record, req.method, req.url.raw_host or "", req.url.raw_path, headers, limit)
    if call.fault == "refused":
        refused = ConnectionRefusedError(111, "Connection refused")
        raise record.inject(ClientConnectorError(req.connection_key, refused)) from refused
    with record.time.sending():
        connection = await original(self, req, traces, timeout)
    _calls[connection] = call
    return connection


async def _send(record: RunRecord, original: Callable[..., Any], self: Any, conn: Any) -> Any:
    call = _calls.get(conn)
    if call is None or not canned.is_status(call.fault):
        return await original(self, conn)
    fault = str(call.fault)
    protocol = conn.protocol
    transport, protocol.transport = protocol.transport, _Sink(protocol.transport)
    try:
        response = await original(self, conn)
    finally:
        protocol.transport = transport
    lines = [f"HTTP/1.1 {fault} {canned.reason(fault)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in canned.headers(fault).items()]
    protocol.data_received("\r\n".join([*lines, "", ""]).encode() + canned.body(fault))
    return response


async def _start(record: RunRecord, original: Callable[..., Any], self: Any, connection: Any) -> Any:
    call = _calls.pop(connection, None)
    if call is None:
        return await original(self, connection)
    with record.time.sending():
        response = await original(self, connection)
        call.responded, call.has_body = True, self.method != "HEAD" and canned.has_body(response.headers)
        if call.fault is None or canned.is_status(call.fault):
            return response
        body = await response.content.read()
    return _spoil(record, call, response, body)


def _spoil(record: RunRecord, call: SentCall, response: Any, body: bytes) -> Any:
    """Raise the error of a lost or slow response, or return the response with half of its body."""
    import aiohttp
    from aiohttp.base_protocol import BaseProtocol

    if call.fault == "cut":
        content = aiohttp.StreamReader(BaseProtocol(response._loop), len(body) + 1, loop=response._loop)
        content.feed_data(body[: len(body) // 2])
        content.set_exception(record.inject(aiohttp.ClientPayloadError("Response payload is not completed")))
        response.content = content
        return response
    response.close()
    late = aiohttp.SocketTimeoutError("Timeout on reading data from socket")
    raise record.lose(call, aiohttp.ServerDisconnectedError(), late)


class _Sink:
    """A transport that drops what is written; all else is that of the real one."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: object) -> None:
        """Drop the data."""

    def writelines(self, data: object) -> None:
        """Drop the data."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
