"""Requests off the wire: h11 reads heads and chunks, and bodies of known length go past it untouched."""

import re
from collections.abc import Callable
from functools import lru_cache

try:
    import h11
except ModuleNotFoundError as error:
    text = 'forbear.testing.cloud needs h11; install it with: pip install "forbear[cloud]"'
    raise ModuleNotFoundError(text, name="h11") from error

from forbear.testing.cloud.content import Content
from forbear.testing.cloud.errors import ApiError
from forbear.testing.cloud.stream import Stream
from forbear.testing.cloud.wire import Request, read_request

_CLOSE = re.compile(r"(?i)(^|,)\s*close\s*(,|$)")
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class Incoming:
    """The requests of one connection; `interrupted` is told of those whose body breaks off.

    Of the latest request, `head_only` says whether its reply has no body, `takes_chunks` whether the client knows them,
    and `lasting` whether the connection may serve another.
    """

    def __init__(self, stream: Stream, body_limit: int, interrupted: Callable[[Request], None]) -> None:
        self._stream = stream
        self._body_limit = body_limit
        self._interrupted = interrupted
        host, port = stream.address
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.head_only = self.takes_chunks = self.lasting = False

    async def next(self) -> Request | None:
        """The next whole request, or None at the end; ApiError for what cannot be understood or is too large."""
        self.head_only = self.takes_chunks = self.lasting = False
        http = h11.Connection(h11.SERVER)
        try:
            return await self._next(http)
        except h11.RemoteProtocolError as error:
            raise ApiError(error.error_status_hint, f"Bad request: {error}", "badRequest") from None

    async def _next(self, http: h11.Connection) -> Request | None:
        head = await self._event(http)
        if not isinstance(head, h11.Request):
            return None
        self.head_only, self.takes_chunks = head.method == b"HEAD", head.http_version >= b"1.1"
        headers = _headers(head)
        size, chunked = int(headers.get("content-length", 0)), "transfer-encoding" in headers
        # Refused before the body is asked for: a client waiting for "100 Continue" need not send it.
        self._check(size)
        if http.they_are_waiting_for_100_continue and (size or chunked) and not http.trailing_data[0]:
            await self._stream.write(_GO_ON)
        method, target = _text(head.method), head.target.decode("latin-1")
        pieces: list[bytes] = []
        try:
            await (self._chunks(http, pieces) if chunked else self._exactly(http, size, pieces))
        except (OSError, h11.RemoteProtocolError):
            self._interrupted(read_request(method, target, headers, Content(pieces), self._host))
            raise
        self.lasting = self.takes_chunks and not _CLOSE.search(headers.get("connection", ""))
        return read_request(method, target, headers, Content(pieces), self._host)

    async def _event(self, http: h11.Connection) -> object:
        while (event := http.next_event()) is h11.NEED_DATA:
            http.receive_data(await self._stream.read())
        return event

    async def _exactly(self, http: h11.Connection, size: int, pieces: list[bytes]) -> None:
        """Take a body of known length as it comes."""
        self._stream.put_back(http.trailing_data[0])
        await self._stream.read_into(pieces, size)
        have = sum(map(len, pieces))
        if have < size:
            raise h11.RemoteProtocolError(f"the connection ended after {have} of {size} bytes of the body")

    async def _chunks(self, http: h11.Connection, pieces: list[bytes]) -> None:
        """Take a body that ends when it says so."""
        size = 0
        while isinstance(event := await self._event(http), h11.Data):
            size += len(event.data)
            self._check(size)
            pieces.append(bytes(event.data))
        self._stream.put_back(http.trailing_data[0])

    def _check(self, size: int) -> None:
        if size > self._body_limit:
            raise ApiError(413, f"The request body is larger than {self._body_limit} bytes, the limit of this server.")


def _headers(head: h11.Request) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in head.headers:
        key, text = _text(name), _text(value)
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


# The log keeps every header: those that are the same in every request are kept once.
@lru_cache(4096)
def _text(value: bytes) -> str:
    return value.decode("latin-1")
