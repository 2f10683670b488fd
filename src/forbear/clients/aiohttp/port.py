"""The port of aiohttp, and the meaning of its errors.

An error proves NOT_EXECUTED only if aiohttp raised it while it opened the connection of this very request.
"""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp import ClientHandlerType, ClientPayloadError, ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError
from aiohttp.payload import AsyncIterablePayload, BytesPayload
from yarl import URL

from forbear.clients.aiohttp.body import Reusable, body_of
from forbear.clients.aiohttp.response import Continued, Pieces, settled
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.adrive import AsyncReader
from forbear.exchange.http.call import HttpCall
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.responses import FirstResult
from forbear.exchange.http.send import AsyncOnce, Body, Send
from forbear.http.ranges import coding
from forbear.http.request import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES
from forbear.run.runtime import within

_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError, TimeoutError)


def verdict_of(error: Exception) -> Verdict:
    """Return the verdict on an error: NOT_EXECUTED without a connection, unknown if one broke, else permanent."""
    if isinstance(error, _UNTRUSTED) or type(error) is TimeoutError:
        return PERMANENT  # a certificate stays what it is, and the session's `total` timeout is over for good
    if isinstance(error, _UNSENT):
        return NOT_EXECUTED
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NOT_EXECUTED if error.status in TRANSIENT_STATUSES else PERMANENT
    if isinstance(error.__cause__, ContentEncodingError):
        return PERMANENT
    if isinstance(error, _LOST) or isinstance(error.__cause__, HttpProcessingError):
        return NOT_EXECUTED if _passed(error, "aiohttp.connector", "connect") else TRANSIENT
    return PERMANENT


def is_of_another_request(error: Exception) -> bool:
    """Return whether an error that a middleware sees belongs to a request that another middleware made."""
    return _passed(error, "aiohttp.client", "_request")


def _passed(error: Exception, module: str, function: str) -> bool:
    """Return whether an error was raised within a function of a module."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            return True
        trace = trace.tb_next
    return False


def is_sent_again(request: aiohttp.ClientRequest, error: Exception) -> bool:
    """Return whether aiohttp itself repeats the request after this error, as if a stale connection caused it."""
    if isinstance(error, _UNSENT) or not isinstance(error, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError):
        return False
    body = request.body
    return (request.method in READS or request.method in IDEMPOTENT) and (isinstance(body, bytes) or not body.consumed)


_IN_MEMORY = (bytes, BytesPayload)


class AiohttpPort(HttpCall):
    """The port of aiohttp: it sends one request, varies it and sends it again.

    It changes the session's own request in place.
    """

    __slots__ = ("_caller_headers", "_chunked", "_handler", "_last", "_outcome", "_replaced", "_request", "_url")

    _last: ClientResponse | None  # the last response, once a body was continued

    def __init__(
        self,
        options: HttpOptions,
        handler: ClientHandlerType,
        request: ClientRequest,
        start: Start,
        outcome: FirstResult[ClientResponse] | None,
    ) -> None:
        self._outcome = outcome  # the result of the first attempt, if it was made already
        self._handler = handler
        self._request = request
        super().__init__(options, request.method, plain=isinstance(request.body, _IN_MEMORY), start=start)
        self.is_plain = self.is_plain or outcome is not None

    def _target(self) -> tuple[str, str]:
        url = self._request.url
        return url.raw_host or "", url.raw_path_qs

    def _scheme_and_port(self) -> tuple[str, int | None]:
        return self._request.url.scheme, self._request.url.port

    def _headers(self) -> Mapping[Any, Any]:
        self._caller_headers = headers = self._request.headers.copy()
        return headers

    def _read_body(self) -> Body:
        self._url = self._request.url
        self._chunked = self._request.chunked
        self._replaced = False
        return body_of(self._request.body, self._options.buffer)

    async def first(self) -> ClientResponse:
        """Send the caller's request unchanged, or return the result if it was sent already."""
        return await self._handler(self._request) if self._outcome is None else self._outcome.taken()

    async def send(self, send: Send, limit: float | None) -> ClientResponse:
        """Send a variation of the request; `limit` (seconds) applies until its response begins."""
        await self._vary(send)
        if limit is None:
            self._last = await self._handler(self._request)
        else:
            async with within(limit):
                self._last = await self._handler(self._request)
        return self._last

    def continued(self, response: ClientResponse) -> None:
        """Give a response a body that is continued where it breaks; the body must not refer to the response."""
        self._last = None
        first = Pieces(response)
        hang_up = partial(_hang_up, response.connection)
        reader = AsyncReader(self, response.status, self.headers(response), first, hang_up)
        response.content = Continued(first, reader, self._leave)

    def _leave(self) -> None:
        """Close the last response that continued a body."""
        if self._last is not None:
            self._last.close()

    def status(self, response: ClientResponse) -> int:
        """Return the status of a response."""
        return response.status

    def headers(self, response: ClientResponse) -> Mapping[str, str]:
        """Return the headers of a response; names are found in any case.

        If aiohttp decodes the body, the headers about ranges and length are left out.
        """
        original = response.headers
        waits = original.getall("retry-after", [])
        is_coded = bool(coding(original))
        if not is_coded and len(waits) < 2:
            return original
        headers = {name.lower(): value for name, value in original.items()}
        if is_coded:
            headers["accept-ranges"] = "none"
            headers.pop("content-length", None)
        if waits:
            headers["retry-after"] = ", ".join(waits)  # other clients join repeated headers like this
        return headers

    def chunks(self, response: ClientResponse) -> AsyncIterator[bytes]:
        """Return the body of a response as it arrives."""
        return Pieces(response)

    async def settle(self, response: ClientResponse) -> None:
        """Read the whole body of a response into memory."""
        await settled(response)

    async def close(self, response: ClientResponse) -> None:
        """Close a response at once."""
        response.close()

    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict on one of the client's errors; a closed session makes every error permanent."""
        if self._request.session.closed:
            return PERMANENT
        verdict = verdict_of(error)
        if verdict.kind is Kind.NOT_EXECUTED and is_of_another_request(error):
            return TRANSIENT  # an inner middleware may have sent this one before
        return verdict

    def broken(self, text: str) -> Exception:
        """Return the client's own error for a body of the wrong length."""
        return ClientPayloadError(text)

    async def _vary(self, send: Send) -> None:
        """Change the request into the one to send. If the body is whole, headers and framing are the caller's."""
        request, body = self._request, self._body
        if isinstance(body, AsyncOnce):
            await request.update_body(None if send.skip is None else AsyncIterablePayload(body.achunks(send.skip)))
        elif send.skip != 0 or self._replaced:
            content = await body.content() if isinstance(body, Reusable) else body.content
            await request.update_body(None if send.skip is None else content[send.skip :])
            self._replaced = True
        elif isinstance(body, Reusable):
            request._body = body.in_turn
        headers = self._caller_headers.copy()
        self._adjust(headers, send)
        request.headers = headers
        request.chunked = self._chunked if send.skip == 0 else None
        if request._continue is not None:  # the previous attempt's was answered, or cancelled with that attempt
            request._continue = None
            request.update_expect_continue()
        request.url = self._url
        if send.query:
            sign = "&" if self._url.raw_query_string else "?"
            request.url = URL(f"{self._url}{sign}{send.query}", encoded=True)


async def _hang_up(connection: Connection | None) -> None:
    """Close the connection of a response, but leave the response open, because the caller continues to read it."""
    if connection is not None:
        connection.close()
