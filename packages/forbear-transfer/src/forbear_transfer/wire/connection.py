"""One HTTP/1.1 connection, which sends one request at a time and reads its response. The pool opens it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from itertools import repeat
from typing import cast

try:
    import httptools
except ModuleNotFoundError as error:
    text = 'forbear_transfer needs httptools; install it with: pip install "forbear[transfer]"'
    raise ModuleNotFoundError(text, name="httptools") from error

from forbear_transfer.wire.response import BadResponse, Broken, Response
from forbear_transfer.wire.watched import INFINITY, Payload, RateLimit, Watched, slice_pieces

_LONGEST_HEAD = 64 * 1024
"""The largest head of a response in bytes: status line and headers, those of interim responses included. It also limits
chunk extensions and trailers. The service sends some 2 KiB."""

_NO_BODY = {204, 304}
_READ_AT_MOST = 512 * 1024
"""The most bytes for one read of a socket: with asyncio's 256 KiB, a large download takes a fifth longer."""

# glibc maps blocks of this size from the system, one by one, until it has seen one freed. A short read would then cost
# three system calls more than its own, and fresh pages.
_ = bytes(2 * _READ_AT_MOST)
del _


@lru_cache(256)
def _parse_name(name: bytes) -> str:
    return name.decode("latin-1").lower()


