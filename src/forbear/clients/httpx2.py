"""Retries inside httpx2, as a transport for its clients. The rules live in forbear.exchange; this only wires them."""

from types import TracebackType
from typing import Self

try:
    import httpx2
except ImportError as error:
    raise ImportError('forbear.clients.httpx2 needs httpx2; install it with: pip install "forbear[httpx2]"') from error

from forbear.clients._httpx import transport as httpx_shape
from forbear.clients._httpx.errors import HttpxLibrary
from forbear.exchange.http.options import BUFFER, HttpOptions
from forbear.policy import Policy

_LIBRARY = HttpxLibrary(httpx2)


class RetryTransport(httpx2.BaseTransport):
    """Retries what may be repeated: `httpx2.Client(transport=RetryTransport())`.

    Without a `policy`, known hosts have the recommended policy of their service and others that of RFC 9110. A
    service's policy, such as `cloud_storage.policy`, holds for every host, emulators included. Any other policy brings
    its limits, backoff and `on`, and known hosts keep their tables. One request's own: `client.get(url,
    extensions={"forbear": policy})`, None to send it once. `transport` does the sending, by default a plain
    `httpx2.HTTPTransport()`; a client that is given a transport does not apply its own `verify`, `http2`, `limits` and
    proxies, so set them there. `idempotency_header` names a header by which the API drops duplicates, such as
    "Idempotency-Key", which makes every operation repeatable, except at services that are known not to read it. Of a
    body that can be read only once, `buffer` bytes (8 MiB) are kept for a repeat.

    The policy's `attempt_timeout` (seconds) becomes the client's own timeouts: it bounds each wait for the network, not
    a reply that keeps trickling in. The last reply comes out as httpx2 gives it, with the report in
    `response.extensions["forbear_report"]` (`forbear.report(response)`) where forbear gave up. A GET body that breaks
    halfway is continued where that is safe. A short reply to a write that breaks (at most 64 KiB) counts as lost: the
    write is repeated if it always may be. Otherwise the note and the report (`maybe_done`) tell that it had succeeded,
    as they do where a longer reply breaks.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        transport: httpx2.BaseTransport | None = None,
        idempotency_header: str | None = None,
        buffer: int = BUFFER,
    ) -> None:
        self._settings = HttpOptions(policy, idempotency_header, buffer)
        if transport is not None and not isinstance(transport, httpx2.BaseTransport):
            raise TypeError(f"`transport` must be an httpx2.BaseTransport or None (a plain one), got {transport!r}")
        self._transport = httpx2.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request as often as its policy allows and return the reply."""
        response: httpx2.Response = httpx_shape.handle(
            self._settings, _LIBRARY, self._transport.handle_request, request
        )
        return response

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._transport.__exit__(exc_type, exc_value, traceback)

    def close(self) -> None:
        """Close the transport that does the sending."""
        self._transport.close()


class AsyncRetryTransport(httpx2.AsyncBaseTransport):
    """The same for async clients: `httpx2.AsyncClient(transport=AsyncRetryTransport())`, on asyncio and trio."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        idempotency_header: str | None = None,
        buffer: int = BUFFER,
    ) -> None:
        self._settings = HttpOptions(policy, idempotency_header, buffer)
        if transport is not None and not isinstance(transport, httpx2.AsyncBaseTransport):
            raise TypeError(
                f"`transport` must be an httpx2.AsyncBaseTransport or None (a plain one), got {transport!r}"
            )
        self._transport = httpx2.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request as often as its policy allows and return the reply."""
        response: httpx2.Response = await httpx_shape.ahandle(
            self._settings, _LIBRARY, self._transport.handle_async_request, request
        )
        return response

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close the transport that does the sending."""
        await self._transport.aclose()
