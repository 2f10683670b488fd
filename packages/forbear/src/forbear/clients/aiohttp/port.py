"""The port of aiohttp, and the meaning of its errors.

An error proves NOT_EXECUTED only if aiohttp raised it while it opened the connection of this very request.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from copy import copy
from functools import partial
from typing import Any
from weakref import ref

import aiohttp
from aiohttp import ClientHandlerType, ClientPayloadError, ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError
from aiohttp.payload import AsyncIterablePayload, BytesPayload
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from forbear.clients.aiohttp.body import Reusable, body_of
from forbear.clients.aiohttp.response import Continued, Pieces, keep, set_headers
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.http.adrive import AsyncPort
from forbear.exchange.http.areader import AsyncReader
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.send import ORIGINAL, Body, Variation
from forbear.exchange.interrupt import has_frame
from forbear.http.bodies import AsyncOnce
from forbear.http.ranges import coding
from forbear.http.request import join_headers
from forbear.http.status import TRANSIENT_STATUSES, reason, verdict_of_refusal
from forbear.run.runtime import within

_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError, TimeoutError)


def verdict_of(error: Exception) -> Verdict:
    """Return the verdict on an error, by its class, its cause and the function that raised it.

    NOT_EXECUTED: no connection was opened, or a proxy refused the tunnel for a passing reason. TRANSIENT
    (outcome unknown): the connection or the body broke, or the response cannot be parsed. PERMANENT: an untrusted
    certificate, the end of the session's `total` timeout, a body that cannot be decoded, and every other error.
    """
    if isinstance(error, _UNTRUSTED) or type(error) is TimeoutError:
        return PERMANENT  # a certificate stays what it is, and the session's `total` timeout is over for good
    if isinstance(error, _UNSENT):
        return NOT_EXECUTED
    if has_frame(error, "_wrap_create_connection", "aiohttp_socks.connector"):
        return _verdict_of_socks(error)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NOT_EXECUTED if error.status in TRANSIENT_STATUSES else PERMANENT
    if isinstance(error.__cause__, ContentEncodingError):
        return PERMANENT
    if isinstance(error, _LOST) or isinstance(error.__cause__, HttpProcessingError):
        return NOT_EXECUTED if has_frame(error, "connect", "aiohttp.connector") else TRANSIENT
    return PERMANENT


def _verdict_of_socks(error: Exception) -> Verdict:
    if isinstance(error, ssl.SSLCertVerificationError):
        return PERMANENT
    if isinstance(error, OSError | EOFError):  # the proxy cannot be reached, or hung up
        return NOT_EXECUTED
    is_of_proxy = type(error).__module__.startswith("aiohttp_socks")
    return verdict_of_refusal(str(error)) if is_of_proxy else PERMANENT


_IN_MEMORY = (bytes, BytesPayload)


class AiohttpPort(AsyncPort[ClientResponse]):
    """The port of aiohttp: the object by which forbear's retry loop sends one request, varied or not.

    It changes the session's own request in place.
    """

    __slots__ = ("_caller_headers", "_chunked", "_handler", "_last", "_replaced", "_request", "_seen",
                 "_url")  # fmt: skip

    can_read_back = True

    _last: ClientResponse | None  # the last response, once a body was continued

    def __init__(self, options: HttpOptions, handler: ClientHandlerType, request: ClientRequest) -> None:
        self._handler = handler
        self._request = request
        super().__init__(options, request.method, plain=isinstance(request.body, _IN_MEMORY))

    def _mark(self) -> object:
        return self._request.url

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

    def first(self) -> Awaitable[ClientResponse]:
        return self._handler(self._request)

    async def send(self, variation: Variation, limit: float | None) -> ClientResponse:
        await self._vary(variation)
        if limit is None:
            self._last = await self._handler(self._request)
        else:
            async with within(limit):
                self._last = await self._handler(self._request)
        return self._last

    def continue_body(self, response: ClientResponse) -> None:
        """Replace `response.content` by a stream that continues the body in further responses where it breaks.

        Only the body of a GET is continued. If that is impossible, the error gets a report. The stream must not refer
        to the response.
        """
        self._last = None
        self._seen = ref(response)
        first = Pieces(response)
        hang_up = partial(_hang_up, response.connection)
        reader = AsyncReader(self, response.status, self.headers(response), first, hang_up)
        response.content = Continued(first, reader, self._leave)

    def _leave(self) -> None:
        if self._last is not None:
            self._last.close()

    def status(self, response: ClientResponse) -> int:
        return response.status

    def headers(self, response: ClientResponse) -> Mapping[str, str]:
        """Return the headers of a response, or a copy with lower-case names if they must be changed.

        If the body is compressed, which aiohttp decodes, `accept-ranges` becomes "none" and `content-length` is left
        out. Repeated headers of errors are joined by commas, and so are those of a response with Retry-After.
        """
        original = response.headers
        is_coded = bool(coding(original))
        if not is_coded and response.status < 400 and "retry-after" not in original:
            return original
        headers = join_headers(original)  # as other clients do
        if is_coded:
            headers["accept-ranges"] = "none"
            headers.pop("content-length", None)
        return headers

    def adopt(self, seen: Mapping[str, str], response: ClientResponse) -> None:
        caller = self._seen()
        if caller is not None:
            set_headers(caller, response.headers, response.raw_headers)

    def chunks(self, response: ClientResponse) -> AsyncIterator[bytes]:
        return Pieces(response)

    async def keep(self, response: ClientResponse, content: bytes, rest: AsyncIterator[bytes] | None = None) -> None:
        keep(response, content, is_all=rest is None)

    def copy(self, response: ClientResponse, content: bytes) -> ClientResponse:
        seen = copy(response)
        keep(seen, content)
        return seen

    async def read_copy(self, response: ClientResponse) -> ClientResponse:
        try:
            return await super().read_copy(response)
        except ClientPayloadError as error:
            if isinstance(error.__cause__, ContentEncodingError):
                return response  # whoever reads it learns that it cannot be decoded
            raise

    def read_content(self, shown: ClientResponse) -> bytes:
        return shown.content.read_nowait()

    async def read_back(self, target: str, headers: Mapping[str, str], limit: float) -> ClientResponse:
        """Send the session's own request as a GET of another target, and make it what it was: others may repeat it."""
        request, method = self._request, self._request.method
        await request.update_body(None)
        request.headers, request.chunked, self._replaced = CIMultiDict(headers), None, True
        request.url = self._url.origin().join(URL(target, encoded=True))
        request.method = "GET"
        try:
            async with within(limit):
                return await self._handler(request)
        finally:
            request.method = method
            await self._vary(ORIGINAL)

    def answer(self, response: ClientResponse, status: int, headers: Mapping[str, str], content: bytes) -> None:
        response.status, response.reason = status, reason(status).partition(" ")[2]
        raw = tuple((name.encode(), value.encode()) for name, value in headers.items())
        set_headers(response, CIMultiDictProxy(CIMultiDict(headers)), raw)
        keep(response, content)

    async def close(self, response: ClientResponse) -> None:
        response.close()

    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict of `verdict_of` on an error, but PERMANENT if the session is closed.

        TRANSIENT replaces NOT_EXECUTED if another request failed that an inner middleware made.
        """
        if self._request.session.closed:
            return PERMANENT
        verdict = verdict_of(error)
        if verdict.kind is Kind.NOT_EXECUTED and has_frame(error, "_request", "aiohttp.client"):
            return TRANSIENT  # an inner middleware may have sent this one before
        return verdict

    def broken(self, text: str) -> Exception:
        return ClientPayloadError(text)

    async def _vary(self, variation: Variation) -> None:
        """Change the session's request in place into the one that `variation` describes: body, headers and query.

        The headers are the caller's, changed by `variation`, with the token if there is one. The whole body is framed
        (chunked or not) as the caller's was; a part of it gets new framing.
        """
        request, body = self._request, self._body
        if isinstance(body, AsyncOnce):
            await request.update_body(
                None if variation.skip is None else AsyncIterablePayload(body.achunks(variation.skip))
            )
        elif variation.skip != 0 or self._replaced:
            content = await body.content() if isinstance(body, Reusable) else body.content
            await request.update_body(None if variation.skip is None else content[variation.skip :])
            self._replaced = True
        elif isinstance(body, Reusable):
            request._body = body.in_turn
        headers = self._caller_headers.copy()
        self._adjust(headers, variation)
        request.headers = headers
        request.chunked = self._chunked if variation.skip == 0 else None
        if request._continue is not None:  # the previous attempt's was answered, or cancelled with that attempt
            request._continue = None
            request.update_expect_continue()
        request.url = self._url
        if variation.query:
            sign = "&" if self._url.raw_query_string else "?"
            request.url = URL(f"{self._url}{sign}{variation.query}", encoded=True)


async def _hang_up(connection: Connection | None) -> None:
    """Close a connection but not its response, because the caller continues to read that; None does nothing."""
    if connection is not None:
        connection.close()