def _parse_fields(fields: list[bytes]) -> dict[str, str]:
    names, values = list(map(_parse_name, fields[::2])), list(map(str, fields[1::2], repeat("latin-1")))
    headers = dict(zip(names, values, strict=True))
    if len(headers) < len(names):
        headers.clear()
        for name, value in zip(names, values, strict=True):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class Connection(Watched):
    """A connection and the request that is running on it.

    `freed` is called with this connection when a request has succeeded or failed; `is_open` then says whether another
    may follow. `transport` is the transport below, or one with TLS over it.
    """

    def __init__(
        self, stall_timeout: float, freed: Callable[["Connection"], None], rate: RateLimit | None = None
    ) -> None:
        super().__init__(stall_timeout, rate)
        self.is_open = False
        self.idle_since = 0.0
        self._freed = freed
        self._response: Response | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._fields: list[bytes] = []
        self._overhead = 0
        self._left: int | None = None
        self._keeps_alive = False
        self._sending = False
        self._is_tunnel = False
        self._full = False
        self._came: asyncio.Future[Response] | None = None
        self._drained: asyncio.Future[None] | None = None

    async def request(self, head: bytes, body: "bytes | Payload | None", seconds: float | None = None) -> Response:
        """Send a request, its `head` and its `body`, and return the response once its headers have arrived.

        The whole response must arrive within `seconds` after the request was sent, None for no limit; see `limit`.
        Bytes are sent at once, as the pool has waited for their turn; a Payload keeps to the limit of the rate here.
        A response that arrives before the whole body is sent ends the sending, and closes the connection after it.
        WireError or Stalled if no response arrives; ValueError if the body has another size than its length says.
        """
        self._busy, self._response = True, None
        self._left, self._overhead, self._fields, self._end_at = None, 0, [], INFINITY
        self._parser = httptools.HttpResponseParser(self)
        came: asyncio.Future[Response] = self._loop.create_future()
        self._came = came
        try:
            if body is None or isinstance(body, bytes):
                self.transport.write(head + body if body else head)
            else:
                await self._send(head, body, came)
            if self._came is came:
                self.limit(seconds)
            if not came.done():
                self.expect("has not answered")  # interim responses do not extend the time
            return await came
        except BaseException:
            if self._came is came:  # otherwise the request has ended, and the connection may serve another one
                self.abort()
            if came.done() and not came.cancelled():
                came.exception()  # mark it as retrieved
            raise

    async def tunnel(self, head: bytes) -> int:
        """Send a CONNECT request to a proxy, and return the status of its response; the connection stays open."""
        self._is_tunnel = True
        response = await self.request(head, None)
        self._busy = self._is_tunnel = False
        return response.status

    async def _send(self, head: bytes, body: Payload, came: "asyncio.Future[Response]") -> None:
        self._sending = True
        self.transport.write(head)
        left = len(body)
        for piece in body.pieces() if self._rate is None else slice_pieces(body.pieces(), self._rate.step):
            if self._rate is not None:
                await self.pace(len(piece))
                if came.done():
                    return
            left -= len(piece)
            if left < 0:  # the server would read the rest as another request
                raise ValueError(f"`body` must have as many bytes as its length says: {len(body)}, got more")
            self.transport.write(piece)
            if self._full and not came.done():
                self.expect("took no byte")
                self._drained = self._loop.create_future()
                await asyncio.wait((came, self._drained), return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop: a fast server would block all other tasks
            if came.done():
                return
        if left:
            raise ValueError(f"`body` must have as many bytes as its length says: {len(body)}, got {left} fewer")
        self._sending = False

    def abort(self) -> None:
        if self._busy:
            self._fail(Broken("the connection was closed before the whole response arrived"))
        else:  # nobody would see an error, which takes a while to make
            self._close()
            self._end()

    # Callbacks of the event loop. At the end of the connection, a response without a known length is complete.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        with suppress(AttributeError):  # not every event loop has a limit that can be set
            setattr(transport, "max_size", _READ_AT_MOST)  # noqa: B010 - no type declares it
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._end_by_peer(exc)
        self._stop_timer()

    def eof_received(self) -> bool:
        self.is_open = False
        self._end_by_peer(None)
        return False

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Parse the head of a response; pass on the bytes of a body whose length is known without parsing them.

        Close the connection if no request is running. The request fails with BadResponse if the bytes are not HTTP/1.1,
        or if the head or the framing of the body is longer than 64 KiB.
        """
        if not self._busy:  # no request is under way
            self.abort()
            return
        if self._response is not None and self._left is not None:
            self._take(data)
        elif self._parser is not None:
            self._overhead += len(data)
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                self._fail(BadResponse(f"the server's response is not HTTP/1.1: {type(error).__name__}: {error}"))
            else:
                if self._overhead > _LONGEST_HEAD:
                    part = "the head" if self._response is None else "the framing of the body"
                    self._fail(BadResponse(f"{part} of the response is longer than {_LONGEST_HEAD // 1024} KiB"))

    # Callbacks of the parser. The head of an interim response (1xx) is dropped, and so are trailers.

    def on_message_begin(self) -> None:
        if self._response is not None:
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is None:
            self._fields += (name, value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None:  # the head belongs to a second response
            return
        status = parser.get_status_code()
        fields, self._fields = self._fields, []
        if status < 200:
            return
        self._keeps_alive = parser.should_keep_alive()
        headers = _parse_fields(fields)
        response = self._response = Response(status, headers, self)
        length = headers.get("content-length")
        if "transfer-encoding" in headers:
            self._keeps_alive = self._keeps_alive and length is None  # with both, the peer may see another end
        elif length is not None and status not in _NO_BODY:
            self._left = int(length)  # llhttp refuses other texts, and numbers above 64 bits
        self._overhead = 0
        if self._came is not None and not self._came.done():
            self._came.set_result(response)

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        if self._response is not None and self._busy:
            self._response.feed(body)
            if self._left is not None:
                self._left -= len(body)

    def on_message_complete(self) -> None:
        if self._response is not None:
            self._finish()

    def _take(self, data: bytes) -> None:
        response, left = self._response, self._left
        assert response is not None and left is not None  # noqa: S101, PT018
        if len(data) > left:  # the rest belongs to no request
            self._keeps_alive = False
            data = data[:left]
        response.feed(data)
        self._left = left - len(data)
        if not self._left:
            self._finish()

    def _finish(self) -> None:
        response = self._response
        if response is None or response.ended or self._is_tunnel:
            return
        response.end()
        if self._sending or not self._keeps_alive:
            self._close()
        self._end()

    def _end_by_peer(self, error: Exception | None) -> None:
        if not self._busy:  # a request that has failed is not complete, although its connection was closed
            return
        response = self._response
        until_end = response is not None and self._left is None and "transfer-encoding" not in response.headers
        if until_end and error is None:
            self._finish()
        else:
            broken = Broken(f"the server closed the connection {self._describe_progress()}")
            broken.__cause__ = error
            self._fail(broken)

    def _describe_progress(self) -> str:
        if self._response is None:
            return "without a response"
        if self._left is None:
            return "in the middle of its response"
        length = int(self._response.headers["content-length"])
        return f"after {length - self._left} of {length} bytes of its response"

    def _is_awaited(self) -> bool:
        return self._response is None or self._response.is_awaited

    def _fail(self, error: Exception) -> None:
        self._close()
        if self._busy and self._response is not None:
            self._response.fail(error)
        elif self._came is not None and not self._came.done():
            self._came.set_exception(error)
        self._end()

    def _close(self) -> None:
        self.is_open = False
        self.transport.abort()

    def _end(self) -> None:
        self._parser = self._came = self._drained = None
        if self._busy:
            self._busy = self._sending = False
            self.idle_since = self._loop.time()
            self._freed(self)
