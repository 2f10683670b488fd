"""The contenders of the Cloud Storage part: three ways to send the same request, which differ only in how they retry.

`none` sends once. `naive` repeats on every error, as a retry decorator does. `forbear` is httpx with a RetryTransport.
After an ambiguous failure of a request that has a proof, `forbear` looks for the write. Such failures are a 404, 409 or
412 on a repeat (`report(error).maybe_done`), and a response that broke off. `naive` and `forbear` use the same backoff
and number of attempts; only `forbear` obeys Retry-After.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import httpx

from examples.demo.model import KEY, DemoRequest, Proof
from forbear.clients.httpx import AsyncRetryTransport
from forbear.core.report import report
from forbear.run.runtime import current
from forbear.services import cloud_storage

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff

ATTEMPTS = 6

T = TypeVar("T")


class Network(httpx.AsyncBaseTransport):
    """The transport below every contender. After a request's first attempt it lets other clients act."""

    def __init__(self, url: str) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._others = httpx.AsyncClient(base_url=url, trust_env=False)  # connections that no fault has broken
        self._seen = set[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and return the response; run `meanwhile` of its DemoRequest after the first attempt.

        `meanwhile` runs once for each DemoRequest that has one, whether the attempt failed or not, and sends by another
        client.
        """
        demo_request: DemoRequest = request.extensions["demo_request"]
        try:
            return await self._inner.handle_async_request(request)
        finally:
            if demo_request.meanwhile is not None and demo_request.key not in self._seen:
                self._seen.add(demo_request.key)
                await demo_request.meanwhile(lambda other: once(self._others, other))

    async def aclose(self) -> None:
        """Close the connections, also those of the other clients."""
        await self._inner.aclose()
        await self._others.aclose()


async def once(client: httpx.AsyncClient, request: DemoRequest) -> httpx.Response:
    """Send a request by `client`, read the body, and return the response; raise httpx.HTTPStatusError for a 4xx or 5xx.

    If the request has a `sink`, the body goes there, and not into the response.
    """
    response = await client.send(
        client.build_request(
            request.method,
            request.path,
            content=request.content,
            headers={**request.headers, KEY: request.key},
            extensions={"demo_request": request},
        ),
        stream=request.sink is not None,
    )
    try:
        if response.is_error:
            response.raise_for_status()
        if request.sink is not None:
            async for chunk in response.aiter_bytes():
                request.sink.extend(chunk)
    finally:
        await response.aclose()
    return response


async def repeat_on_any_error(call: Callable[[], Awaitable[T]], attempts: int, backoff: "Backoff") -> T:
    """Make up to `attempts` calls, with waits between them, until one raises no HTTPError, and return its result.

    The HTTPError of the last call propagates, and any other error at once.
    """
    runtime = current.get()
    for retry in range(attempts - 1):
        try:
            return await call()
        except httpx.HTTPError:
            await runtime.asleep(backoff.delay(retry, runtime.random(), None))
    return await call()


async def _naive(client: httpx.AsyncClient, request: DemoRequest) -> httpx.Response:
    return await repeat_on_any_error(lambda: once(client, request), ATTEMPTS, cloud_storage.policy.backoff)


async def _forbear(client: httpx.AsyncClient, request: DemoRequest) -> httpx.Response:
    try:
        return await once(client, request)
    except httpx.HTTPError as error:
        attempts = report(error)
        # The transport reports doubt about a status; an error of the transport itself is always in doubt.
        in_doubt = attempts.maybe_done if attempts is not None else isinstance(error, httpx.TransportError)
        proof = await _find(client, request, request.proof) if in_doubt and request.proof is not None else None
        if proof is None:
            raise
        return proof


async def _find(client: httpx.AsyncClient, request: DemoRequest, proof: Proof) -> httpx.Response | None:
    """Look for the write by a GET of the proof; return the response if it proves the write, else None.

    An error without a response (httpx.TransportError) propagates.
    """
    try:
        response = await once(client, DemoRequest(request.operation, "look", "GET", proof.path))
    except httpx.HTTPStatusError as error:
        return error.response if error.response.status_code == 404 and proof.holds is None else None
    document = response.json()
    holds = proof.holds is not None and all(document.get(name) == value for name, value in proof.holds.items())
    return response if holds else None


def _retrying(network: Network) -> AsyncRetryTransport:
    return AsyncRetryTransport(cloud_storage.policy.with_attempts(ATTEMPTS), transport=network)


MakeTransport: TypeAlias = Callable[[Network], httpx.AsyncBaseTransport]
SendOnce: TypeAlias = Callable[[httpx.AsyncClient, DemoRequest], Awaitable[httpx.Response]]

CONTENDERS: dict[str, tuple[MakeTransport, SendOnce]] = {
    "none": (lambda network: network, once),
    "naive": (lambda network: network, _naive),
    "forbear": (_retrying, _forbear),
}
"""The contenders by name: the function that makes the transport from a Network, and the one that sends a request."""
