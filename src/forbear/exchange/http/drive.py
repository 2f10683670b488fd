"""The sync loops around an exchange and a download; a port is the adapter's own way to send. They decide nothing."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from forbear.core.verdict import TRANSIENT, Verdict
from forbear.exchange.http.download import Download, HandedOut, Refused
from forbear.exchange.http.exchange import Exchange, Start, begun
from forbear.exchange.http.responses import is_continued
from forbear.exchange.http.send import Send

R = TypeVar("R")


class Port(Protocol[R]):
    """How one request is sent by one client."""

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

    def first(self) -> R:
        """Send the caller's request as it is."""
        ...

    def send(self, send: Send, limit: float | None) -> R:
        """Send a variation of the request; `limit` is the attempt timeout in seconds."""
        ...

    def status(self, response: R) -> int:
        """The status of a response."""
        ...

    def headers(self, response: R) -> Mapping[str, str]:
        """The headers of a response, by lower-case names."""
        ...

    def chunks(self, response: R) -> Iterator[bytes]:
        """The body of a response as it comes over the wire."""
        ...

    def is_read_at_once(self, response: R) -> bool:
        """Whether the body of a response is to be read before anything else is decided."""
        ...

    def settle(self, response: R) -> None:
        """Read the whole body of a response."""
        ...

    def close(self, response: R) -> None:
        """Close a response at once, without waiting for the rest of it: no deadline may be passed over that."""
        ...

    def verdict(self, error: Exception) -> Verdict:
        """What an error of the client means."""
        ...

    def broken(self, text: str) -> Exception:
        """The client's own error for a body that is not as long as it should be."""
        ...


def drive(port: Port[R]) -> R:
    """Send the request as often as its policy allows and return the reply."""
    plain = port.is_plain
    while True:
        done = None
        try:
            response = port.first() if plain else port.send(port.exchange.send, port.exchange.attempt_limit())
            status = port.status(response)
            if port.is_read_at_once(response):
                done = status
                port.settle(response)
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
                port.close(response)
                raise
            if delay is None:
                return response
            port.close(response)
        plain = False
        port.start.runtime.sleep(delay)


class Reader(Generic[R]):
    """The body of a reply, as an iterator.

    Where it breaks, it goes on in further replies, or the error is given a report. `chunks` are those of the first
    reply and `close` closes it. Close the reader in the end: it closes whatever reply it has come to.
    """

    __slots__ = ("_chunks", "_close", "_download", "_handed_out", "_headers", "_port", "_status")

    def __init__(
        self,
        port: Port[R],
        status: int,
        headers: Mapping[str, str],
        chunks: Iterator[bytes],
        close: Callable[[], object],
    ) -> None:
        self._port = port
        self._status = status
        self._headers = headers
        self._chunks = chunks
        self._close = close
        self._download: Download | None = None  # until it breaks
        self._handed_out = HandedOut(status, headers)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk: bytes | None = b""
        while not chunk:
            try:
                chunk = next(self._chunks, None)
                if self._download is not None:
                    self._measure(self._download, chunk)
            except Exception as error:
                chunk = self._resume(error)
                if chunk is None:
                    raise
            else:
                if chunk is None:
                    self._handed_out.forget()
                    if self._download is not None:
                        self._download.finished()
                    raise StopIteration
        self._handed_out.add(chunk)
        return chunk

    def close(self) -> None:
        """Close the reply that the body comes from."""
        self._close()

    def _measure(self, download: Download, chunk: bytes | None) -> None:
        """Raise the client's error where a continued body is not as long as it should be; None is its end."""
        wrong = download.measure(self._handed_out.count + len(chunk or b""), ended=chunk is None)
        if wrong is not None:
            raise self._port.broken(wrong)

    def _resume(self, error: Exception) -> bytes | None:
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
            self.close()
            port.start.runtime.sleep(delay)
            try:
                return self._open(download, port.send(download.send, download.attempt_limit()))
            except Refused as refusal:
                delay = download.failed(error, refusal, TRANSIENT)
            except Exception as again:
                delay = download.failed(error, again, port.verdict(again))
        self.close()  # a body that is too long would go on
        self._download = None  # who reads on after the error finds nothing more, and that is no success
        return None

    def _open(self, download: Download, response: R) -> bytes:
        """Read on in `response` and return the first of the rest; raises Refused if it does not continue the body."""
        port = self._port
        self._close = partial(port.close, response)
        try:
            is_read = download.check(port.status(response), port.headers(response))
        except Refused:
            port.close(response)
            raise
        if not is_read:
            port.close(response)
            self._chunks = iter(())
            return b""
        self._chunks = port.chunks(response)
        rest = b""
        while download.skips:
            rest = download.skip(next(self._chunks, b""))
        return rest
