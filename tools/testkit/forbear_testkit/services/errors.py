"""Errors of the real client libraries, made by hand as their own code makes them."""

import email.message
import io
import urllib.error
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio
import httplib2  # type: ignore[import-untyped]
import httpx
import requests
from google.api_core import exceptions
from googleapiclient.errors import HttpError

Headers = Mapping[str, str]
Maker = Callable[[int, bytes, Headers], Exception]
Trailing = tuple[tuple[str, str | bytes], ...]
CallMaker = Callable[[grpc.StatusCode, Trailing], Exception]

URL = "https://api.example.com/"

api_core: Any = exceptions
"""It has no types."""


def http_error(status: int, body: bytes, headers: Headers) -> Exception:
    """Return the error that `httpx.Response.raise_for_status` raises."""
    request = httpx.Request("POST", URL)
    response = httpx.Response(status, content=body, headers=dict(headers), request=request)
    return httpx.HTTPStatusError(str(status), request=request, response=response)


def _reply(status: int, body: bytes, headers: Headers) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.raw = io.BytesIO(body)
    response.headers.update(headers)
    response.url = URL
    response.request = requests.Request("POST", URL).prepare()
    assert response.content == body  # a session reads the body, unless the caller streams it
    return response


def _requests(status: int, body: bytes, headers: Headers) -> Exception:
    return requests.HTTPError(str(status), response=_reply(status, body, headers))


def _api_core(status: int, body: bytes, headers: Headers) -> Exception:
    found: Exception = api_core.from_http_response(_reply(status, body, headers))
    return found


def _google_api_client(status: int, body: bytes, headers: Headers) -> Exception:
    named = {name.lower(): value for name, value in headers.items()}
    found: Exception = HttpError(httplib2.Response({"status": status, **named}), body)
    return found


OF_HTTP: dict[str, Maker] = {
    "httpx": http_error, "requests": _requests, "google-api-core": _api_core, "googleapiclient": _google_api_client,
}  # fmt: skip
"""By clients that keep the body of the response."""


def urllib_error(status: int, headers: Headers) -> Exception:
    """Return the error that `urllib.request.urlopen` raises; its body is a stream, which is closed."""
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    error = urllib.error.HTTPError(URL, status, "x", message, None)
    error.close()  # or Python 3.14 warns
    return error


class _Call(grpc.RpcError):
    """The error that a sync call raises: an RpcError that is the call itself."""

    def __init__(self, code: grpc.StatusCode, trailing: Trailing) -> None:
        super().__init__(code)
        self._code = code
        self._trailing = trailing

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "x"

    def trailing_metadata(self) -> Trailing:  # type: ignore[override]
        return self._trailing


class _GrpcCall(_Call, grpc.Call):  # what api-core looks for
    def initial_metadata(self) -> Trailing:
        return ()

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> float:
        return 0

    def cancel(self) -> bool:
        return False

    def add_callback(self, callback: object) -> bool:
        return False


def _aio(code: grpc.StatusCode, trailing: Trailing) -> Exception:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), "x", None)


def _of_api_core(code: grpc.StatusCode, trailing: Trailing) -> Exception:
    found: Exception = api_core.from_grpc_error(_GrpcCall(code, trailing))
    return found


OF_GRPC: dict[str, CallMaker] = {"grpc": _Call, "grpc.aio": _aio, "google-api-core": _of_api_core}
