"""An HTTP response whose body arrives piece by piece, and the errors raised if no whole response arrives.

Each error has a verdict: NOT_EXECUTED, PERMANENT (not executed, and a retry would fail, too), or TRANSIENT (the outcome
is unknown).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context

from forbear.adapters import TRANSIENT_STATUSES, status_phrase
from forbear.events import Report
from forbear.verdicts import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear_transfer.errors import TransferError
from forbear_transfer.wire.watched import Watched

_HIGH = 1024 * 1024
"""The bytes that may wait for their reader before the connection stops reading."""

_PIECE = 64
"""The memory overhead of a piece in bytes: a server may send pieces of one byte."""


class Response(AbstractAsyncContextManager["Response", None]):
    """A response whose headers have arrived; `headers` has lower-case names, repeated headers joined by commas.

    Use it as a context manager: a response that is not read to its end closes the `connection`.
    """

    __slots__ = ("status", "headers", "ended", "_connection", "_chunks", "_size", "_paused", "_error", "_waiter",
                 "_take", "__forbear_report__")  # fmt: skip

    __forbear_report__: Report

    def __init__(self, status: int, headers: Mapping[str, str], connection: Watched) -> None:
        self.status = status
        self.headers = headers
        self.ended = False
        self._connection = connection
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._take: Callable[[bytes], bool] | None = None

    def feed(self, data: bytes) -> None:
        """Add bytes from the connection, which stops reading while more than 1 MiB waits for the reader."""
        if self._take is not None and self._waiter is not None and not self._waiter.done():
            self._pass_on(data, self._take, self._waiter)
            return
        self._chunks.append(data)
        self._size += len(data) + _PIECE
        self._wake()
        if self._size > _HIGH and not self._paused:
            self._paused = True
            self._connection.transport.pause_reading()

    def end(self) -> None:
        self.ended = True
        if self._paused:
            self._paused = False
            self._connection.transport.resume_reading()
        self._wake()

    def fail(self, error: Exception) -> None:
        """Set the error that `readany` raises after the bytes that have arrived are read; the first error counts."""
        if self._error is None:
            self._error = error
        self._wake()

    def limit(self, seconds: float | None) -> None:
        """Let the rest arrive within `seconds` from now, None for no limit, as `Watched.limit` says."""
        if not self.ended and self._error is None:
            self._connection.limit(seconds)

    @property
    def is_awaited(self) -> bool:
        return self._waiter is not None

    async def readany(self) -> bytes:
        """Return the next piece of the body; wait for it if none is there.

        Return b"" at the end of the body. Raises WireError or Stalled if it does not arrive whole, and
        ConnectionResetError after `close`.
        """
        while not self._chunks:
            if self.ended:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait()
        data = self._chunks.popleft()
        self._size -= len(data) + _PIECE
        if self._paused and self._size <= _HIGH // 2:
            self._paused = False
            self._connection.transport.resume_reading()
        if self._connection.is_paced:
            await self._connection.pace(len(data), received=True)
        return data

    async def peek(self, count: int) -> bytes:
        """Return the first `count` bytes that the next calls will return, or fewer if the body ends before."""
        while sum(map(len, self._chunks)) < count and not self.ended:
            if self._error is not None:
                raise self._error
            await self._wait()
        return b"".join(self._chunks)[:count]

    async def pour(self, take: Callable[[bytes], bool]) -> None:
        """Call `take` with each piece of the body as it arrives, until it returns False or the body has ended.

        It raises what `readany` and `take` raise. The connection calls `take` itself: to wake this task for each piece
        would add a sixth to the time of a fast download.
        """
        while (data := await self.readany()) and take(data):
            if self._chunks or self.ended or self._error is not None or self._connection.is_paced:
                continue
            self._take = _keep_context(take)
            try:
                if not await self._wait():
                    return
            finally:
                self._take = None

    async def read(self, limit: int | None = None) -> bytes:
        """Return the rest of the body; with `limit`, stop after the piece by which it is longer."""
        chunks: list[bytes] = []
        size = 0
        if self.ended and not self._connection.is_paced:  # all of it is here
            chunks, self._chunks, self._size = list(self._chunks), deque(), 0
        while (limit is None or size <= limit) and (self._chunks or not self.ended):
            data = await self.readany()
            chunks.append(data)
            size += len(data)
        return b"".join(chunks)

    def close(self) -> None:
        """Close the connection unless the whole response has arrived, or has failed already."""
        if not self.ended and self._error is None:
            self._error = ConnectionResetError("the response was closed before its end")
            self._connection.abort()

    async def _wait(self) -> bool:
        """Wait for more of the body, its end or its failure; return False if `pour` needs no more."""
        self._connection.expect("sent no byte")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    def _pass_on(self, data: bytes, take: Callable[[bytes], bool], waiter: "asyncio.Future[bool]") -> None:
        try:
            if take(data):
                self._connection.expect("sent no byte")
            else:
                waiter.set_result(False)
        except Exception as error:
            waiter.set_exception(error)

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _keep_context(take: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    run = copy_context().run
    return lambda data: run(take, data)


class WireError(TransferError):
    """A request got no response, or only part of one. Its outcome is unknown unless a subclass says otherwise."""

    verdict: Verdict = TRANSIENT


class NotConnected(WireError):
    """No connection could be opened: no byte of the request was sent."""

    verdict = NOT_EXECUTED
    hint = "check the network, the endpoint and the proxy"


class Untrusted(NotConnected):
    """The certificate of the server or the proxy is not valid. A retry would meet the same one, so it is permanent."""

    verdict = PERMANENT


class ProxyFailed(NotConnected):
    """No connection to the proxy could be opened, or it opened no tunnel: no byte of the request was sent."""

    hint = "check the proxy; the variables HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment choose it"


class ProxyRefused(ProxyFailed):
    """The proxy opened no tunnel, but responded with `status`. Only a transient status, such as 503, allows a retry."""

    def __init__(self, proxy: str, status: int) -> None:
        super().__init__(f"the proxy {proxy} opened no tunnel: {status_phrase(status)}")
        self.verdict = NOT_EXECUTED if status in TRANSIENT_STATUSES else PERMANENT

    def __reduce__(self) -> tuple[object, ...]:
        return WireError, self.args, self.__dict__


class Broken(WireError):
    """The connection ended before the whole response had arrived."""


class BadResponse(WireError):
    """The response is not HTTP/1.1, or its headers or the framing of its body are longer than 64 KiB."""
