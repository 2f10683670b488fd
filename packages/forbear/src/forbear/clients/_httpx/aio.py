"""The async ports and transports of httpx and httpx2; the two libraries differ in their names only.

`sync.py` has the sync ones. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from forbear.clients._httpx.numbered import given_up, remember, stop_repeat
from forbear.clients._httpx.port import HttpxPortBase
from forbear.clients._httpx.transport import Req, Resp, RetryingBase, Transport
from forbear.exchange.http.adrive import drive
from forbear.exchange.http.responses import SHOWN
from forbear.exchange.http.send import Send


class AsyncHttpxPort(HttpxPortBase):
    """The port for an async client: it sends one request, and reads and closes its responses."""

    __slots__ = ()

    awaits = True

    async def first(self) -> Any:
        """Send the caller's request unchanged and return the response."""
        return await self._send(self._request)

    async def send(self, send: Send, limit: float | None) -> Any:
        """Send the request as `send` describes it, with timeouts of at most `limit` seconds (None: unchanged).

        Returns the response; its `request` is the caller's own.
        """
        response = await self._send(self._next(send, limit))
        response.request = self._request  # the client does the same, but too late for `on_result`
        return response

    def chunks(self, response: Any) -> AsyncIterator[bytes]:
        """Return an async iterator over the body of a response as it arrives, not decoded."""
        return aiter(response.stream)

    async def shown(self, response: Any) -> Any:
        """Return a copy of a response for `on_result`, its body read; the response if that is longer than SHOWN."""
        stream, head, size = response.stream, list[bytes](), 0
        chunks = aiter(stream)
        try:
            async for chunk in chunks:
                head.append(chunk)
                size += len(chunk)
                if size > SHOWN:
                    response.stream = self._library.AsyncBegun([b"".join(head)], chunks, stream.aclose)
                    return response
        finally:
            if response.stream is stream:
                await stream.aclose()
        content = b"".join(head)
        response.stream = self._library.ByteStream(content)
        return self._copy(response, content)

    async def settle(self, response: Any) -> None:
        """Read the whole body of a response into memory and close its stream; from then on its stream is in memory."""
        try:
            content = b"".join([chunk async for chunk in response.stream])
        finally:
            await response.stream.aclose()
        response.stream = self._library.ByteStream(content)

    async def close(self, response: Any) -> None:
        """Close a response at once, without reading the rest of its body."""
        await response.stream.aclose()


class AsyncRetrying(RetryingBase[Transport, Req, Resp]):
    """The async transport: it sends each request as often as its policy allows."""

    _names = ("AsyncBaseTransport", "AsyncHTTPTransport")

    async def handle_async_request(self, request: Req) -> Resp:
        """Send a request as often as its policy allows; return the last response or raise the last error."""
        response: Resp = await self._handle(request)
        return response

    async def _handle(self, request: Any) -> Any:
        send = self._transport.handle_async_request
        options = self._options_for(request)
        if options is None:
            return await send(request)
        if given_up.get() is not None:
            stop_repeat(self._library, request)
        port = AsyncHttpxPort(options, self._library, send, request)
        try:
            response = await drive(port)
        except Exception:
            remember(request, port.report)
            raise
        report = port.report
        if report is not None:
            self._attach_report(response, report)
            remember(request, report, response)
        return self._readable(port, response) if port.needs_reader(response) else response

    def _readable(self, port: AsyncHttpxPort, response: Any) -> Any:
        """Replace the stream of `response` by a reader, and return `response`.

        The reader continues a GET body that breaks in further responses. Where that is impossible, the error gets a
        report.
        """
        raw, headers = response.stream, response.headers
        response.stream = self._library.AsyncResponseBody(port, response.status_code, headers, aiter(raw), raw.aclose)
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
        """Close the wrapped transport."""
        await self._transport.aclose()
