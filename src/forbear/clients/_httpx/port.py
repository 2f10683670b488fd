"""How one request is sent, varied and sent again by httpx or httpx2, sync and async. It imports neither."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from forbear.clients._httpx.errors import HttpxLibrary
from forbear.core.report import Report
from forbear.core.verdict import Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.body import AsyncOnce, Body, Fixed, Rendered, streamed
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.options import HttpOptions, is_marked, open_exchange
from forbear.exchange.http.responses import FirstResult, is_read_at_once, needs_reader
from forbear.exchange.http.send import WHOLE_BODY, Send
from forbear.http.bodies import position
from forbear.http.method import READS
from forbear.http.request import Request


class _Port:
    """One request and how it is varied; what the sync and the async port share."""

    __slots__ = ("is_plain", "outcome", "start", "_body", "_exchange", "_library", "_request", "_send", "_settings",
                 "_stream", "_token", "_url")  # fmt: skip

    _is_async = False

    def __init__(self, settings: HttpOptions, library: HttpxLibrary, send: Any, request: Any) -> None:
        self.start = Start()
        self._settings = settings
        self._library = library
        self._send = send
        self._request = request
        self._url = request.url  # as the caller has it: a transport may rewrite that of the request while it sends
        self._exchange: Exchange | None = None
        self.outcome: FirstResult[Any] | None = None  # of the first attempt, where that has been made already
        plain = type(request.stream) is library.ByteStream and settings.is_plain
        self.is_plain = plain and (request.method in READS or not is_marked(settings, request.method, self._target))

    @property
    def exchange(self) -> Exchange:
        """The state of the request; made when first asked for, for most requests never fail."""
        if self._exchange is None:
            self._exchange = self._begin()
        return self._exchange

    @property
    def report(self) -> Report | None:
        """The report, once the exchange was given up."""
        return None if self._exchange is None else self._exchange.report

    def status(self, response: Any) -> int:
        """The status of a response."""
        status: int = response.status_code
        return status

    def headers(self, response: Any) -> Mapping[str, str]:
        """The headers of a response, by names of any case."""
        headers: Mapping[str, str] = response.headers
        return headers

    def is_read_at_once(self, response: Any) -> bool:
        """Whether the body of a response is to be read before anything else is decided."""
        return is_read_at_once(self._request.method, response.status_code, response.headers)

    def needs_reader(self, response: Any) -> bool:
        """Whether the body of a response that is handed out must come through a Reader."""
        given_up = self.report is not None
        return needs_reader(self._request.method, response.status_code, response.headers, given_up=given_up)

    def verdict(self, error: Exception) -> Verdict:
        """What an error of the client means."""
        return self._library.verdict(error)

    def broken(self, text: str) -> Exception:
        """The client's own error for a body that is not as long as it should be."""
        error: Exception = self._library.broken(text)
        return error

    def _target(self) -> tuple[str, str]:
        """The host of the request, and its path and query as they go over the wire."""
        raw: bytes = self._request.extensions.get("target") or self._url.raw_path
        return self._url.host, raw.decode("latin-1")

    def _begin(self) -> Exchange:
        request, settings = self._request, self._settings
        where = self._target()
        bodied = _abodied if self._is_async else _bodied
        self._body, self._stream = bodied(self._library, request, settings.buffer)
        content = self._body.content if isinstance(self._body, Fixed) else None
        describe = partial(_described, request, *where, content)
        exchange, self._token = open_exchange(
            settings, self.start, request.method, where, request.headers, self._body, describe
        )
        return exchange

    def _next(self, send: Send, limit: float | None) -> Any:
        """The request to send: a variation, or the caller's own where nothing is varied."""
        request, body = self._request, self._body
        if send.is_original and self._token is None and limit is None and not body.once:
            return request
        stream, url, extensions = request.stream, self._url, request.extensions
        if send.skip is None:
            stream = self._library.ByteStream(b"")
        elif send.skip or body.once:
            stream = self._stream(send.skip)
        if send.query:
            url = url.copy_with(query=b"&".join(filter(None, (url.query, send.query.encode("ascii")))))
        if limit is not None:
            own = extensions.get("timeout", {})
            bounds = {kind: _least(own.get(kind), limit) for kind in ("connect", "read", "write", "pool")}
            extensions = {**extensions, "timeout": bounds}
        varied = self._library.Request(
            request.method, url, headers=request.headers, stream=stream, extensions=extensions
        )
        if self._token is not None:
            varied.headers[self._token[0]] = self._token[1]
        if send.skip != 0:
            for name in WHOLE_BODY:
                varied.headers.pop(name, None)
        if send.headers:
            varied.headers.update(send.headers)
        return varied


