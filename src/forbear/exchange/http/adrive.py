"""The async loops around an exchange and a download: the sync ones with `await`. They decide nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType
from typing import Generic, Protocol, Self, TypeVar

from forbear.core.verdict import TRANSIENT, Verdict
from forbear.exchange.http.download import Download, HandedOut, Refused
from forbear.exchange.http.exchange import Exchange, Start, begun
from forbear.exchange.http.responses import is_continued
from forbear.exchange.http.send import Send

R = TypeVar("R")


class AsyncSender(Protocol[R]):
    """How one request is sent by one async client: all that `drive` needs."""

    @property
    def start(self) -> Start:
        """The moment before the first attempt."""
        ...

    @property
    def exchange(self) -> Exchange:
        """The state of the request; made when first asked for, for most requests never fail."""
        ...

    @property
    def is_plain(self) -> bool:
        """Whether a first attempt that succeeds is all there is to it: nothing is varied and nobody asks afterwards."""
        ...

    async def first(self) -> R:
        """Send the caller's request as it is."""
        ...

    async def send(self, send: Send, limit: float | None) -> R:
        """Send a variation of the request; `limit` is the attempt timeout in seconds."""
        ...

    def status(self, response: R) -> int:
        """The status of a response."""
        ...

    def headers(self, response: R) -> Mapping[str, str]:
        """The headers of a response, by lower-case names."""
        ...

    def is_read_at_once(self, response: R) -> bool:
        """Whether the body of a response is to be read before anything else is decided."""
        ...

    async def settle(self, response: R) -> None:
        """Read the whole body of a response."""
        ...

    async def close(self, response: R) -> None:
        """Close a response at once, without waiting for the rest of it: no deadline may be passed over that."""
        ...

    def verdict(self, error: Exception) -> Verdict:
        """What an error of the client means."""
        ...


class AsyncPort(AsyncSender[R], Protocol[R]):
    """How one request is sent, and how its response is read on where it breaks."""

    def chunks(self, response: R) -> AsyncIterator[bytes]:
        """The body of a response as it comes over the wire."""
        ...

    def broken(self, text: str) -> Exception:
        """The client's own error for a body that is not as long as it should be."""
        ...


async def drive(port: AsyncSender[R]) -> R:
    """Send the request as often as its policy allows and return the reply."""
    plain = port.is_plain
    while True:
        done = None
        try:
            response = await (port.first() if plain else port.send(port.exchange.send, port.exchange.attempt_limit()))
            status = port.status(response)
            if port.is_read_at_once(response):
                done = status
                await port.settle(response)
        except Exception as error:
            delay = port.exchange.failed(error, port.verdict(error), done)
            if delay is None:
                raise
        else:
            if plain and status < 400:
                return response
            try:
                delay = port.exchange.answered(status, port.headers(response), response)
            except BaseException:  # from the caller's own `on_result`
                await port.close(response)
                raise
            if delay is None:
                return response
            await port.close(response)
        plain = False
        await port.start.runtime.asleep(delay)


async def leave(chunks: AsyncIterator[bytes]) -> None:
    """Close an async generator that is left before its end; trio complains of one that is not."""
    if isinstance(chunks, AsyncGeneratorType) and chunks.ag_frame is not None:  # None once it has come to its end
        with suppress(RuntimeError):  # another task is reading it, and is about to find the reply closed
            await chunks.aclose()


class _Nothing:
    """The rest of a body of which no byte is missing; no generator, since trio complains of one that is not read."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration


class AsyncReader(Generic[R]):
    """The body of a reply, as an async iterator.

    Where it breaks, it goes on in further replies, or the error is given a report. `chunks` are those of the first
    reply and `close` closes it. Close the reader in the end: it closes whatever reply it has come to.
    """

    __slots__ = ("_chunks", "_close", "_download", "_handed_out", "_headers", "_port", "_status")

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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
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
            else:
                if chunk is None:
                    self._handed_out.forget()
                    if self._download is not None:
                        self._download.finished()
                    raise StopAsyncIteration
        self._handed_out.add(chunk)
        return chunk

    async def aclose(self) -> None:
        """Close the reply that the body comes from."""
        try:
            await leave(self._chunks)
        finally:
            await self._close()

    def _measure(self, download: Download, chunk: bytes | None) -> None:
        """Raise the client's error where a continued body is not as long as it should be; None is its end."""
        wrong = download.measure(self._handed_out.count + len(chunk or b""), ended=chunk is None)
        if wrong is not None:
            raise self._port.broken(wrong)

    async def _resume(self, error: Exception) -> bytes | None:
        """Find a response that continues the body: return the first of the rest, perhaps b""; None to raise `error`."""
        port = self._port
        if not is_continued(port.exchange.request.method, self._status):
            port.exchange.broke_off(error, self._status)
            return None
        if self._download is None:
            self._download = Download(port.exchange, self._status, self._headers, self._handed_out)
        download = self._download
        delay = download.broken(error, begun(port.verdict(error)))
        while delay is not None:
            await self.aclose()
            await port.start.runtime.asleep(delay)
            try:
                return await self._open(download, await port.send(download.send, download.attempt_limit()))
            except Refused as refusal:
                delay = download.failed(error, refusal, TRANSIENT)
            except Exception as again:
                delay = download.failed(error, again, port.verdict(again))
        await self.aclose()  # a body that is too long would go on
        self._download = None  # who reads on after the error finds nothing more, and that is no success
        return None

    async def _open(self, download: Download, response: R) -> bytes:
        """Read on in `response` and return the first of the rest; raises Refused if it does not continue the body."""
        port = self._port
        self._close = partial(port.close, response)
        try:
            is_read = download.check(port.status(response), port.headers(response))
        except Refused:
            await port.close(response)
            raise
        if not is_read:
            await port.close(response)
            self._chunks = _Nothing()
            return b""
        self._chunks = port.chunks(response)
        rest = b""
        while download.skips:
            rest = download.skip(await anext(self._chunks, b""))
        return rest
