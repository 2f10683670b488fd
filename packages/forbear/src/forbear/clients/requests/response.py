"""Responses of requests whose body comes from memory, or from a reader that continues it where it breaks."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import requests
import urllib3
from requests.exceptions import ChunkedEncodingError, RequestException

from forbear.core.report import ATTRIBUTE, Report, attach, report
from forbear.exchange.http.drive import Port
from forbear.exchange.http.reader import Reader
from forbear.exchange.http.responses import GivenUp

_PIECE = 64 * 1024


class GivenUpResponse(GivenUp, requests.Response):
    """A response on which forbear gave up."""


def attach_report(response: Any, report: Report) -> None:
    """Attach a report to a response, which keeps it when it is pickled."""
    setattr(response, ATTRIBUTE, report)
    if isinstance(response, requests.Response):
        known: Any = response
        known.__attrs__ = [*response.__attrs__, ATTRIBUTE]
        if type(response) is requests.Response:
            known.__class__ = GivenUpResponse


def pieces(response: requests.Response) -> Iterator[bytes]:
    """Yield the body of a response as it arrives, not decoded; urllib3's errors become those of requests."""
    raw: Any = response.raw
    try:
        while piece := raw.read1(_PIECE, decode_content=False):
            yield piece
            if raw.length_remaining == 0:
                break
    except urllib3.exceptions.ProtocolError as error:
        raise ChunkedEncodingError(error) from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ConnectionError(error) from error
    except urllib3.exceptions.SSLError as error:
        raise requests.exceptions.SSLError(error) from error


def keep(response: requests.Response, content: bytes, rest: Iterator[bytes] | None = None) -> None:
    """Let the `raw` of a response yield `content`, still coded, and then what is left in `rest`."""
    first: Any = response.raw
    is_chunked = rest is not None and "transfer-encoding" in response.headers
    close: Any = first.close if rest is not None else lambda: None
    response.raw = _Raw(first, _File(chain((content,), rest or ()), close, is_chunked=is_chunked))


def copy_response(response: requests.Response, kind: type[requests.Response] = requests.Response) -> requests.Response:
    """Return a copy of a response, of another kind, with the same `raw`."""
    copy = kind.__new__(kind)  # every attribute of a new one is overwritten
    vars(copy).update(vars(response))
    return copy


def read(port: Port[requests.Response], response: requests.Response) -> None:
    """Read the whole body of a response into its `content`; the body must need no decoding.

    Where the body of a GET breaks, it is continued by further requests. If that is impossible, the error gets a report.
    A body that was read before is left alone.
    """
    known: Any = response
    if known._content_consumed:  # read by the caller's own `on_result`
        return
    reader = Reader(port, response.status_code, response.headers, pieces(response), response.close)
    reader.whole = True
    try:
        known._content = b"".join(reader)
    except BaseException:
        reader.close()
        raise
    known._content_consumed = True


def continue_body(port: Port[requests.Response], response: requests.Response, *, whole: bool) -> requests.Response:
    """Return a copy of the response, whose body is continued by further requests where it breaks.

    Only the body of a GET is continued. If that is impossible, the error gets a report. `whole` is True if the session
    reads the whole body before the caller gets the response.
    """
    copy = copy_response(response, _Response)
    reader = Reader(port, response.status_code, response.headers, pieces(response), response.close)
    reader.whole = whole
    is_chunked = "transfer-encoding" in response.headers
    copy.raw = _Raw(response.raw, _File(reader, reader.close, is_chunked=is_chunked))
    return copy


class _Response(GivenUp, requests.Response):
    """A response whose `iter_content` copies the report of a broken body to the error that requests makes of it."""

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """Iterate over the body; if forbear gave up on a broken body, the error has the report."""
        return _with_report(super().iter_content(chunk_size, decode_unicode))


def _with_report(pieces: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from pieces
    except RequestException as error:
        known = report(error.args[0]) if error.args else None
        if known is not None:
            attach(error, known)
        raise


class _Raw(urllib3.HTTPResponse):
    """The `raw` of a response: like the `raw` of `first`, but its bytes come from `file`."""

    def __init__(self, first: Any, file: "_File") -> None:
        super().__init__(
            body=file,  # type: ignore[arg-type] # all it needs is what a file has
            headers=first.headers,
            status=first.status,
            version=first.version,
            reason=first.reason,
            preload_content=False,
            decode_content=first.decode_content,
            original_response=getattr(first, "_original_response", None),  # requests reads the cookies from it
            msg=getattr(first, "msg", None),
            request_url=first.geturl(),
        )

    def stream(self, amt: int | None = _PIECE, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        """Iterate over the body in chunks of `amt` bytes; those of a chunked response come as they arrive."""
        if not self.chunked:
            yield from super().stream(amt, decode_content)
            return
        while piece := self.read1(amt, decode_content):
            yield piece


class _File:
    """A file of the bytes that `source` yields; an error of the source is raised after the bytes before it.

    As in http.client, the error comes instead of these bytes if all were requested, or `amt` bytes of a chunked
    response.
    """

    def __init__(self, source: Iterator[bytes], close: Callable[[], object], *, is_chunked: bool = False) -> None:
        self._source = source
        self._close = close
        self._is_chunked = is_chunked
        self._buffer = bytearray()
        self._ended = False
        self._broken: BaseException | None = None

    @property
    def closed(self) -> bool:
        """True if no more bytes and no error will come."""
        return self._ended and not self._buffer and self._broken is None

    def close(self) -> None:
        self._ended, self._broken = True, None
        self._buffer.clear()
        self._close()

    def read(self, amt: int | None = None) -> bytes:
        """Return `amt` bytes, or all for None; fewer only at the end or before an error.

        The error is raised by the next read. For None, and for a chunked response that lacks bytes, it is raised at
        once and the bytes are dropped.
        """
        while not self._ended and (amt is None or len(self._buffer) < amt):
            self._pull()
        if self._broken is not None and (amt is None or (self._is_chunked and len(self._buffer) < amt)):
            self._buffer.clear()  # a caller would mistake them for the bytes it requested
        return self._take(amt)

    def read1(self, amt: int | None = None) -> bytes:
        """Return at most `amt` bytes (None: all) of those that are there, once there are any; b"" at the end."""
        if not self._buffer and not self._ended:
            self._pull()
        return self._take(amt)

    def _pull(self) -> None:
        try:
            self._buffer += next(self._source)
        except StopIteration:
            self._ended = True
        except RequestException as error:  # readers of `raw` expect urllib3's error; requests converts that one
            self._ended, self._broken = True, error.args[0]
            known = report(error)
            if known is not None:
                attach(error.args[0], known)

    def _take(self, amt: int | None) -> bytes:
        if not self._buffer and self._broken is not None:
            broken, self._broken = self._broken, None
            try:
                raise broken
            finally:
                del broken  # otherwise the error's traceback would refer to the error itself
        piece = bytes(self._buffer[:amt])
        del self._buffer[:amt]
        return piece
