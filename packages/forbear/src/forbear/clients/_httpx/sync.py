"""The sync ports and transports of httpx and httpx2; the two libraries differ in their names only.

Generated from aio.py: change that file, then run `make unasync`.
"""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self, cast

from forbear.clients._httpx.port import HttpxPortBase, given_up, remember, stop_repeat
from forbear.clients._httpx.transport import Req, Resp, RetryingBase, Transport
from forbear.core.report import SENT_BY_US
from forbear.exchange.http.drive import Port, drive
from forbear.exchange.http.send import Variation


class HttpxPort(HttpxPortBase, Port[Any]):
    """The port for a sync client: it sends one request, and reads and closes its responses."""

    __slots__ = ()

    def first(self) -> Any:
        sending: Any = self._send(self._request)
        return sending

    def send(self, variation: Variation, limit: float | None) -> Any:
        response = self._send(self._next(variation, limit))
        response.request = self._request  # the client does the same, but too late for `on_result`
        return response

    def chunks(self, response: Any) -> Iterator[bytes]:
        return iter(response.stream)

    def keep(self, response: Any, content: bytes, rest: Iterator[bytes] | None = None) -> None:
        stream = response.stream
        if rest is None:
            stream.close()
            response.stream = self._library.ByteStream(content)
        else:
            response.stream = self._library.Begun([content], rest, stream.close)

    def read_back(self, target: str, headers: Mapping[str, str], limit: float) -> Any:
        return self._send(self._reading(target, headers, limit))

    def close(self, response: Any) -> None:
        response.stream.close()


class Retrying(RetryingBase[Transport, Req, Resp]):
    """The sync transport: it sends each request as often as its policy allows."""

    _names = ("BaseTransport", "HTTPTransport")

    def handle_request(self, request: Req) -> Resp:
        """Send a request as often as its policy allows; return the last response or raise the last error."""
        send = self._transport.handle_request
        options = self._options_for(request)
        response: Any
        if options is None:
            response = send(request)
            return cast(Resp, response)
        if given_up.get() is not None:
            stop_repeat(self._library, request)
        port = HttpxPort(options, self._library, send, request)
        try:
            response = drive(port)
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

    def _continue(self, port: HttpxPort, response: Any) -> None:
        raw, headers = response.stream, response.headers
        response.stream = self._library.ResponseBody(port, response.status_code, headers, iter(raw), raw.close)

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
        self._transport.close()
