"""Errors that mocks, and the adapters and middlewares of others, raise below ours: by their class, without a cause."""

import asyncio
import io
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.httpx import RetryTransport
from forbear.clients.requests import RetryAdapter
from forbear.events import Reason
from forbear.testing import virtual_time

URL = "http://api.example.com/thing"
Call = Callable[[str, Exception], tuple[int, Exception | None]]


def of_requests(method: str, error: Exception) -> tuple[int, Exception | None]:
    """Send a request whose first attempt raises `error`; return the number of attempts and the error that is raised."""
    sent = []

    def play(self: object, request: requests.PreparedRequest, **_: object) -> requests.Response:
        sent.append(request)
        if len(sent) == 1:
            raise error
        response = requests.Response()
        response.status_code, response.url, response.request = 200, URL, request
        response.raw = urllib3.HTTPResponse(io.BytesIO(b"ok"), preload_content=False)
        return response

    with pytest.MonkeyPatch.context() as patch, requests.Session() as session:
        patch.setattr(HTTPAdapter, "send", play)  # as the library `responses` does it
        session.mount("http://", RetryAdapter())
        try:
            assert session.request(method, URL).content == b"ok"
        except requests.RequestException as raised:
            return len(sent), raised
    return len(sent), None


def of_httpx(method: str, error: Exception) -> tuple[int, Exception | None]:
    """The same with httpx."""
    sent = []

    def play(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        if len(sent) == 1:
            raise error
        return httpx.Response(200, content=b"ok")

    with httpx.Client(transport=RetryTransport(transport=httpx.MockTransport(play))) as client:
        try:
            assert client.request(method, URL).content == b"ok"
        except httpx.HTTPError as raised:
            return len(sent), raised
    return len(sent), None


def of_aiohttp(method: str, error: Exception) -> tuple[int, Exception | None]:
    """The same with aiohttp, by an inner middleware; a second attempt ends the call there."""
    sent = []

    async def play(request: aiohttp.ClientRequest, handler: object) -> Any:
        sent.append(request)
        raise error if len(sent) == 1 else LookupError

    async def run() -> Exception | None:
        async with aiohttp.ClientSession(middlewares=(RetryMiddleware(), play)) as session:
            try:
                await session.request(method, URL)
            except aiohttp.ClientError as raised:
                return raised
            except LookupError:
                return None
        raise AssertionError

    raised = asyncio.run(run())
    return len(sent), raised


LOST: list[tuple[Call, Exception]] = [
    (of_requests, requests.ConnectionError("boom")),
    (of_requests, requests.ConnectTimeout("boom")),
    (of_requests, requests.ReadTimeout("boom")),
    (of_requests, requests.Timeout("boom")),
    (of_requests, requests.exceptions.ProxyError("boom")),
    (of_requests, requests.exceptions.SSLError("boom")),
    (of_requests, requests.exceptions.ChunkedEncodingError("boom")),
    (of_requests, requests.ConnectionError(OSError("boom"))),
    (of_httpx, httpx.ReadTimeout("boom")),
    (of_httpx, httpx.ReadError("boom")),
    (of_httpx, httpx.RemoteProtocolError("boom")),
    (of_aiohttp, aiohttp.ClientConnectionError("boom")),
    (of_aiohttp, aiohttp.ServerDisconnectedError("boom")),
    (of_aiohttp, aiohttp.ServerTimeoutError("boom")),
    (of_aiohttp, aiohttp.ClientPayloadError("boom")),
]
FINAL: list[tuple[Call, Exception]] = [
    (of_requests, requests.exceptions.ContentDecodingError("boom")),
    (of_requests, requests.exceptions.InvalidURL("boom")),
    (of_requests, requests.exceptions.RetryError("boom")),
    (of_requests, requests.ConnectionError(urllib3.exceptions.LocationParseError("boom"))),
    (of_requests, requests.exceptions.SSLError(urllib3.exceptions.SSLError("no such setting"))),
    (of_httpx, httpx.DecodingError("boom")),
    (of_httpx, httpx.UnsupportedProtocol("boom")),
    (of_aiohttp, aiohttp.InvalidURL(URL)),
]


def name(value: object) -> str:
    """Name a case by its library and its error."""
    if not isinstance(value, Exception):
        return getattr(value, "__name__", "")
    return "-".join(type(each).__name__ for each in (value, *value.args) if isinstance(each, Exception))


@pytest.mark.parametrize(("call", "error"), LOST, ids=name)
def test_a_bare_error_of_the_connection_leaves_the_outcome_unknown(call: Call, error: Exception) -> None:
    """A GET is repeated, so that tests with mocks show it; a POST is not, for nothing proves that it was not sent."""
    with virtual_time():
        assert call("GET", error) == (2, None)
        sent, raised = call("POST", error)
    report = forbear.report(raised)
    assert (sent, raised, report is not None and report.reason) == (1, error, Reason.UNSAFE)


@pytest.mark.parametrize(("call", "error"), FINAL, ids=name)
def test_other_bare_errors_are_final(call: Call, error: Exception) -> None:
    """No other attempt changes a setting, an address or an encoding, or gives an inner retry more attempts."""
    with virtual_time():
        assert call("GET", error) == (1, error)
