"""An adapter for urllib.request, outside of forbear: `opener = build_opener(RetryHandler())`.

It uses the public names of forbear and `forbear.adapters`, and shows each step of "Write an adapter" in docs/http.md.
"""

import copy
import io
import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead, InvalidURL
from itertools import chain
from typing import IO, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPDefaultErrorHandler, HTTPHandler, HTTPSHandler, Request

import forbear
from forbear.adapters import (
    REPORT_ATTRIBUTE,
    BodyReader,
    FixedBody,
    HttpBody,
    HttpOptions,
    HttpPort,
    Variation,
    Vouch,
    attach_report,
    drive,
    retries_are_off,
    streamed_body,
)

_PIECE = 64 * 1024


class RetryHandler(HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler):
    """A handler that retries requests; `policy`, `safe` and `apis` are those of `forbear.clients.requests`."""

    def __init__(
        self,
        policy: forbear.Policy | None = None,
        *,
        safe: str | tuple[str, ...] = (),
        apis: forbear.Api | tuple[forbear.Api, ...] = (),
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(context=context)
        self._options = HttpOptions(policy, vouch=Vouch(safe, apis))
        self._tls = context

    def http_open(self, req: Request) -> Any:
        """Send a request as often as its policy allows; return the last response or raise the last error."""
        return self._retried(req, _Connection)

    def https_open(self, req: Request) -> Any:
        """Do the same over TLS."""
        return self._retried(req, _TlsConnection, context=self._tls)

    def http_error_default(self, req: Request, fp: IO[bytes], code: int, msg: str, hdrs: Any) -> NoReturn:
        """Raise the error of a failed response; if forbear gave up, it has the report."""
        error = HTTPError(req.full_url, code, msg, hdrs, fp)
        report = forbear.report(fp)
        if report is not None:
            attach_report(error, report)
        raise error

    def _retried(self, request: Request, kind: "type[_Connection | _TlsConnection]", **options: Any) -> Any:
        if retries_are_off():
            return self.do_open(kind, request, **options)
        port = UrllibPort(self._options, request, kind, partial(self.do_open, **options))
        response = drive(port)
        if port.needs_reader(response):
            body, seen = response.body, port.headers(response)
            reader = BodyReader(port, response.status, seen, body.pieces, body.close_source)
            body.pieces, body.close_source = reader, reader.close
        if port.report is not None:
            setattr(response, REPORT_ATTRIBUTE, port.report)
        return response


class _Connection(HTTPConnection):
    """A connection that knows whether it is open: before that, no byte of the request is sent."""

    is_open = False

    def connect(self) -> None:
        super().connect()
        self.is_open = True


class _TlsConnection(HTTPSConnection):
    """The same over TLS."""

    is_open = False

    def connect(self) -> None:
        super().connect()
        self.is_open = True


class UrllibPort(HttpPort["RetriedResponse"]):
    """The port of urllib.request; `do_open` is the handler's own method, which sends a request by a connection."""

    def __init__(
        self,
        options: HttpOptions,
        request: Request,
        kind: type[_Connection | _TlsConnection],
        do_open: Callable[..., HTTPResponse],
    ) -> None:
        self._request = request
        self._kind = kind
        self._do_open = do_open
        self._connection: _Connection | _TlsConnection | None = None
        plain = request.data is None or isinstance(request.data, bytes)
        super().__init__(options, request.get_method(), plain=plain)

    def _target(self) -> tuple[str, str]:
        url = urlsplit(self._request.full_url)
        return url.hostname or "", (url.path or "/") + (f"?{url.query}" if url.query else "")

    def _scheme_and_port(self) -> tuple[str, int | None]:
        url = urlsplit(self._request.full_url)
        return url.scheme, url.port

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._request.header_items()}

    def _read_body(self) -> HttpBody:
        data: Any = self._request.data
        if data is None or isinstance(data, bytes):
            return FixedBody(data or b"")
        return streamed_body(data, data, self._options.buffer)

    def first(self) -> "RetriedResponse":
        """Send the caller's request unchanged and return the response."""
        return self._sent(self._request)

    def send(self, variation: Variation, limit: float | None) -> "RetriedResponse":
        """Send the request as `variation` says, with a timeout of at most `limit` seconds, and return the response."""
        varied, headers = copy.copy(self._request), self._headers()
        varied.headers, varied.unredirected_hdrs = {}, {}  # before the data, which would change those of the original
        if variation.skip is None:
            varied.data = None
        elif variation.skip or self._body.once:
            varied.data = self._body.chunks(variation.skip)
        self._adjust(headers, variation)
        varied.headers = {name.capitalize(): value for name, value in headers.items()}
        if variation.query:
            varied.selector += f"{'&' if '?' in varied.selector else '?'}{variation.query}"
        if limit is not None:
            own: Any = self._request.timeout
            varied.timeout = min(own, limit) if isinstance(own, int | float) else limit
        return self._sent(varied)

    def _sent(self, request: Request) -> "RetriedResponse":
        source = self._do_open(self._connect, request)
        return RetriedResponse(source, _pieces(source))

    def _connect(self, host: str, **options: Any) -> HTTPConnection:
        self._connection = self._kind(host, **options)
        return self._connection

    def status(self, response: "RetriedResponse") -> int:
        """Return the status of a response."""
        return response.status

    def headers(self, response: "RetriedResponse") -> Mapping[str, str]:
        """Return the headers of a response, which find names in any case."""
        headers: Any = response.headers
        return headers  # type: ignore[no-any-return]

    def adopt(self, seen: Any, response: "RetriedResponse") -> None:
        """Change the headers that the caller has into those of the response whose body the caller gets."""
        for name in set(seen.keys()):
            del seen[name]
        for name, value in response.headers.items():
            seen[name] = value

    def chunks(self, response: "RetriedResponse") -> Iterator[bytes]:
        """Return the body of a response as it arrives."""
        return response.body.pieces

    def keep(self, response: "RetriedResponse", content: bytes, rest: Iterator[bytes] | None = None) -> None:
        """Let the body of a response be these bytes, which were read, and then what is left in `rest`."""
        response.body.pieces = chain((content,), rest or ())

    def copy(self, response: "RetriedResponse", content: bytes) -> "RetriedResponse":
        """Return a copy of a response with this body."""
        return RetriedResponse(response.source, iter((content,)))

    def read_content(self, shown: "RetriedResponse") -> bytes:
        """Return the body of a copy."""
        return b"".join(shown.body.pieces)

    def close(self, response: "RetriedResponse") -> None:
        """Close a response at once, without reading the rest of its body."""
        response.close()

    def verdict(self, error: Exception) -> forbear.verdicts.Verdict:
        """Return the verdict on an error: NOT_EXECUTED only if the connection was never open."""
        reason: object = error.reason if isinstance(error, URLError) else error
        final = isinstance(reason, InvalidURL | ssl.SSLCertVerificationError)
        if final or not isinstance(reason, OSError | HTTPException):
            return forbear.verdicts.PERMANENT
        is_open = self._connection is None or self._connection.is_open
        return forbear.verdicts.TRANSIENT if is_open else forbear.verdicts.NOT_EXECUTED

    def broken(self, text: str) -> Exception:
        """Return an HTTPException, for a body of the wrong length."""
        return HTTPException(text)


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the body of a response as it arrives; `read1` by itself does not notice that bytes are missing."""
    while piece := response.read1(_PIECE):
        yield piece
    missing = response.length
    response.close()
    if missing:
        raise IncompleteRead(b"", missing)


class _Body(io.RawIOBase):
    """A file of the bytes in `pieces`."""

    def __init__(self, pieces: Iterator[bytes], close_source: Callable[[], object]) -> None:
        self.pieces = pieces
        self.close_source = close_source
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.close_source()


class RetriedResponse(io.BufferedReader):
    """A response of urllib.request: a file of its body, with the status and the headers of `source`."""

    def __init__(self, source: HTTPResponse, pieces: Iterator[bytes]) -> None:
        self.body = _Body(pieces, source.close)
        super().__init__(self.body)
        self.source = source
        self.status = self.code = source.status
        self.reason = self.msg = source.reason
        self.headers = source.headers
        self.url = source.url

    def info(self) -> Any:
        """Return the headers."""
        return self.headers

    def geturl(self) -> str:
        """Return the URL of the request."""
        return self.url
