"""What httpx and httpx2 have in common: how a request of theirs is described, varied and sent. It imports neither."""

from forbear.core.report import EXTENSION
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.exchange import adrive, drive
from forbear.exchange.body import AsyncOnce, Fixed, Once, Seekable, body
from forbear.exchange.download import Download
from forbear.exchange.exchange import Exchange
from forbear.exchange.settings import Settings, new_token
from forbear.http.request import Request
from forbear.http.status import TRANSIENT_STATUSES
from forbear.run.switch import is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
    from typing import Any

    from forbear.exchange.send import Send

OVERRIDE = "forbear"
"""The request extension that sets the policy of one request, None to send it once."""

_DRAINED = 64 * 1024
"""A failed reply of at most so many bytes is read, which keeps its connection; a larger one is closed with it."""

_REFUSED_STREAM = 7
"""The HTTP/2 error code by which a server says that it has not looked at a request."""


class Library:
    """The names of one client library that an adapter needs, and its kinds of stream."""

    def __init__(self, module: "Any") -> None:
        self.Request = module.Request
        self.ByteStream = module.ByteStream
        self.unsent = (module.ConnectError, module.ConnectTimeout, module.PoolTimeout)
        self.lost = (
            module.TimeoutException,
            module.NetworkError,
            module.RemoteProtocolError,
            ConnectionError,
            TimeoutError,
        )
        self.proxy = module.ProxyError
        self.RequestBody = type("RequestBody", (_RequestBody, module.SyncByteStream), {})
        self.ReplyBody = type("ReplyBody", (_ReplyBody, module.SyncByteStream), {})
        self.AsyncRequestBody = type("AsyncRequestBody", (_AsyncRequestBody, module.AsyncByteStream), {})
        self.AsyncReplyBody = type("AsyncReplyBody", (_AsyncReplyBody, module.AsyncByteStream), {})

    def verdict(self, error: Exception) -> Verdict:
        """What an error of the library means: no connection is no execution, a connection that broke tells nothing."""
        if isinstance(error, self.unsent):
            return PERMANENT if _is_untrusted(error) else NOT_EXECUTED
        if isinstance(error, self.proxy):  # its text begins with the status of the proxy
            status = str(error)[:3]
            return NOT_EXECUTED if status.isdecimal() and int(status) in TRANSIENT_STATUSES else PERMANENT
        if isinstance(error, self.lost):
            return NOT_EXECUTED if _is_refused_stream(error) else TRANSIENT
        return PERMANENT


def handle(settings: Settings, library: Library, send: "Callable[[Any], Any]", request: "Any") -> "Any":
    """Send a request through `send` as often as its policy allows, and return the reply."""
    chosen = _chosen(settings, request)
    if chosen is None:
        return send(request)
    port = _Port(chosen, library, send, request)
    exchange = port.exchange
    response = drive.drive(exchange, port)
    if exchange.report is not None:
        response.extensions[EXTENSION] = exchange.report
    if request.method == "GET" and response.status_code in (200, 206):
        raw = response.stream
        download = Download(exchange, response.status_code, response.headers)
        response.stream = library.ReplyBody(drive.read(download, exchange, port, iter(raw)), raw)
    return response


async def ahandle(
    settings: Settings, library: Library, send: "Callable[[Any], Awaitable[Any]]", request: "Any"
) -> "Any":
    """Send a request through `send` as often as its policy allows, and return the reply."""
    chosen = _chosen(settings, request)
    if chosen is None:
        return await send(request)
    port = _AsyncPort(chosen, library, send, request)
    exchange = port.exchange
    response = await adrive.drive(exchange, port)
    if exchange.report is not None:
        response.extensions[EXTENSION] = exchange.report
    if request.method == "GET" and response.status_code in (200, 206):
        raw = response.stream
        download = Download(exchange, response.status_code, response.headers)
        response.stream = library.AsyncReplyBody(adrive.read(download, exchange, port, aiter(raw)), raw)
    return response


class _Variation:
    """One request and how it is varied; what the sync and the async port share."""

    __slots__ = ("exchange", "_library", "_send", "_request", "_content", "_token")

    def __init__(
        self,
        settings: Settings,
        library: Library,
        send: "Callable[[Any], Any]",
        request: "Any",
        body: "Fixed | Seekable | Once | AsyncOnce",
    ) -> None:
        url = request.url
        policy, service = settings.resolve(url.host, url.raw_path.decode("ascii"))
        header = settings.token_header(service, request.method)
        self._library = library
        self._send = send
        self._request = request
        self._content = body.content if isinstance(body, Fixed) else None
        self._token = None if header is None or header in request.headers else (header, new_token())
        keyed = header is not None and header == settings.idempotency_header
        self.exchange = Exchange(policy, service, self._describe, body, keyed=keyed)

    def _describe(self) -> Request:
        request = self._request
        target = request.url.raw_path.decode("ascii")
        return Request(request.method, request.url.host, target, dict(request.headers.items()), self._content)

    def _varied(self, send: "Send", limit: float | None, stream: "Any") -> "Any":
        request = self._request
        headers = request.headers.copy()
        if self._token is not None:
            headers[self._token[0]] = self._token[1]
        if send.skip != 0 and "transfer-encoding" in headers:
            del headers["transfer-encoding"]  # what is sent now has a known length
        headers.update(send.headers)
        url = request.url
        if send.query:
            url = url.copy_with(query=b"&".join(filter(None, (url.query, send.query.encode("ascii")))))
        extensions = request.extensions
        if limit is not None:
            own = extensions.get("timeout", {})
            bounds = {kind: _least(own.get(kind), limit) for kind in ("connect", "read", "write", "pool")}
            extensions = {**extensions, "timeout": bounds}
        return self._library.Request(request.method, url, headers=headers, stream=stream, extensions=extensions)

    def status(self, response: "Any") -> int:
        """The status of a response."""
        status: int = response.status_code
        return status

    def headers(self, response: "Any") -> "Mapping[str, str]":
        """The headers of a response, by names of any case."""
        headers: Mapping[str, str] = response.headers
        return headers

    def verdict(self, error: Exception) -> Verdict:
        """What an error of the client means."""
        return self._library.verdict(error)


