"""Faults in urllib3, and so in requests and botocore, below the retries of all three."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from http.client import IncompleteRead, RemoteDisconnected
from io import BytesIO
from typing import Any

from forbear.services.aws import classify
from forbear_audit.storm.patching import lead
from forbear_audit.storm.run_record import RunRecord, is_safe_operation, record_http_call
from forbear_audit.storm.wire import canned


def install(undo: ExitStack) -> None:
    """Stand in the way of urllib3, where it is installed, and judge the operations of botocore, where it is loaded."""
    endpoint: Any = sys.modules.get("botocore.endpoint")
    if endpoint is not None:
        lead(undo, endpoint.Endpoint, "make_request", _judge)
    try:
        from urllib3.connectionpool import HTTPConnectionPool
    except ImportError:
        return
    lead(undo, HTTPConnectionPool, "_make_request", _send)


def _judge(record: RunRecord, original: Callable[..., Any], self: Any, operation_model: Any, request_dict: Any) -> Any:
    parameters: dict[str, Any] = {}
    with suppress(TypeError, ValueError):  # another protocol than JSON
        parameters.update(json.loads(request_dict["body"]))
    token = is_safe_operation.set(classify(operation_model, parameters).repeatable)
    try:
        return original(self, operation_model, request_dict)
    finally:
        is_safe_operation.reset(token)


def _send(
    record: RunRecord,
    original: Callable[..., Any],
    self: Any,
    conn: Any,
    method: str,
    url: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    passed: dict[Any, Any] = dict(kwargs.get("headers") or self.headers or {})
    headers = {_text(name).lower(): _text(value) for name, value in passed.items()}
    limit = _limit(self._get_timeout(kwargs["timeout"])) if "timeout" in kwargs else None
    path = url if url.startswith("/") else "/" + url.partition("://")[2].partition("/")[2]  # a proxy gets it whole
    call = record_http_call(record, method, self.host, path, headers, limit)
    respond = partial(_response, self, conn, method, url, kwargs)
    if call.fault == "refused":
        from urllib3.exceptions import NewConnectionError

        conn.close()
        refused = "Failed to establish a new connection: [Errno 111] Connection refused"
        raise record.inject(NewConnectionError(conn, refused))
    if canned.is_status(call.fault):
        fault = str(call.fault)
        return respond(int(fault), canned.headers(fault), BytesIO(canned.body(fault)), canned.reason(fault))
    with record.time.sending():
        if call.fault is None:
            response = original(self, conn, method, url, *args, **kwargs)
            call.responded, call.has_body = True, method != "HEAD" and canned.has_body(response.headers)
            return response
        whole = kwargs | {"preload_content": False, "response_conn": None}
        response = original(self, conn, method, url, *args, **whole)
        body = response.read(decode_content=False)
        response.close()
        conn.close()
    if call.fault in ("lost", "slow"):
        from urllib3.exceptions import ReadTimeoutError

        late = ReadTimeoutError(self, url, f"Read timed out. (read timeout={call.timeout})")
        raise record.lose(call, RemoteDisconnected("Remote end closed connection without response"), late)
    headers = {name: value for name, value in response.headers.items() if name.lower() != "transfer-encoding"}
    headers["Content-Length"] = str(len(body))
    return respond(response.status, headers, _HalfFile(body, record), response.reason)


def _limit(timeout: Any) -> float | None:
    """Return the seconds that a response may take; `read_timeout` cannot say it before a connect."""
    return min(
        (float(value) for value in (timeout._read, timeout.total) if isinstance(value, int | float)), default=None
    )


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class _HalfFile(BytesIO):
    """The first half of a body, which then breaks as http.client does it."""

    def __init__(self, body: bytes, record: RunRecord) -> None:
        super().__init__(body[: len(body) // 2])
        self._missing = len(body) - len(body) // 2
        self._record = record

    def read(self, size: int | None = -1, /) -> bytes:
        """Return what is left of the half, and raise IncompleteRead at its end."""
        data = super().read(size)
        if size is None or size < 0 or not data:
            raise self._record.inject(IncompleteRead(data, self._missing))
        return data


def _response(
    pool: Any, conn: Any, method: str, url: str, kwargs: Any, status: int, headers: Any, body: BytesIO, reason: Any
) -> Any:
    """Return a response as urllib3 makes it, with these parts."""
    from urllib3.response import HTTPResponse

    conn.close()
    response = HTTPResponse(
        body,
        headers,
        status,
        reason=reason,
        preload_content=kwargs.get("preload_content", True),
        decode_content=kwargs.get("decode_content", True),
        enforce_content_length=kwargs.get("enforce_content_length", True),
        request_method=method,
        request_url=url,
    )
    response.retries = kwargs.get("retries")
    response._connection = kwargs.get("response_conn")
    response._pool = pool
    return response
