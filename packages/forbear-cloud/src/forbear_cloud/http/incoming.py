"""Read requests from a connection: plain heads and bodies of known length here, all other heads, and chunks, by h11."""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

try:
    import h11
except ModuleNotFoundError as error:
    text = 'forbear_cloud needs h11; install it with: pip install "forbear[cloud]"'
    raise ModuleNotFoundError(text, name="h11") from error

from forbear_cloud.http.content import Content
from forbear_cloud.http.hosts import Hosts
from forbear_cloud.http.memory import Transit
from forbear_cloud.http.messages import ApiError, HttpRequest, read_request
from forbear_cloud.http.stream import SocketStream, give_way

_PLAIN = re.compile(
    rb"(GET|HEAD|POST|PUT|PATCH|DELETE) ([!-~]+) HTTP/1\.1\r\n((?:[A-Za-z0-9-]+: [!-~]+(?: [!-~]+)*\r\n)+)\r\n"
)
_LONGEST_PLAIN, _MOST_DIGITS = 8192, 15
_OF_H11 = frozenset({"expect", "transfer-encoding", "upgrade"})
_CLOSE = re.compile(r"(?i)(^|,)\s*close\s*(,|$)")
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_LONGEST_HEAD = 65_536
_MOST_HEADERS = 200
_SMALL_PIECE = 65_536
_KEPT_TEXT = 256
_MANY_CHUNKS, _SMALL_CHUNK, _MANY_AT_ONCE = 10_000, 256, 100

SECONDS_IDLE = 300.0
"""Seconds that a connection may wait for its next request."""

SECONDS_FOR_A_HEAD = 5.0
"""Seconds that the head of a request may take from its first bytes; clients send it in one go."""

SECONDS_OF_SILENCE = 30.0
"""Seconds for which the body of a request may pause."""

_SLOWEST = 65_536
"""Bytes per second that the body of a request must have on average, after the first 30 s."""


class _Head(NamedTuple):
    """The head of a request, and the `rest`: the bytes that came along after it. `http` reads a body in chunks."""

    method: str
    target: str
    headers: Mapping[str, str]
    is_old: bool
    """True for HTTP/1.0."""
    rest: bytes
    http: h11.Connection | None


