"""Further clients, in the shape of the flavours of httpx, so that the tables of cases run through them as well."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import requests
import urllib3
from yarl import URL

from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.run.runtime import current
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime
from forbear_testkit.clients.flavours import FLAVOURS, READ_TIMEOUT, Result


class Requests:
    """requests, with an adapter for all hosts."""

    name = "requests"
    is_async = False
    library = SimpleNamespace(
        __name__="requests",
        TransportError=requests.RequestException,
        NetworkError=requests.ConnectionError,
        ReadTimeout=requests.ReadTimeout,
        RemoteProtocolError=requests.exceptions.ChunkedEncodingError,
        TimeoutException=requests.Timeout,
        HTTPStatusError=requests.HTTPError,
    )

    def base(self) -> None:
        """There is nothing below the adapter."""

    def transport(self, policy: Any = None, *, transport: None = None, **options: Any) -> RetryAdapter:
        """A retrying adapter."""
        return RetryAdapter(policy, **options)

    def once(self, pieces: Iterable[bytes], end: Exception | None = None) -> Iterator[bytes]:
        """A body that comes once, in these pieces, and then ends or raises."""
        yield from pieces
        if end is not None:
            raise end

    def call(
        self,
        transport: RetryAdapter,
        method: str,
        url: str,
        *,
        content: Any = None,
        stop_after: int | None = None,
        clock: Callable[[VirtualTime], object] = lambda _: None,
        client: Mapping[str, Any] | None = None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the response, with `stop_after` piece by piece."""
        timeout = (client or {}).get("timeout", READ_TIMEOUT)
        with virtual_time(seed=7) as time, requests.Session() as session:
            session.trust_env = False
            session.mount("http://", transport)
            session.mount("https://", transport)
            clock(time)
            result = Result(slept=time.slept)
            try:
                stream = stop_after is not None
                request.setdefault("data", content)
                result.response = session.request(method, url, timeout=timeout, stream=stream, **request)
                if stop_after is None:
                    result.pieces = [result.response.content]
                else:
                    with result.response:
                        for piece in result.response.iter_content(1 if stop_after <= 10**6 else 65_536):
                            if result.add(piece) >= stop_after:
                                break
            except Exception as error:
                result.error = error
        return result


class Aiohttp:
    """aiohttp, with a middleware for the whole session."""

    name = "aiohttp"
    is_async = True
    library = SimpleNamespace(
        __name__="aiohttp",
        TransportError=aiohttp.ClientError,
        NetworkError=aiohttp.ClientConnectionError,
        ReadTimeout=aiohttp.SocketTimeoutError,
        RemoteProtocolError=aiohttp.ClientPayloadError,
        TimeoutException=TimeoutError,
        HTTPStatusError=aiohttp.ClientResponseError,
    )

    def base(self) -> None:
        """There is nothing below the middleware."""

    def transport(self, policy: Any = None, *, transport: None = None, **options: Any) -> RetryMiddleware:
        """A retrying middleware."""
        return RetryMiddleware(policy, **options)

    async def once(self, pieces: Iterable[bytes], end: Exception | None = None) -> AsyncIterator[bytes]:
        """A body that comes once, in these pieces, and then ends or raises."""
        for piece in pieces:
            yield piece
        if end is not None:
            raise end

    def call(
        self,
        transport: RetryMiddleware,
        method: str,
        url: str,
        *,
        stop_after: int | None = None,
        clock: Callable[[VirtualTime], object] = lambda _: None,
        client: Mapping[str, Any] | None = None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the response, with `stop_after` piece by piece."""
        wait = (client or {}).get("timeout", READ_TIMEOUT)
        with virtual_time(seed=7) as time:
            clock(time)
            result = Result(slept=time.slept)
            runtime = current.get()

            async def talk() -> None:
                current.set(runtime)
                timeout = aiohttp.ClientTimeout(sock_read=wait)
                async with aiohttp.ClientSession(middlewares=(transport,), timeout=timeout) as session:
                    await self._talk(session, method, url, stop_after, request, result)
                    assert session.connector is not None
                    result.open_connections = len(session.connector._acquired)

            try:
                asyncio.run(talk())
            except Exception as error:
                result.error = error
        return result

    async def _talk(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: str,
        stop_after: int | None,
        request: dict[str, Any],
        result: Result,
    ) -> None:
        content, files = request.pop("content", None), request.pop("files", {})
        if content is not None:
            request["data"] = content
        if files:
            request["data"] = form = aiohttp.FormData(request["data"], default_to_multipart=True)
            for name, (filename, file) in files.items():
                form.add_field(name, file, filename=filename)
        async with session.request(method, URL(url, encoded=True), **request) as response:
            content = await response.read() if stop_after is None else b""
            told: Any = response
            told.status_code = response.status
            told.json = lambda: json.loads(content)
            result.response = response
            if stop_after is None:
                result.pieces = [content]
                return
            async for piece in response.content.iter_any():
                if result.add(piece) >= stop_after:
                    break


class Urllib3:
    """urllib3, with a Retry object for a whole pool that sends bytes only; it continues no bodies."""

    name = "urllib3"
    is_async = False
    library = SimpleNamespace(
        __name__="urllib3",
        TransportError=urllib3.exceptions.HTTPError,
        ReadTimeout=urllib3.exceptions.ReadTimeoutError,
        RemoteProtocolError=urllib3.exceptions.ProtocolError,
    )

    def transport(self, policy: Any = None, **options: Any) -> Retry:
        """A retrying object."""
        return Retry(policy, bodies_are_reusable=True, **options)

    def call(
        self,
        transport: Retry,
        method: str,
        url: str,
        *,
        content: bytes | None = None,
        client: Mapping[str, Any] | None = None,
        **request: Any,
    ) -> Result:
        """Send one request in virtual time and read the response."""
        if content is not None:
            request["body"] = content
        timeout = (client or {}).get("timeout", READ_TIMEOUT)
        with virtual_time(seed=7) as time, urllib3.PoolManager(retries=transport, timeout=timeout) as pool:
            result = Result(slept=time.slept)
            try:
                response: Any = pool.request(method, url, **request)
                response.status_code = response.status
                result.response, result.pieces = response, [response.data]
            except Exception as error:
                result.error = error
        return result


OTHERS = [Requests(), Aiohttp()]

EVERY = pytest.mark.parametrize("flavour", [*FLAVOURS, *OTHERS], ids=lambda flavour: flavour.name, indirect=True)
"""Run a test through the flavours of httpx and through all other clients that see whole requests."""

OUTSIDERS = [*OTHERS, Urllib3()]
"""Those that are not of httpx."""

BLIND_TOO = pytest.mark.parametrize("flavour", [*FLAVOURS, *OUTSIDERS], ids=lambda flavour: flavour.name, indirect=True)
"""Run a test through the ones that do not, as well."""
