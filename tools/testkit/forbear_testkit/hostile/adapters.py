"""Senders: each sends one request through one client library, with retries or plain, and reads a success's start.

The body of a failure is left unread, so that all that is read of it is what forbear reads.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import requests
import trio
import urllib3

from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.core.backoff import Constant
from forbear.run.runtime import current
from forbear.services import rfc9110
from forbear_testkit.clients.flavours import FLAVOURS, Flavour

ATTEMPTS = 3
POLICY = rfc9110.policy.with_attempts(ATTEMPTS).with_timeout(600).with_backoff(Constant(1))
ENOUGH = 64 * 1024
"""Bytes of a body that are read: where the plain client reads on without end, so may its caller."""
_BODY = b"once"


@dataclass(frozen=True)
class Adapter:
    """One client library in one style; `send(method, url, timeout, retries)` returns the status and some of the body.

    `timeout` is how long it waits for a byte, in seconds.
    """

    name: str
    send: Callable[[str, str, float, bool], tuple[int, bytes]]


def _some(status: int, pieces: Iterable[bytes]) -> tuple[int, bytes]:
    found = b""
    if status >= 400:
        return status, found
    for piece in pieces:
        found += piece
        if len(found) > ENOUGH:
            break
    return status, found


async def _asome(status: int, pieces: AsyncIterable[bytes]) -> tuple[int, bytes]:
    found = b""
    if status >= 400:
        return status, found
    async for piece in pieces:
        found += piece
        if len(found) > ENOUGH:
            break
    return status, found


def _httpx(flavour: Flavour, method: str, url: str, timeout: float, retries: bool) -> tuple[int, bytes]:
    base = flavour.base()
    client: Any = flavour.client(flavour.transport(POLICY, transport=base) if retries else base, timeout=timeout)
    content = _BODY if method == "POST" else None
    with client, client.stream(method, url, content=content) as response:
        return _some(response.status_code, response.iter_raw())


def _ahttpx(flavour: Flavour, method: str, url: str, timeout: float, retries: bool) -> tuple[int, bytes]:
    runtime = current.get()

    async def inside() -> tuple[int, bytes]:
        current.set(runtime)
        base = flavour.base()
        client: Any = flavour.client(flavour.transport(POLICY, transport=base) if retries else base, timeout=timeout)
        content = _BODY if method == "POST" else None
        async with client, client.stream(method, url, content=content) as response:
            return await _asome(response.status_code, response.aiter_raw())

    return trio.run(inside) if flavour.loop == "trio" else asyncio.run(inside())


def _requests(method: str, url: str, timeout: float, retries: bool) -> tuple[int, bytes]:
    with requests.Session() as session:
        session.trust_env = False
        if retries:
            session.mount("http://", RetryAdapter(POLICY))
        data = _BODY if method == "POST" else None
        with session.request(method, url, data=data, timeout=timeout, stream=True) as response:
            return _some(response.status_code, response.iter_content(8192))


def _urllib3(method: str, url: str, timeout: float, retries: bool) -> tuple[int, bytes]:
    with urllib3.PoolManager(retries=Retry(POLICY) if retries else False, timeout=timeout) as pool:
        body = _BODY if method == "POST" else None
        response = pool.request(method, url, body=body, preload_content=False)
        try:
            return _some(response.status, response.stream(8192, decode_content=False))
        finally:
            response.close()


def _aiohttp(method: str, url: str, timeout: float, retries: bool) -> tuple[int, bytes]:
    runtime = current.get()

    async def inside() -> tuple[int, bytes]:
        current.set(runtime)
        patience = aiohttp.ClientTimeout(sock_read=timeout)
        middlewares = (RetryMiddleware(POLICY),) if retries else ()
        data = _BODY if method == "POST" else None
        async with (
            aiohttp.ClientSession(timeout=patience, middlewares=middlewares, auto_decompress=False) as session,
            session.request(method, url, data=data) as response,
        ):
            return await _asome(response.status, response.content.iter_chunked(8192))

    return asyncio.run(inside())


ADAPTERS = (
    *(Adapter(flavour.name, partial(_ahttpx if flavour.is_async else _httpx, flavour)) for flavour in FLAVOURS),
    Adapter("requests", _requests),
    Adapter("urllib3", _urllib3),
    Adapter("aiohttp", _aiohttp),
)