class Incoming:
    """The requests of one connection; `interrupted` is called with each request whose body breaks off or is too slow.

    Three attributes describe the latest request. `head_only` is true if its response has no body (HEAD), and
    `takes_chunks` if the client understands a chunked response (HTTP/1.1). `lasting` is true if the connection may
    serve another request. `waiting_since` is when the wait for the next request began, on the loop's clock: that for
    the first one begins with the connection. None while one is read or served.
    """

    def __init__(
        self, stream: SocketStream, hosts: Hosts, body_limit: int, interrupted: Callable[[HttpRequest], None]
    ) -> None:
        self._stream = stream
        self._hosts = hosts
        self._body_limit = body_limit
        self._interrupted = interrupted
        host, port = stream.address
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.head_only = self.takes_chunks = self.lasting = False
        self.waiting_since: float | None = asyncio.get_running_loop().time()

    async def next(self, transit: Transit) -> HttpRequest | None:
        """Return the next request with its whole body; `transit` counts the bytes of the body.

        None at the end of the connection, and if no head arrives in time. Raises ApiError if the request cannot be
        parsed, is too large, names a host that is not allowed, or if its body is too slow. Raises OSError if the
        connection breaks.
        """
        self.head_only = self.takes_chunks = self.lasting = False
        try:
            head = await self._head()
            return None if head is None else await self._request(head, transit)
        except h11.RemoteProtocolError as error:
            raise ApiError(error.error_status_hint, f"Bad request: {error}", "badRequest") from None

    async def _head(self) -> _Head | None:
        self.waiting_since = asyncio.get_running_loop().time()
        self._stream.allow(SECONDS_IDLE)
        try:
            data = await self._stream.read()
            head = _read_plain(data)
            if head is None:
                self._stream.allow(SECONDS_FOR_A_HEAD)
                head = await self._parse(data)
        except TimeoutError:
            return None
        self.waiting_since = None
        return head

    async def _parse(self, data: bytes) -> _Head | None:
        """Return the head that begins with `data`; None at the end of the connection."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        http.receive_data(data)
        event = await self._event(http)
        if not isinstance(event, h11.Request):
            return None
        headers, is_old = _headers(event), event.http_version < b"1.1"
        target = event.target.decode("latin-1")
        return _Head(_text(event.method), target, headers, is_old, http.trailing_data[0], http)

    async def _request(self, head: _Head, transit: Transit) -> HttpRequest:
        method, target, headers, is_old, rest, http = head
        self.head_only, self.takes_chunks = method == "HEAD", not is_old
        size, chunked = int(headers.get("content-length", 0)), "transfer-encoding" in headers
        # Refused before the body is read: a client that waits for "100 Continue" need not send it.
        self._hosts.check(headers.get("host"), target)
        self._check(size)
        transit.add(size)
        if http is not None and http.they_are_waiting_for_100_continue and (size or chunked) and not rest:
            await self._stream.write(_GO_ON)
        pieces: list[bytes] = []
        slowest = (self._body_limit if chunked else size) / _SLOWEST
        self._stream.allow(SECONDS_OF_SILENCE + slowest, SECONDS_OF_SILENCE)
        try:
            if chunked and http is not None:
                await self._chunks(http, pieces, transit)
            else:
                await self._exactly(rest, size, pieces)
        except (OSError, h11.RemoteProtocolError) as error:
            transit.stored = True  # an upload session keeps what arrived
            self._interrupted(read_request(method, target, headers, Content(pieces), self._host))
            if isinstance(error, TimeoutError):
                raise ApiError(408, "The body of the request came too slowly.", "requestTimeout") from None
            raise
        self.lasting = self.takes_chunks and not _CLOSE.search(headers.get("connection", ""))
        return read_request(method, target, headers, Content(pieces), self._host)

    async def _event(self, http: h11.Connection) -> object:
        while (event := http.next_event()) is h11.NEED_DATA:
            http.receive_data(await self._stream.read())
        return event

    async def _exactly(self, rest: bytes, size: int, pieces: list[bytes]) -> None:
        """Append a body of `size` bytes, which begins with `rest`, to `pieces`.

        What arrived until an error is appended, too. Raise RemoteProtocolError if the connection ends before.
        """
        self._stream.put_back(rest)
        await self._stream.read_into(pieces, size)
        have = sum(map(len, pieces))
        if have < size:
            raise h11.RemoteProtocolError(f"the connection ended after {have} of {size} bytes of the body")

    async def _chunks(self, http: h11.Connection, pieces: list[bytes], transit: Transit) -> None:
        """Append a chunked body to `pieces`, small chunks joined, also the part before an error.

        Raises ApiError if the body is larger than the limit, or has more than 10 000 chunks that are tiny on average.
        """
        size, count, tiny = 0, 0, bytearray()
        try:
            while isinstance(event := await self._event(http), h11.Data):
                size, count = size + len(event.data), count + 1
                self._check(size)
                if count > _MANY_CHUNKS + size // _SMALL_CHUNK:
                    raise ApiError(
                        400, f"The body has more than {_MANY_CHUNKS} chunks, and they are tiny.", "badRequest"
                    )
                if count % _MANY_AT_ONCE == 0:
                    await give_way()
                transit.add(len(event.data))
                # Every piece takes some memory of its own, so tiny chunks are joined.
                tiny += event.data
                if len(tiny) >= _SMALL_PIECE:
                    pieces.append(bytes(tiny))
                    tiny.clear()
        finally:
            if tiny:
                pieces.append(bytes(tiny))
        self._stream.put_back(http.trailing_data[0])

    def _check(self, size: int) -> None:
        if size > self._body_limit:
            raise ApiError(413, f"The request body is larger than {self._body_limit} bytes, the limit of this server.")


def _read_plain(data: bytes) -> _Head | None:
    """Return the head at the start of `data` if it is a plain one, as most are; h11 is strict, but takes much longer.

    A plain head is short and whole, names one host, and repeats no header. It has a known length of body, if any.
    """
    found = _PLAIN.match(data, 0, _LONGEST_PLAIN)
    if found is None:
        return None
    lines = found[3][:-2].split(b"\r\n")
    headers = {_text(name.lower()): _text(value) for name, _, value in (line.partition(b": ") for line in lines)}
    size = headers.get("content-length", "0")
    if "host" not in headers or len(headers) < len(lines) or len(size) > _MOST_DIGITS or not size.isdigit():
        return None
    if not _OF_H11.isdisjoint(headers):
        return None
    target = found[2].decode("latin-1")
    return _Head(_text(found[1]), target, headers, is_old=False, rest=data[found.end() :], http=None)


def _headers(head: h11.Request) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined by ", ".

    Raises ApiError 431 if they are more than 200, or with the target more than 64 KiB.
    """
    items = head.headers.raw_items()  # iterating over h11's own sequence takes three times as long
    size = len(head.target) + sum(len(name) + len(value) for name, value in items)
    if len(items) > _MOST_HEADERS or size > _LONGEST_HEAD:
        text = f"The request has more than {_MOST_HEADERS} headers, or {_LONGEST_HEAD} bytes of them."
        raise ApiError(431, text, "badRequest")
    headers: dict[str, str] = {}
    for raw, value in items:
        name, text = _text(raw.lower()), _text(value)
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


def _text(value: bytes) -> str:
    return _short_text(value) if len(value) <= _KEPT_TEXT else value.decode("latin-1")


# The log keeps the headers of every request, so equal values share one string.
@lru_cache(4096)
def _short_text(value: bytes) -> str:
    return value.decode("latin-1")