class HttpxPort(_Port):
    """How one request is sent by a sync client."""

    __slots__ = ()

    def first(self) -> Any:
        """Send the caller's request as it is, unless that has been done."""
        return self._send(self._request) if self.outcome is None else self.outcome.taken()

    def send(self, send: Send, limit: float | None) -> Any:
        """Send a variation of the request, or the request itself where nothing is varied."""
        response = self._send(self._next(send, limit))
        response.request = self._request  # as the client does, but in time for `on_result`
        return response

    def chunks(self, response: Any) -> Iterator[bytes]:
        """The body of a response as it comes over the wire."""
        return iter(response.stream)

    def settle(self, response: Any) -> None:
        """Read the whole body of a response."""
        try:
            content = b"".join(response.stream)
        finally:
            response.stream.close()
        response.stream = self._library.ByteStream(content)

    def close(self, response: Any) -> None:
        """Close a response at once."""
        response.stream.close()


class AsyncHttpxPort(_Port):
    """How one request is sent by an async client."""

    __slots__ = ()

    _is_async = True

    async def first(self) -> Any:
        """Send the caller's request as it is, unless that has been done."""
        return await self._send(self._request) if self.outcome is None else self.outcome.taken()

    async def send(self, send: Send, limit: float | None) -> Any:
        """Send a variation of the request, or the request itself where nothing is varied."""
        response = await self._send(self._next(send, limit))
        response.request = self._request  # as the client does, but in time for `on_result`
        return response

    def chunks(self, response: Any) -> AsyncIterator[bytes]:
        """The body of a response as it comes over the wire."""
        return aiter(response.stream)

    async def settle(self, response: Any) -> None:
        """Read the whole body of a response."""
        try:
            content = b"".join([chunk async for chunk in response.stream])
        finally:
            await response.stream.aclose()
        response.stream = self._library.ByteStream(content)

    async def close(self, response: Any) -> None:
        """Close a response at once."""
        await response.stream.aclose()


def _bodied(library: HttpxLibrary, request: Any, limit: int) -> tuple[Body, Callable[[int], Any]]:
    stream = request.stream
    if isinstance(stream, library.ByteStream):
        fixed = Fixed(b"".join(stream))
        return fixed, partial(library.RequestBody, fixed.chunks)
    form = _form(library, stream)
    if form is not None:
        return form, partial(library.RequestBody, form.chunks)
    file: object = getattr(stream, "_stream", None) if type(stream) is library.Iterated else None
    body = streamed(stream, file, limit)
    return body, partial(library.RequestBody, body.chunks)


def _abodied(library: HttpxLibrary, request: Any, limit: int) -> tuple[Body, Callable[[int], Any]]:
    stream = request.stream
    if isinstance(stream, library.ByteStream):
        body: Fixed | Rendered | AsyncOnce = Fixed(b"".join(stream))
    else:
        body = _form(library, stream) or AsyncOnce(stream, limit)
    return body, partial(library.AsyncRequestBody, body.achunks)


def _form(library: HttpxLibrary, stream: Any) -> Rendered | None:
    """The form that a stream renders, None for other streams and for forms with a file that cannot be rewound."""
    if type(stream) is not library.Form:
        return None
    contents = [getattr(field, "file", b"") for field in stream.fields]
    files = [content for content in contents if not isinstance(content, str | bytes)]
    return Rendered(stream, files) if all(position(file) is not None for file in files) else None


def _described(request: Any, host: str, target: str, content: bytes | None) -> Request:
    return Request(request.method, host, target, dict(request.headers.items()), content)


def _least(own: float | None, limit: float) -> float:
    return limit if own is None else min(own, limit)
