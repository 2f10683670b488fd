"""The base of the ports of httpx and httpx2, sync and async, by which forbear's retry loop sends one request.

SDKs such as those of OpenAI and Anthropic number their attempts: each is a new request, from the same thread or task,
whose header x-stainless-retry-count counts the retries. `remember` and `stop_repeat` end that where forbear gave up. An
SDK also obeys the header x-should-retry of a response.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from forbear.clients._httpx.errors import HttpxLibrary
from forbear.core.report import Report, attach
from forbear.core.verdict import Verdict
from forbear.evidence.sent import MOST_BODY
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.port import HttpCall
from forbear.exchange.http.responses import SHOWN
from forbear.exchange.http.send import Body, Fixed, Rendered, Variation, body_of_stream
from forbear.http.bodies import AsyncOnce, position
from forbear.run.nesting import is_final

_PIECE = 4096
"""The bytes of a coded body that are decoded at once."""


_TIMEOUTS = ("connect", "read", "write", "pool")


class HttpxPortBase(HttpCall):
    """The base of both ports, for one request; `send` is the method of the wrapped transport that makes an attempt."""

    __slots__ = ("_library", "_request", "_send", "_stream", "_url")

    can_read_back = True

    def __init__(self, options: HttpOptions, library: HttpxLibrary, send: Any, request: Any) -> None:
        self._library = library
        self._send = send
        self._request = request
        self._url = request.url  # the caller's headers: a transport may change the request's while it sends
        super().__init__(options, request.method, plain=type(request.stream) is library.ByteStream)

    def _mark(self) -> object:
        return self._url

    def _is_small(self) -> bool:
        return len(self._request.stream._stream) <= MOST_BODY

    def _target(self) -> tuple[str, str]:
        raw: bytes = self._request.extensions.get("target") or self._url.raw_path
        return self._url.raw_host.decode("ascii"), raw.decode("latin-1")

    def _scheme_and_port(self) -> tuple[str, int | None]:
        return self._url.scheme, self._url.port

    def _headers(self) -> Mapping[Any, Any]:
        headers: Mapping[Any, Any] = self._request.headers
        return headers

    def _read_body(self) -> Body:
        body, self._stream = _body_of(self._library, self._request, self._options.buffer, awaits=self.awaits)
        return body

    def verdict(self, error: Exception) -> Verdict:
        return self._library.verdict(error)

    def answer(self, response: Any, status: int, headers: Mapping[str, str], content: bytes) -> None:
        response.status_code = status
        response.headers = self._library.module.Headers(headers)
        response.stream = self._library.ByteStream(content)
        if hasattr(response, "_content"):  # of a transport that makes responses in memory
            response._content = content
        response.extensions.pop("reason_phrase", None)

    def note_broken_body(self) -> None:
        remember(self._request, self.report)

    def broken(self, text: str) -> Exception:
        error: Exception = self._library.broken(text)
        return error

    def copy(self, response: Any, content: bytes) -> Any:
        """Return a copy of a response; the response itself if its body is too long, or cannot be decoded."""
        pieces = [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)]
        copy = self._library.module.Response(
            response.status_code,
            headers=response.headers,
            stream=self._library.Begun(pieces, iter(()), lambda: None),
            request=self._request,
            extensions=response.extensions,
        )
        decoded, size = list[bytes](), 0
        with suppress(self._library.module.DecodingError):
            for chunk in copy.iter_bytes():
                decoded.append(chunk)
                size += len(chunk)
                if size > SHOWN:  # a small body may unpack to a large one
                    return response
            copy._content = b"".join(decoded)  # as its `read` does, which has no limit
            return copy
        return response

    def _next(self, variation: Variation, limit: float | None) -> Any:
        """Return the request to send: the caller's own if nothing is changed, otherwise a changed copy.

        The copy has the headers, the added query and the part of the body of `variation`, and the token if there is
        one. Its timeouts are at most `limit` seconds (None: unchanged). A body that can be read only once needs a copy,
        too.
        """
        request, body = self._request, self._body
        if variation.is_original and self._token is None and limit is None and not body.once:
            return request
        stream, url, extensions = request.stream, self._url, request.extensions
        if variation.skip is None:
            stream = self._library.ByteStream(b"")
        elif variation.skip or body.once:
            stream = self._stream(variation.skip)
        if variation.query:
            url = url.copy_with(query=b"&".join(filter(None, (url.query, variation.query.encode("ascii")))))
        if limit is not None:
            extensions = _limit(extensions, limit)
        varied = self._library.Request(
            request.method, url, headers=request.headers, stream=stream, extensions=extensions
        )
        self._adjust(varied.headers, variation)
        return varied

    def _reading(self, target: str, headers: Mapping[str, str], limit: float) -> Any:
        extensions = _limit(self._request.extensions, limit)
        extensions.pop("target", None)
        url = self._url.copy_with(raw_path=target.encode("ascii"))
        return self._library.Request("GET", url, headers=headers, extensions=extensions)


def _limit(extensions: Any, limit: float) -> dict[str, Any]:
    own = extensions.get("timeout", {})
    return {**extensions, "timeout": {kind: _least(own.get(kind), limit) for kind in _TIMEOUTS}}


def _body_of(library: HttpxLibrary, request: Any, limit: int, *, awaits: bool) -> tuple[Body, Callable[[int], Any]]:
    """Return the body of a request, and a function that returns a stream without the first so many bytes of it."""
    stream = request.stream
    body: Any = _form(library, stream)
    if isinstance(stream, library.ByteStream):
        body = Fixed(b"".join(stream))
    elif body is None and awaits:
        body = AsyncOnce(stream, limit)
    elif body is None:
        file: object = getattr(stream, "_stream", None) if type(stream) is library.Iterated else None
        body = body_of_stream(stream, file, limit)
    if awaits:
        return body, partial(library.AsyncRequestBody, body.achunks)
    return body, partial(library.RequestBody, body.chunks)


def _form(library: HttpxLibrary, stream: Any) -> Rendered | None:
    """Return the body for a form with files; None if `stream` is no such form or a file of it cannot be rewound."""
    if type(stream) is not library.Form:
        return None
    contents = [getattr(field, "file", b"") for field in stream.fields]
    files = [content for content in contents if not isinstance(content, str | bytes)]
    return Rendered(stream, files) if all(position(file) is not None for file in files) else None


def _least(own: float | None, limit: float) -> float:
    return limit if own is None else min(own, limit)


_COUNT = "x-stainless-retry-count"
_ANSWER = "x-should-retry"

given_up: "ContextVar[tuple[Report, str, Any] | None]" = ContextVar("forbear_numbered_request", default=None)
"""The report, method and URL of the last numbered request of this thread or task that forbear gave up; else None."""


def remember(request: Any, report: Report | None, response: Any = None) -> None:
    """Remember that forbear gave up `request`, if an SDK numbers it, and let the `response` tell the SDK to stop."""
    if report is None or _COUNT not in request.headers or not is_final(report):
        return
    given_up.set((report, request.method, request.url))
    if response is not None:
        response.headers[_ANSWER] = "false"


def stop_repeat(library: HttpxLibrary, request: Any) -> None:
    """Raise RemoteProtocolError, with the report, if `request` is an SDK's repeat of what was given up."""
    last = given_up.get()
    count = request.headers.get(_COUNT, "")
    if last is None or not (count.isascii() and count.isdecimal()):
        return
    report, method, url = last
    if count.strip("0") == "":
        given_up.set(None)
    elif (method, url) == (request.method, request.url):
        error = library.broken(f"the request was not sent again: {report.text}")
        attach(error, report)
        raise error
