"""HTTP clients as their users use them, without an adapter: each sends one request and reads the whole response."""

import asyncio
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import requests
import urllib3

from forbear_testkit.lazily import Library

niquests: Any = Library("niquests")
TIMEOUT = 5.0

Send = Callable[[str, str], object]
"""Sends a request with this method to this URL; a POST has the body {"n": 1}."""

AsyncSend = Callable[[str, str], Awaitable[object]]

_JSON = {"n": 1}
_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""httpx would load all certificates of the system for each client."""


def _body(method: str) -> Any:
    return _JSON if method in ("POST", "PUT", "PATCH") else None


def _bytes(method: str) -> bytes | None:
    return b'{"n":1}' if _body(method) else None


def _httpx(library: Any) -> Send:
    def send(method: str, url: str) -> object:
        with library.Client(timeout=TIMEOUT, follow_redirects=True, verify=_TRUST) as client:
            return client.request(method, url, json=_body(method)).raise_for_status()

    return send


def _async_httpx(library: Any) -> AsyncSend:
    async def send(method: str, url: str) -> object:
        async with library.AsyncClient(timeout=TIMEOUT, follow_redirects=True, verify=_TRUST) as client:
            return (await client.request(method, url, json=_body(method))).raise_for_status()

    return send


def _requests(library: Any) -> Send:
    def send(method: str, url: str) -> object:
        with library.Session() as session:
            response = session.request(method, url, json=_body(method), timeout=TIMEOUT)
        response.raise_for_status()
        return response

    return send


async def _niquests(method: str, url: str) -> object:
    async with niquests.AsyncSession() as session:
        response = await session.request(method, url, json=_body(method), timeout=TIMEOUT)
    return response.raise_for_status()


def _urllib3(method: str, url: str) -> object:
    with urllib3.PoolManager(timeout=TIMEOUT) as pool:  # a redirect takes the retries of the request, not the pool's
        return pool.request(method, url, body=_bytes(method), retries=urllib3.Retry(3, connect=0, read=0)).data


def _urllib(method: str, url: str) -> object:
    request = urllib.request.Request(url, data=_bytes(method), method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def _http_client(method: str, url: str) -> object:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=TIMEOUT)
    try:
        connection.request(method, parts.path, body=_bytes(method))
        return connection.getresponse().read()
    finally:
        connection.close()


async def _aiohttp(method: str, url: str) -> object:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIMEOUT)) as session,
        session.request(method, url, json=_body(method)) as response,
    ):
        response.raise_for_status()
        return await response.read()


SYNC: dict[str, Send] = {
    "httpx": _httpx(httpx),
    "httpx2": _httpx(httpx2),
    "requests": _requests(requests),
    "urllib3": _urllib3,
    "urllib": _urllib,
    "http.client": _http_client,
}
ASYNC: dict[str, AsyncSend] = {
    "httpx async": _async_httpx(httpx),
    "httpx2 async": _async_httpx(httpx2),
    "aiohttp": _aiohttp,
}
if find_spec("niquests") is not None:  # it needs another urllib3, so it has an environment of its own
    SYNC["niquests"] = _requests(niquests)
    ASYNC["niquests async"] = _niquests
NAMES = (*SYNC, *ASYNC)
"""The clients. "http.client" follows no redirects, and raises nothing for an error status; nor does urllib3."""


def send(client: str, method: str, url: str) -> object:
    """Send one request by a client, in an event loop of its own if it is async."""
    if client in SYNC:
        return SYNC[client](method, url)

    async def main() -> object:
        return await ASYNC[client](method, url)

    return asyncio.run(main())
