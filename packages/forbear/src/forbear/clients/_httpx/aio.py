"""The async ports and transports of httpx and httpx2; the two libraries differ in their names only.

`sync.py` has the sync ones. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping
from types import TracebackType
from typing import Any, Self, cast

from forbear.clients._httpx.port import HttpxPortBase, given_up, remember, stop_repeat
from forbear.clients._httpx.transport import Req, Resp, RetryingBase, Transport
from forbear.core.report import SENT_BY_US
from forbear.exchange.http.adrive import AsyncPort, drive
from forbear.exchange.http.send import Variation


class AsyncHttpxPort(HttpxPortBase, AsyncPort[Any]):
    """The port for an async client: it sends one request, and reads and closes its responses."""

    __slots__ = ()

    def first(self) -> Awaitable[Any]:
        sending: Awaitable[Any] = self._send(self._request)
        return sending

    async def send(self, variation: Variation, limit: float | None) -> Any:
        response = await self._send(self._next(variation, limit))
        response.request = self._request  # the client does the same, but too late for `on_result`
        return response

    def chunks(self, response: Any) -> AsyncIterator[bytes]:
        return aiter(response.stream)

    async def keep(self, response: Any, content: bytes, rest: AsyncIterator[bytes] | None = None) -> None:
        stream = response.stream
        if rest is None:
            await stream.aclose()
            response.stream = self._library.ByteStream(content)
        else:
            response.stream = self._library.AsyncBegun([content], rest, stream.aclose)

    async def read_back(self, target: str, headers: Mapping[str, str], limit: float) -> Any:
        return await self._send(self._reading(target, headers, limit))

    async def close(self, response: Any) -> None:
        await response.stream.aclose()


class AsyncRetrying(RetryingBase[Transport, Req, Resp]):
    """The async transport: it sends each request as often as its policy allows."""

    _names = ("AsyncBaseTransport", "AsyncHTTPTransport")

    async def handle_async_request(self, request: Req) -> Resp:
        """Send a request as often as its policy allows; return the last response or raise the last error."""
        send = self._transport.handle_async_request
        options = self._options_for(request)
        response: Any
        if options is None:
            response = await send(request)
            return cast(Resp, response)
        if given_up.get() is not None:
            stop_repeat(self._library, request)
        port = AsyncHttpxPort(options, self._library, send, request)
        try:
            response = await drive(port)
        except Exception:
            remember(request, port.report)
            raise
        setattr(response, SENT_BY_US, True)
        report = port.report
        if report is not None:
            self._attach_report(response, report)
            remember(request, report, response)
        if port.needs_reader(response):
            self._continue(port, response)
        return cast(Resp, response)

    def _continue(self, port: AsyncHttpxPort, response: Any) -> None:
        raw, headers = response.stream, response.headers
        response.stream = self._library.AsyncResponseBody(port, response.status_code, headers, aiter(raw), raw.aclose)

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
        await self._transport.aclose()
