"""The verdicts on errors of HTTP and gRPC clients, of sockets and of Redis: a row for each kind."""

import errno
import socket
import ssl
from functools import partial
from typing import Any

import aiohttp
import grpc
import httpx
import redis
import redis.exceptions
import requests
import tenacity
import urllib3
from google.auth import exceptions as auth

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear_testkit.judges.rows import EXHAUSTED, THROTTLED, Row
from forbear_testkit.services import errors
from forbear_testkit.services.errors import api_core

UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
refresh_error: Any = auth.RefreshError


def caused(error: Exception, cause: BaseException) -> Exception:
    """Return an error as it is raised from another one."""
    error.__cause__ = cause
    return error


def _of_http(kind: str, status: int, verdict: Verdict) -> list[Row]:
    makers = errors.OF_HTTP.items()
    return [Row(kind, f"{name} {status}", partial(make, status, b"{}", {}), verdict) for name, make in makers]


def _of_grpc(kind: str, code: grpc.StatusCode, verdict: Verdict) -> list[Row]:
    makers = errors.OF_GRPC.items()
    return [Row(kind, f"{name} {code.name}", partial(make, code, ()), verdict) for name, make in makers]


WIRE = [
    *_of_http("HTTP 408, 500, 502, 504", 500, TRANSIENT),
    *_of_http("HTTP 408, 500, 502, 504", 408, TRANSIENT),
    *_of_http("HTTP 429, 503", 429, THROTTLED),
    *_of_http("HTTP 429, 503", 503, THROTTLED),
    *_of_http("every other HTTP status", 404, PERMANENT),
    *_of_http("every other HTTP status", 409, PERMANENT),
    *_of_http("every other HTTP status", 501, PERMANENT),
    *_of_grpc("gRPC `INTERNAL`, `DEADLINE_EXCEEDED`", grpc.StatusCode.INTERNAL, TRANSIENT),
    *_of_grpc("gRPC `INTERNAL`, `DEADLINE_EXCEEDED`", grpc.StatusCode.DEADLINE_EXCEEDED, TRANSIENT),
    *_of_grpc("gRPC `UNAVAILABLE`, `RESOURCE_EXHAUSTED`", grpc.StatusCode.UNAVAILABLE, THROTTLED),
    *_of_grpc("gRPC `UNAVAILABLE`, `RESOURCE_EXHAUSTED`", grpc.StatusCode.RESOURCE_EXHAUSTED, THROTTLED),
    *_of_grpc("gRPC `ABORTED`", grpc.StatusCode.ABORTED, CONFLICT),
    *_of_grpc("every other code of gRPC", grpc.StatusCode.NOT_FOUND, PERMANENT),
]
_LOST = "a lost connection, a timeout, broken TLS"
_REFUSED = "a refused connection, an unknown host"
SOCKETS = [
    Row(_REFUSED, "refused", ConnectionRefusedError, TRANSIENT, NOT_EXECUTED),
    Row(_REFUSED, "name", lambda: socket.gaierror(socket.EAI_NONAME, "x"), TRANSIENT, NOT_EXECUTED),
    Row(_LOST, "reset", ConnectionResetError, TRANSIENT),
    Row(_LOST, "pipe", BrokenPipeError, TRANSIENT),
    Row(_LOST, "time", TimeoutError, TRANSIENT),
    Row(_LOST, "host", lambda: OSError(errno.EHOSTUNREACH, "x"), TRANSIENT),
    Row(_LOST, "TLS", lambda: ssl.SSLEOFError(8, "x"), TRANSIENT),
    Row(_LOST, "httpx", lambda: httpx.ReadTimeout("x"), TRANSIENT),
    Row(_LOST, "requests", lambda: requests.ConnectionError("x"), TRANSIENT),
    Row(_LOST, "urllib3", lambda: urllib3.exceptions.ProtocolError("x"), TRANSIENT),
    Row(_LOST, "aiohttp", aiohttp.ServerDisconnectedError, TRANSIENT),
    Row("an untrusted certificate", "ssl", lambda: UNTRUSTED, PERMANENT),
    Row("an untrusted certificate", "httpx", lambda: caused(httpx.ConnectError("x"), UNTRUSTED), PERMANENT),
    Row("an untrusted certificate", "urllib3", lambda: urllib3.exceptions.SSLError(UNTRUSTED), PERMANENT),
    Row("credentials of Google not fetched", "yes", lambda: refresh_error("x", retryable=True), TRANSIENT),
    Row("every other error", "refresh", lambda: refresh_error("x", retryable=False), PERMANENT),
    Row("retries of another library used up", "api-core", lambda: api_core.RetryError("x", OSError()), EXHAUSTED),
    Row("retries of another library used up", "requests", lambda: requests.exceptions.RetryError("x"), EXHAUSTED),
    Row("retries of another library used up", "tenacity", lambda: tenacity.RetryError(tenacity.Future(1)), EXHAUSTED),
    Row("every other error", "file", lambda: FileNotFoundError(errno.ENOENT, "x"), PERMANENT),
    Row("every other error", "value", lambda: ValueError("503"), PERMANENT),
    Row("every other error", "group", lambda: ExceptionGroup("x", [ConnectionResetError(), ValueError()]), PERMANENT),
]
_BUSY = "Redis, Valkey: a busy server or a lost connection"
REDIS = [
    Row(_BUSY, "loading", lambda: redis.exceptions.BusyLoadingError("x"), TRANSIENT),
    Row(_BUSY, "replica", lambda: redis.exceptions.ReadOnlyError("x"), TRANSIENT),
    Row(_BUSY, "lost", lambda: redis.ConnectionError("Connection closed by server."), TRANSIENT),
    Row(_BUSY, "refused", lambda: redis.ConnectionError("Error 111 connecting to x:1."), TRANSIENT),
    Row(
        "Redis, Valkey: too many clients",
        "crowded",
        lambda: redis.ConnectionError("max number of clients reached"),
        THROTTLED,
    ),
    Row(
        "Redis, Valkey: a changed watched key", "watch", lambda: redis.WatchError("Watched variable changed."), CONFLICT
    ),
    Row("every other error of Redis, Valkey", "moved", lambda: redis.exceptions.MovedError("1 x:1"), PERMANENT),
    Row("every other error of Redis, Valkey", "script", lambda: redis.exceptions.NoScriptError("x"), PERMANENT),
    Row("every other error of Redis, Valkey", "type", lambda: redis.ResponseError("WRONGTYPE x"), PERMANENT),
    Row("every other error of Redis, Valkey", "password", lambda: redis.AuthenticationError("x"), PERMANENT),
]
OWN = [*WIRE, *SOCKETS, *REDIS]
