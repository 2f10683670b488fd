"""The contenders: three ways to send the same request. They differ in how they retry and in nothing else.

`none` sends once. `naive` does what a decorator does that repeats a function whenever it raises. `forbear` is httpx
with a RetryTransport, and looks whether a write is there where the error leaves that open and looking can tell: after a
404, 409 or 412 on a repeat (`report(error).maybe_done`), or a reply that broke off. The last two hold back by the same
backoff and make the same number of attempts; only `forbear` obeys Retry-After.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx

from forbear.cli.demo.ask import KEY, Ask, Proof
from forbear.clients.httpx import AsyncRetryTransport
from forbear.core.report import report
from forbear.run.runtime import current
from forbear.services import cloud_storage

ATTEMPTS = 6


class Wire(httpx.AsyncBaseTransport):
    """The network, the same for all; here others get in between attempts."""

    def __init__(self, url: str) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._rival = httpx.AsyncClient(base_url=url, trust_env=False)  # with connections that no fault has broken
        self._met = set[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request; after a first attempt, however it ended, others have their turn."""
        ask: Ask = request.extensions["ask"]
        try:
            return await self._inner.handle_async_request(request)
        finally:
            if ask.meanwhile is not None and ask.key not in self._met:
                self._met.add(ask.key)
                await ask.meanwhile(lambda other: once(self._rival, other))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
        await self._rival.aclose()


async def once(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    """Send a request and read the reply; an error status raises."""
    headers = {**ask.headers, KEY: ask.key}
    request = client.build_request(ask.method, ask.path, content=ask.content, headers=headers, extensions={"ask": ask})
    response = await client.send(request, stream=ask.sink is not None)
    try:
        if response.is_error:
            response.raise_for_status()
        if ask.sink is not None:
            async for chunk in response.aiter_bytes():
                ask.sink.extend(chunk)
    finally:
        await response.aclose()
    return response


async def _naive(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    backoff, runtime = cloud_storage.policy.backoff, current.get()
    for retry in range(ATTEMPTS - 1):
        try:
            return await once(client, ask)
        except httpx.HTTPError:
            await runtime.asleep(backoff.delay(retry, runtime.random()))
    return await once(client, ask)


async def _forbear(client: httpx.AsyncClient, ask: Ask) -> httpx.Response:
    try:
        return await once(client, ask)
    except httpx.HTTPError as error:
        told = report(error)
        # The transport says so of a status; a reply that broke off says it of itself.
        in_doubt = told.maybe_done if told is not None else isinstance(error, httpx.TransportError)
        evidence = await _look(client, ask, ask.proof) if in_doubt and ask.proof is not None else None
        if evidence is None:
            raise
        return evidence


async def _look(client: httpx.AsyncClient, ask: Ask, proof: Proof) -> httpx.Response | None:
    """The reply that shows that a write has happened, None if there is none."""
    try:
        response = await once(client, Ask(ask.operation, "look", "GET", proof.path))
    except httpx.HTTPStatusError as error:
        return error.response if error.response.status_code == 404 and proof.holds is None else None
    found = response.json()
    holds = proof.holds is not None and all(found.get(name) == value for name, value in proof.holds.items())
    return response if holds else None


def _retrying(wire: Wire) -> AsyncRetryTransport:
    return AsyncRetryTransport(cloud_storage.policy.with_attempts(ATTEMPTS), transport=wire)


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to send requests: through which transport, and by which function."""

    name: str
    transport: Callable[[Wire], httpx.AsyncBaseTransport]
    send: Callable[[httpx.AsyncClient, Ask], Awaitable[httpx.Response]]


CONTENDERS = (
    Contender("none", lambda wire: wire, once),
    Contender("naive", lambda wire: wire, _naive),
    Contender("forbear", _retrying, _forbear),
)