class _Port(_Variation):
    """How one request is sent by a sync client."""

    __slots__ = ("_own",)

    def __init__(self, settings: Settings, library: Library, send: "Callable[[Any], Any]", request: "Any") -> None:
        stream = request.stream
        if isinstance(stream, library.ByteStream):
            own: Fixed | Seekable | Once = Fixed(b"".join(stream))
        else:
            own = body(stream, getattr(stream, "_stream", None), settings.buffer)
        self._own = own
        super().__init__(settings, library, send, request, own)

    def send(self, send: "Send", limit: float | None) -> "Any":
        """Send a variation of the request, or the request itself where nothing is varied."""
        if send.is_original and self._token is None and limit is None and not self._own.once:
            return self._send(self._request)
        stream = self._request.stream
        if send.skip is None:
            stream = self._library.ByteStream(b"")
        elif send.skip or self._own.once:
            stream = self._library.RequestBody(self._own.chunks(send.skip))
        return self._send(self._varied(send, limit, stream))

    def chunks(self, response: "Any") -> "Iterator[bytes]":
        """The body of a response as it comes over the wire."""
        return iter(response.stream)

    def discard(self, response: "Any") -> None:
        """Close a response that nobody will read."""
        try:
            if _is_short(response.headers):
                for _ in response.stream:
                    pass
        except Exception:
            return  # it was the failed reply of a failed attempt anyway
        finally:
            response.stream.close()


class _AsyncPort(_Variation):
    """How one request is sent by an async client."""

    __slots__ = ("_own",)

    def __init__(
        self, settings: Settings, library: Library, send: "Callable[[Any], Awaitable[Any]]", request: "Any"
    ) -> None:
        stream = request.stream
        if isinstance(stream, library.ByteStream):
            own: Fixed | AsyncOnce = Fixed(b"".join(stream))
        else:
            own = AsyncOnce(stream, settings.buffer)
        self._own = own
        super().__init__(settings, library, send, request, own)

    async def send(self, send: "Send", limit: float | None) -> "Any":
        """Send a variation of the request, or the request itself where nothing is varied."""
        if send.is_original and self._token is None and limit is None and not self._own.once:
            return await self._send(self._request)
        stream = self._request.stream
        if send.skip is None:
            stream = self._library.ByteStream(b"")
        elif send.skip or self._own.once:
            stream = self._library.AsyncRequestBody(self._own.achunks(send.skip))
        return await self._send(self._varied(send, limit, stream))

    def chunks(self, response: "Any") -> "AsyncIterator[bytes]":
        """The body of a response as it comes over the wire."""
        return aiter(response.stream)

    async def discard(self, response: "Any") -> None:
        """Close a response that nobody will read."""
        try:
            if _is_short(response.headers):
                async for _ in response.stream:
                    pass
        except Exception:
            return  # it was the failed reply of a failed attempt anyway
        finally:
            await response.stream.aclose()


class _RequestBody:
    """The stream of a request that is sent again."""

    def __init__(self, chunks: "Iterator[bytes]") -> None:
        self._chunks = chunks

    def __iter__(self) -> "Iterator[bytes]":
        return self._chunks


class _AsyncRequestBody:
    """The stream of a request that is sent again."""

    def __init__(self, chunks: "AsyncIterator[bytes]") -> None:
        self._chunks = chunks

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return self._chunks


class _ReplyBody:
    """The stream of a reply that goes on where it breaks; `raw` is the first reply's own."""

    def __init__(self, chunks: "Generator[bytes]", raw: "Any") -> None:
        self._chunks = chunks
        self._raw = raw

    def __iter__(self) -> "Iterator[bytes]":
        return self._chunks

    def close(self) -> None:
        self._chunks.close()
        self._raw.close()


class _AsyncReplyBody:
    """The stream of a reply that goes on where it breaks; `raw` is the first reply's own."""

    def __init__(self, chunks: "AsyncGenerator[bytes]", raw: "Any") -> None:
        self._chunks = chunks
        self._raw = raw

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._raw.aclose()


def _chosen(settings: Settings, request: "Any") -> Settings | None:
    """The settings for one request, None to send it once and as it is."""
    if is_off():
        return None
    extensions = request.extensions
    if OVERRIDE not in extensions:
        return settings
    policy = extensions[OVERRIDE]
    return None if policy is None else settings.replace(policy=policy)


def _is_short(headers: "Mapping[str, str]") -> bool:
    length = headers.get("content-length", "")
    return length.isdecimal() and int(length) <= _DRAINED


def _least(own: float | None, limit: float) -> float:
    return limit if own is None else min(own, limit)


def _causes(error: BaseException | None) -> "Iterator[BaseException]":
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_untrusted(error: Exception) -> bool:
    """Whether the server's certificate was refused, which another attempt does not change."""
    import ssl

    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _is_refused_stream(error: Exception) -> bool:
    """Whether the server reset the HTTP/2 stream of the request before it looked at it."""
    events = (cause.args[0] for cause in _causes(error) if cause.args)
    return any(getattr(event, "error_code", None) == _REFUSED_STREAM for event in events)
