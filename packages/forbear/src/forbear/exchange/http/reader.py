"""The body of a response that may break: an iterator that continues it in further responses.

Generated from areader.py: change that file, then run `make unasync`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Generic, TypeVar

from forbear.core.verdict import TRANSIENT
from forbear.exchange.call_state import drop_proof
from forbear.exchange.http.download import Download, Refused
from forbear.exchange.http.drive import Port
from forbear.exchange.http.responses import HandedOut, is_continued

R = TypeVar("R")


class Reader(Iterator[bytes], Generic[R]):
    """The body of a response, as an iterator.

    The body of a GET that breaks is continued in further responses. Where that is impossible, its error is raised. It
    gets a report if the policy gave up a continuation, or if repeating the request could do harm. `chunks` and `close`
    belong to the first response. Close the reader at the end: it closes the response it is reading.

    Set `whole` before the first byte if the caller gets the body only as a whole. Then nothing is handed out before it
    is complete, so that it can start over with any other response. Example: see `drive`.
    """

    __slots__ = ("whole", "_chunks", "_close", "_download", "_handed_out", "_headers", "_held", "_port", "_status")

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
        self.whole = False
        self._held: list[bytes] | None = None  # of a body that is read as a whole

    def __next__(self) -> bytes:
        if self.whole:
            return self._next_of_whole()
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
            except BaseException as interrupt:
                self._port.exchange.cut_off(interrupt)
                raise
            else:
                if chunk is None:
                    self._handed_out.forget()
                    if self._download is not None:
                        self._download.run.succeeded()
                    raise StopIteration
        self._handed_out.add(chunk)
        return chunk

    def _next_of_whole(self) -> bytes:
        """Return the next bytes of the complete body, which the first call reads."""
        if self._held is None:
            held: list[bytes] = []
            self._held = held
            self._handed_out.held = not self._handed_out.count
            self.whole = False
            try:
                while (chunk := next(self, None)) is not None:
                    held.append(chunk)
            except BaseException:
                held.clear()
                raise
            finally:
                self.whole = True
            held.reverse()
        if not self._held:
            raise StopIteration
        return self._held.pop()

    def close(self) -> None:
        self.end()
        self._close_response()

    def end(self) -> None:
        """Count the end of an attempt in the retry budget, if the body is left before its end."""
        if self._download is not None:
            self._download.run.end()

    def _close_response(self) -> None:
        self._close()

    def _measure(self, download: Download, chunk: bytes | None) -> None:
        """Raise the client's error if `chunk` (None: the end) gives a continued body the wrong length."""
        wrong = download.measure(self._handed_out.count + len(chunk or b""), ended=chunk is None)
        if wrong is not None:
            raise self._port.broken(wrong)

    def _resume(self, error: Exception) -> bytes | None:
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
        while grant is not None and grant.ask():
            self._close_response()
            grant.sleep()
            try:
                return self._open(download, port.send(download.variation, download.run.attempt_limit()))
            except Refused as refusal:
                grant = download.failed(error, refusal, TRANSIENT)
            except Exception as again:
                grant = download.failed(error, again, port.verdict(again))
        self._close_response()  # a body that is too long would continue
        self._download = None  # reading on after the error must not look like success
        return None

    def _open(self, download: Download, response: R) -> bytes:
        """Let `response` continue the body; return the new bytes that arrived together with skipped ones, perhaps b"".

        Raises Refused if the response does not fit.
        """
        port = self._port
        self._close = partial(port.close, response)
        try:
            is_read = download.check(port.status(response), port.headers(response))
        except Refused:
            port.close(response)
            raise
        if download.is_new:
            if self._held is not None:
                self._held.clear()
            port.adopt(self._headers, response)
        if not is_read:
            port.close(response)
            self._chunks = iter(())
            return b""
        self._chunks = port.chunks(response)
        rest = b""
        while download.skips:
            rest = download.skip(next(self._chunks, b""))
        return rest
