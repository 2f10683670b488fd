"""The body of a response that may break: an async iterator that continues it in further responses.

`reader.py` has the sync form. It is generated from this file: change this one, then run `make unasync`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType
from typing import Generic, TypeVar

from forbear.core.verdict import TRANSIENT
from forbear.exchange.call_state import drop_proof
from forbear.exchange.http.adrive import AsyncPort
from forbear.exchange.http.download import Download, Refused
from forbear.exchange.http.responses import HandedOut, is_continued

R = TypeVar("R")


class AsyncReader(AsyncIterator[bytes], Generic[R]):
    """The body of a response, as an async iterator.

    The body of a GET that breaks is continued in further responses. Where that is impossible, its error is raised. It
    gets a report if the policy gave up a continuation, or if repeating the request could do harm. `chunks` and `close`
    belong to the first response. Close the reader at the end: it closes the response it is reading.

    Set `whole` before the first byte if the caller gets the body only as a whole. Then nothing is handed out before it
    is complete, so that it can start over with any other response. Example: see `adrive`.
    """

    __slots__ = ("whole", "_chunks", "_close", "_download", "_handed_out", "_headers", "_held", "_port", "_status")

    def __init__(
        self,
        port: AsyncPort[R],
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        close: Callable[[], Awaitable[object]],
    ) -> None:
        self._port = port
        self._status = status
        self._headers = headers
        self._chunks = chunks
        self._close = close
        self._download: Download | None = None  # until it breaks
        self._handed_out = HandedOut(status, headers)
        self.whole = False
        self._held: list[bytes] | None = None  # of a body that is read as a whole

    async def __anext__(self) -> bytes:
        if self.whole:
            return await self._next_of_whole()
        chunk: bytes | None = b""
        while not chunk:
            try:
                chunk = await anext(self._chunks, None)
                if self._download is not None:
                    self._measure(self._download, chunk)
            except Exception as error:
                chunk = await self._resume(error)
                if chunk is None:
                    raise
            except BaseException as interrupt:  # a cancellation, too
                self._port.exchange.cut_off(interrupt)
                raise
            else:
                if chunk is None:
                    self._handed_out.forget()
                    if self._download is not None:
                        self._download.run.succeeded()
                    raise StopAsyncIteration
        self._handed_out.add(chunk)
        return chunk

    async def _next_of_whole(self) -> bytes:
        """Return the next bytes of the complete body, which the first call reads."""
        if self._held is None:
            held: list[bytes] = []
            self._held = held
            self._handed_out.held = not self._handed_out.count
            self.whole = False
            try:
                while (chunk := await anext(self, None)) is not None:
                    held.append(chunk)
            except BaseException:
                held.clear()
                raise
            finally:
                self.whole = True
            held.reverse()
        if not self._held:
            raise StopAsyncIteration
        return self._held.pop()

    async def aclose(self) -> None:
        self.end()
        await self._close_response()

    def end(self) -> None:
        """Count the end of an attempt in the retry budget, if the body is left before its end."""
        if self._download is not None:
            self._download.run.end()

    async def _close_response(self) -> None:
        try:
            await _leave(self._chunks)
        finally:
            await self._close()

    def _measure(self, download: Download, chunk: bytes | None) -> None:
        """Raise the client's error if `chunk` (None: the end) gives a continued body the wrong length."""
        wrong = download.measure(self._handed_out.count + len(chunk or b""), ended=chunk is None)
        if wrong is not None:
            raise self._port.broken(wrong)

    async def _resume(self, error: Exception) -> bytes | None:
        """Wait, then continue the body in another response; return its first bytes, None to raise `error`."""
        port = self._port
        if not is_continued(port.exchange.request.method, self._status):
            port.exchange.broken(error, self._status, self._headers)
            port.note_broken_body()
            return None
        if self._download is None:
            self._download = Download(port.exchange, self._status, self._headers, self._handed_out)
        download = self._download
        grant = download.broken(error, drop_proof(port.verdict(error)))
        while grant is not None and await grant.aask():
            await self._close_response()
            await grant.asleep()
            try:
                return await self._open(download, await port.send(download.variation, download.run.attempt_limit()))
            except Refused as refusal:
                grant = download.failed(error, refusal, TRANSIENT)
            except Exception as again:
                grant = download.failed(error, again, port.verdict(again))
        await self._close_response()  # a body that is too long would continue
        self._download = None  # reading on after the error must not look like success
        return None

    async def _open(self, download: Download, response: R) -> bytes:
        """Let `response` continue the body; return the new bytes that arrived together with skipped ones, perhaps b"".

        Raises Refused if the response does not fit.
        """
        port = self._port
        self._close = partial(port.close, response)
        try:
            is_read = download.check(port.status(response), port.headers(response))
        except Refused:
            await port.close(response)
            raise
        if download.is_new:
            if self._held is not None:
                self._held.clear()
            port.adopt(self._headers, response)
        if not is_read:
            await port.close(response)
            self._chunks = _Nothing()
            return b""
        self._chunks = port.chunks(response)
        rest = b""
        while download.skips:
            rest = download.skip(await anext(self._chunks, b""))
        return rest


# Async only


class _Nothing(AsyncIterator[bytes]):
    """An empty body. It is not a generator, because trio warns of a generator that is not read to its end."""

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration


async def _leave(chunks: AsyncIterator[bytes]) -> None:
    """Close an async generator that has not ended, since trio warns of one that stays open; ignore other iterators."""
    if isinstance(chunks, AsyncGeneratorType) and chunks.ag_frame is not None:  # None once it is exhausted
        with suppress(RuntimeError):  # another task is reading it, and will see that the response is closed
            await chunks.aclose()
