"""Read and write the bytes of one TCP connection, with back pressure and time limits."""

import asyncio
import socket
import struct
import sys
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from forbear_cloud.http.content import Piece

BUFFER = 262_144
"""The most bytes that one read takes from the system."""

_MOST_HELD = 262_144
_SMALL_PIECE = 4096
_SECONDS_TO_TAKE_A_PIECE = 300.0
_MILLISECONDS_TO_ARRIVE = 5_000
_LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class SocketStream(asyncio.BufferedProtocol):
    """The server's end of a TCP connection.

    It keeps the pieces as they arrive; asyncio's own streams would copy every byte three times to join them. The event
    loop calls `connected` with the stream once the connection is open. `buffer` is where the event loop puts what it
    reads.
    """

    def __init__(self, connected: "Callable[[SocketStream], None]", buffer: memoryview) -> None:
        self._connected = connected
        self._buffer = buffer  # shared by all connections of the loop: its bytes are copied before the next read
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
        """Keep the transport, have every write wait until the system has accepted all of it, and call `connected`."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)
        self._connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read, always the same one; `sizehint` does not matter."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Keep the `nbytes` that arrived, and wake the reader if it has enough; stop reading while too much is held."""
        piece = bytes(self._buffer[:nbytes])
        # Every piece takes some memory of its own, so tiny ones are joined.
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
        """Record that the client sends no more; return True, which keeps the connection open for the response."""
        self._ended = True
        _wake(self._reader)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that the connection is closed, perhaps with the error `exc`, and wake all tasks that wait for it."""
        self._ended = True
        self._error = exc or ConnectionResetError("the connection is closed")
        for waiting in (self._reader, self._writer, self._lost):
            _wake(waiting)

    def pause_writing(self) -> None:
        """Have writers wait until `resume_writing`."""
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the waiting writers continue."""
        waiting, self._writer = self._writer, None
        _wake(waiting)

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port of the server's end."""
        host, port = self._transport.get_extra_info("sockname")[:2]
        return host, port

    def allow(self, seconds: float | None, silence: float | None = None) -> None:
        """Limit reading to `seconds` in all from now on, and a time without any byte to `silence` seconds.

        None is no limit; each call replaces both limits.
        """
        self._deadline = None if seconds is None else self._loop.time() + seconds
        self._silence = silence

    async def read(self) -> bytes:
        """Return the next piece, b"" at the end; OSError if the connection broke, TimeoutError at a limit."""
        await self._wait_for_bytes(1)
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._count_taken(len(piece))
        return piece

    async def read_into(self, pieces: list[bytes], size: int) -> None:
        """Append the next `size` bytes to `pieces`, fewer only if the client ends before.

        If reading fails, append the bytes that did arrive, then raise OSError or TimeoutError as `read` does.
        """
        error: OSError | None = None
        try:
            await self._wait_for_bytes(size)
        except OSError as broken:
            error = broken
        while size and self._pieces:
            piece = self._pieces.popleft()
            self._count_taken(len(piece))
            if len(piece) > size:
                self.put_back(piece[size:])
                piece = piece[:size]
            pieces.append(piece)
            size -= len(piece)
        if size and error is not None:
            raise error

    def put_back(self, data: bytes) -> None:
        """Make the next read start with these bytes."""
        if data:
            self._pieces.appendleft(data)
            self._held += len(data)

    async def write(self, data: Piece) -> None:
        """Send `data`, and wait at most 300 s until the system has accepted all of it.

        Raises OSError if the connection broke, and TimeoutError after 300 s.
        """
        if self._error is not None:
            raise self._error
        self._transport.write(data)
        if self._transport.is_closing():  # the write failed; asyncio reports that only later
            raise ConnectionResetError("the connection is closed")
        if self._writer is not None:
            await self._wait_before(self._loop.time() + _SECONDS_TO_TAKE_A_PIECE, self._writer)
            if self._error is not None:
                raise self._error

    async def drop(self) -> None:
        """Read and discard until the client ends or the connection breaks; a limit of reading ends it, too."""
        with suppress(OSError):
            while await self.read():
                pass

    async def reset(self) -> None:
        """Send RST once the client has acknowledged everything, or after about 5 s, and close the connection.

        The wait is there because an RST discards what is still queued.
        """
        sock: socket.socket = self._transport.get_extra_info("socket")
        for _ in range(_MILLISECONDS_TO_ARRIVE):
            if not _count_unacknowledged(sock):
                break
            await pause(0.001)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.abort()

    def write_end(self) -> None:
        """Send FIN, where the transport can; reading is still possible."""
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def abort(self) -> None:
        """Close at once, and discard what is not sent yet."""
        self._transport.abort()

    async def close(self) -> None:
        """Close after what is queued has been sent, and wait until the connection is closed."""
        self._transport.close()
        await asyncio.shield(self._lost)

    async def _wait_for_bytes(self, size: int) -> None:
        """Wait until `size` bytes are held, or no more can come; raise the connection's error if it broke before."""
        while self._held < size and not self._ended:
            self._wanted = size
            self._transport.resume_reading()
            self._reader = self._loop.create_future()
            await self._wait(self._reader)
        self._wanted = 0
        if self._error is not None and self._held < size:
            raise self._error

    async def _wait(self, reader: "asyncio.Future[None]") -> None:
        """Wait until `reader` is woken; TimeoutError at the deadline, or if no byte came during the time of silence.

        Returns early without an error if some bytes, but not enough, came in that time.
        """
        came, limit = self._came, self._deadline
        if self._silence is not None:
            silent = self._loop.time() + self._silence
            limit = silent if limit is None else min(limit, silent)
        try:
            await self._wait_before(limit, reader)
        except TimeoutError:
            if self._came == came or (self._deadline is not None and self._loop.time() >= self._deadline):
                raise

    async def _wait_before(self, limit: float | None, waiting: "asyncio.Future[None]") -> None:
        """Wait until `waiting` is done; TimeoutError at `limit` on the loop's clock (None: no limit).

        It is cheaper than asyncio.timeout.
        """
        timer = None if limit is None else self._loop.call_at(limit, _expire, waiting)
        try:
            await waiting
        finally:
            if timer is not None:
                timer.cancel()

    def _count_taken(self, size: int) -> None:
        self._held -= size
        if self._held < _MOST_HELD and not self._ended:
            self._transport.resume_reading()


async def pause(seconds: float) -> None:
    """Wait `seconds`; a cancellation, as when the server stops, ends the wait with CancelledError."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), seconds)


async def give_way() -> None:
    """Let the event loop run what is ready, such as other connections, once; then continue."""
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

    def _count_unacknowledged(sock: socket.socket) -> int:
        """Return 0: Windows does not say how many bytes are unacknowledged."""
        return 0

else:
    import fcntl
    import termios

    def _count_unacknowledged(sock: socket.socket) -> int:
        """Return how many sent bytes the client has not acknowledged yet, 0 on systems that do not say so."""
        count = array("i", [0])
        with suppress(OSError, ValueError):  # the socket has no descriptor if the connection closed meanwhile
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count)
        return count[0]
