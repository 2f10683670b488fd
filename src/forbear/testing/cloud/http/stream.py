"""The bytes of one connection, in as they come and out with back pressure; knows nothing of HTTP."""

import asyncio
import socket
import struct
import sys
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from forbear.testing.cloud.http.content import Piece

BUFFER = 262_144
"""Bytes that are read at once."""

_MOST_HELD = 262_144
_SMALL_PIECE = 4096
_SECONDS_TO_TAKE_A_PIECE = 300.0
_MILLISECONDS_TO_ARRIVE = 5_000
_LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class SocketStream(asyncio.BufferedProtocol):
    """One end of a TCP connection; asyncio's own streams would copy every byte three times, to join what we do not."""

    def __init__(self, connected: "Callable[[SocketStream], None]", buffer: memoryview) -> None:
        self._connected = connected
        self._buffer = buffer  # shared by all of a loop: what is in it is copied before the next one reads
        self._pieces = deque[bytes]()
        self._held = 0
        self._wanted = 0
        self._came = 0
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._lost = self._loop.create_future()
        self._deadline: float | None = None
        self._silence: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; what is written waits until the system has taken everything."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)
        self._connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where to put what comes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep a piece, and wake the reader once it has what it wants."""
        piece = bytes(self._buffer[:nbytes])
        # Every piece costs some memory of its own: many tiny ones are joined.
        if nbytes < _SMALL_PIECE and self._pieces and len(self._pieces[-1]) < _SMALL_PIECE:
            piece = self._pieces.pop() + piece
        self._pieces.append(piece)
        self._held += nbytes
        self._came += nbytes
        if self._held >= self._wanted:
            _wake(self._reader)
        if self._held >= max(_MOST_HELD, self._wanted):
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Note the peer's end, and keep ours open."""
        self._ended = True
        _wake(self._reader)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of both."""
        self._ended = True
        self._error = exc or ConnectionResetError("the connection is closed")
        for waiting in (self._reader, self._writer, self._lost):
            _wake(waiting)

    def pause_writing(self) -> None:
        """Have writers wait."""
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        """Have them go on."""
        waiting, self._writer = self._writer, None
        _wake(waiting)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port on this side."""
        host, port = self._transport.get_extra_info("sockname")[:2]
        return host, port

    def allow(self, seconds: float | None, silence: float | None = None) -> None:
        """Set how long reading may take from now, and how long without a byte; None is for ever."""
        self._deadline = None if seconds is None else self._loop.time() + seconds
        self._silence = silence

    async def read(self) -> bytes:
        """Return the next piece, b"" at the end; OSError when the connection broke or, TimeoutError, was too slow."""
        await self._until(1)
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._took(len(piece))
        return piece

    async def read_into(self, pieces: list[bytes], size: int) -> None:
        """Append the next `size` bytes, uncopied; fewer at the end. OSError, after those, as `read` raises it."""
        error: OSError | None = None
        try:
            await self._until(size)
        except OSError as broken:
            error = broken
        while size and self._pieces:
            piece = self._pieces.popleft()
            self._took(len(piece))
            if len(piece) > size:
                self.put_back(piece[size:])
                piece = piece[:size]
            pieces.append(piece)
            size -= len(piece)
        if size and error is not None:
            raise error

    def put_back(self, data: bytes) -> None:
        """Have the next read begin with these bytes."""
        if data:
            self._pieces.appendleft(data)
            self._held += len(data)

    async def write(self, data: Piece) -> None:
        """Send, and wait until the system has taken it all; OSError when the connection broke, or after minutes."""
        if self._error is not None:
            raise self._error
        self._transport.write(data)
        if self._transport.is_closing():  # it failed, which is told later: more of it would be in vain
            raise ConnectionResetError("the connection is closed")
        if self._writer is not None:
            await self._before(self._loop.time() + _SECONDS_TO_TAKE_A_PIECE, self._writer)
            if self._error is not None:
                raise self._error

    async def drop(self) -> None:
        """Read until the peer has left, keeping nothing."""
        with suppress(OSError):
            while await self.read():
                pass

    async def reset(self) -> None:
        """End with RST, after everything sent has arrived: an RST discards what is still queued."""
        sock: socket.socket = self._transport.get_extra_info("socket")
        for _ in range(_MILLISECONDS_TO_ARRIVE):
            if not _unacknowledged(sock):
                break
            await pause(0.001)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.abort()

    def write_end(self) -> None:
        """Send FIN, and go on reading."""
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def abort(self) -> None:
        """End at once, without what the system has not taken yet."""
        self._transport.abort()

    async def close(self) -> None:
        """End, and wait for it."""
        self._transport.close()
        await asyncio.shield(self._lost)

    async def _until(self, size: int) -> None:
        """Wait until so many bytes are there, or no more will come."""
        while self._held < size and not self._ended:
            self._wanted = size
            self._transport.resume_reading()
            self._reader = self._loop.create_future()
            await self._wait(self._reader)
        self._wanted = 0
        if self._error is not None and self._held < size:
            raise self._error

    async def _wait(self, reader: "asyncio.Future[None]") -> None:
        """Wait for the reader to be woken; TimeoutError at the deadline, or when nothing came for too long."""
        came, limits = self._came, [] if self._deadline is None else [self._deadline]
        if self._silence is not None:
            limits.append(self._loop.time() + self._silence)
        try:
            await self._before(min(limits, default=None), reader)
        except TimeoutError:
            if self._came == came or (self._deadline is not None and self._loop.time() >= self._deadline):
                raise

    async def _before(self, limit: float | None, waiting: "asyncio.Future[None]") -> None:
        """Wait; TimeoutError at the limit. A bare timer, because this is done for every request."""
        timer = None if limit is None else self._loop.call_at(limit, _expire, waiting)
        try:
            await waiting
        finally:
            if timer is not None:
                timer.cancel()

    def _took(self, size: int) -> None:
        self._held -= size
        if self._held < _MOST_HELD and not self._ended:
            self._transport.resume_reading()


async def pause(seconds: float) -> None:
    """Wait; the server's end cancels it."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), seconds)


async def give_way() -> None:
    """Let other connections be served, and go on at once."""
    loop = asyncio.get_running_loop()
    turn = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _expire(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_exception(TimeoutError("the peer took too long"))


if sys.platform == "win32":

    def _unacknowledged(sock: socket.socket) -> int:
        """Windows cannot tell how many bytes sent are still under way."""
        return 0

else:
    import fcntl
    import termios

    def _unacknowledged(sock: socket.socket) -> int:
        """How many bytes sent are not yet with the peer; 0 on systems that do not tell of sockets."""
        count = array("i", [0])
        with suppress(OSError, ValueError):  # a peer that has gone meanwhile leaves a socket without a number
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count)
        return count[0]
