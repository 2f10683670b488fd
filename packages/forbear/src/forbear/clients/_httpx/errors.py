"""The classes of httpx or httpx2 that the adapters need, and the verdict on each of the library's errors."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from forbear.core.chain import chain
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.exchange.http.areader import AsyncReader
from forbear.exchange.http.reader import Reader
from forbear.exchange.http.responses import GivenUp
from forbear.exchange.interrupt import frames_of
from forbear.http.status import TRANSIENT_STATUSES, verdict_of_refusal
from forbear.services.errors import is_untrusted

_REFUSED_STREAM = 7
"""The HTTP/2 error code by which a server says that it has not processed a request."""

_SENDING = ("handle_request", "handle_async_request")
"""The names of httpcore's methods that send one request, sync and async."""

_RESET = "StreamClosedError"
"""The class name of h2's error for a stream that the server reset while the request's body was being sent."""

_DEPTH = 12
"""The frames in which the library's own reading of a body is looked for; it has four or five of its own."""

_BROKEN_OFF = "ConnectionNotAvailable"
"""The class name of httpcore's error for a response that had begun when an HTTP/2 GOAWAY ended its stream.

httpx raises it unchanged.
"""


class HttpxLibrary:
    """The classes of httpx or httpx2 (`module`), our own bodies derived from them, and the verdicts on its errors."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.Request = module.Request
        self.ByteStream = module.ByteStream
        self.Iterated: type = type(module.Request("PUT", "http://localhost", content=()).stream)
        """The stream of whatever is iterated, files included; it has no public name."""
        self.Form: Any = type(module.Request("PUT", "http://localhost", files={"file": b""}).stream)
        """The stream of a form with files; it has no public name."""
        self.unsent = (module.ConnectError, module.ConnectTimeout, module.PoolTimeout)
        self.lost = (
            module.TimeoutException,
            module.NetworkError,
            module.RemoteProtocolError,
            ConnectionError,
            TimeoutError,
        )
        self.broken = module.RemoteProtocolError
        self.raised = (module.TransportError,)
        self.proxy = module.ProxyError
        self.RequestBody: Any = type("RequestBody", (_RequestBody, module.SyncByteStream), {})
        self.Begun: Any = type("Begun", (_Begun, module.SyncByteStream), {})
        self.AsyncBegun: Any = type("AsyncBegun", (_Begun, module.AsyncByteStream), {})
        begin = {"__slots__": (), "__iter__": _beginning(module.Response.read)}
        self.ResponseBody: Any = type("ResponseBody", (Reader, module.SyncByteStream), begin)
        self.AsyncRequestBody: Any = type("AsyncRequestBody", (_RequestBody, module.AsyncByteStream), {})
        begin = {"__slots__": (), "__aiter__": _beginning(module.Response.aread)}
        self.AsyncResponseBody: Any = type("AsyncResponseBody", (AsyncReader, module.AsyncByteStream), begin)
        own = f"forbear.clients.{module.__name__}"  # where pickle finds the class
        self.GivenUpResponse: Any = type("GivenUpResponse", (GivenUp, module.Response), {"__module__": own})

    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict on an error raised before a response began; the exchange corrects that on a later one.

        - NOT_EXECUTED: no connection could be opened, or none was free in time. A proxy, of HTTP or SOCKS, did not open
          its tunnel for a passing reason. Or the server did not process the HTTP/2 stream.
        - TRANSIENT (outcome unknown): the connection broke or timed out otherwise.
        - PERMANENT: every other error, an untrusted certificate and a tunnel that the proxy refuses for good included.

        The library raises the errors of `unsent` only while it opens a connection or waits for one.
        """
        if isinstance(error, self.unsent):
            return PERMANENT if any(map(is_untrusted, chain(error))) else NOT_EXECUTED
        if _is_of_socks(error):
            return verdict_of_refusal(str(error))
        if isinstance(error, self.proxy):  # its text begins with the status of the proxy
            status = str(error)[:3]
            return NOT_EXECUTED if status.isdecimal() and int(status) in TRANSIENT_STATUSES else PERMANENT
        if isinstance(error, self.lost) or type(error).__name__ == _BROKEN_OFF or _is_reset_while_sending(error):
            return NOT_EXECUTED if _is_unprocessed_stream(error) or _is_before_tunnel(error) else TRANSIENT
        return PERMANENT


def _beginning(read: Any) -> Callable[[Any], Any]:
    """Return the method that begins a body; it finds on the stack whether the library's `read` takes all of it."""
    code = read.__code__

    def begin(body: Any) -> Any:
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_DEPTH):
            if frame is None or frame.f_code is code:
                break
            frame = frame.f_back
        body.whole = frame is not None and frame.f_code is code
        return body

    return begin


class _RequestBody:
    """A request's body without its first `skip` bytes; iterable again, as an HTTP/2 pool may do by itself."""

    def __init__(self, chunks: Callable[[int], Any], skip: int) -> None:
        self._chunks = chunks
        self._skip = skip

    def __iter__(self) -> Any:
        return self._chunks(self._skip)

    __aiter__ = __iter__  # where `chunks` returns an async iterator


class _Begun:
    """The body of a response of which the chunks `head` were read; the others come from `rest`, an iterator.

    `close` closes the stream that `rest` comes from.
    """

    def __init__(self, head: list[bytes], rest: Any, close: Callable[[], Any]) -> None:
        self._head = head
        self._rest = rest
        self.close = self.aclose = close

    def __iter__(self) -> Any:
        return self

    __aiter__ = __iter__

    def __next__(self) -> bytes:
        chunk: bytes = self._head.pop(0) if self._head else next(self._rest)
        return chunk

    async def __anext__(self) -> bytes:
        chunk: bytes = self._head.pop(0) if self._head else await anext(self._rest)
        return chunk


def _is_before_tunnel(error: Exception) -> bool:
    """Return whether an error was raised before a proxy's tunnel was open, so before the request was sent."""
    frames = _frames(error, ".http_proxy")
    return any(getattr(frame.f_locals.get("self"), "_connected", None) is False for frame in frames)


def _is_of_socks(error: Exception) -> bool:
    """Return whether an error was raised while a SOCKS proxy was asked for a connection, so before the request."""
    return any(frame.f_code.co_name == "_init_socks5_connection" for frame in _frames(error, ".socks_proxy"))


def _frames(error: Exception, module: str) -> Iterator[FrameType]:
    """Yield the frames, in the tracebacks of an error and its causes, of a module whose name ends so."""
    for cause in chain(error):
        yield from (frame for frame in frames_of(cause) if frame.f_globals.get("__name__", "").endswith(module))


def _is_reset_while_sending(error: Exception) -> bool:
    """Return whether the server reset an HTTP/2 stream while the body was sent; the libraries blame the client."""
    return any(type(cause).__name__ == _RESET for cause in chain(error))


def _is_unprocessed_stream(error: Exception) -> bool:
    """Return whether the server certainly did not process the request's HTTP/2 stream (RFC 9113 §6.8 and §8.7).

    - The stream was reset with REFUSED_STREAM.
    - A GOAWAY names a last processed stream below this one. Its own id is in the traceback; 0 is below every stream.
    - The stream was never opened, so that no byte of the request was sent.
    """
    for cause in chain(error):
        event: object = cause.args[0] if cause.args else None
        kind = type(event).__name__
        if kind == "StreamReset" and getattr(event, "error_code", None) == _REFUSED_STREAM:
            return True
        last: object = getattr(event, "last_stream_id", None) if kind == "ConnectionTerminated" else None
        if last == 0 or _is_untouched(last, cause):
            return True
    return False


def _is_untouched(last: object, cause: BaseException) -> bool:
    """Return whether the stream of a request was never opened, or is above `last` and had no response.

    `last` is the last stream that the server may have processed, None if it did not say. The traceback of `cause` has
    the connection and the id, in the frame of httpcore's method that sends one request over HTTP/2.
    """
    for frame in frames_of(cause):
        if frame.f_code.co_name not in _SENDING or not frame.f_globals.get("__name__", "").endswith(".http2"):
            continue
        stream = frame.f_locals.get("stream_id")
        state = getattr(frame.f_locals.get("self"), "_h2_state", None)
        highest: object = getattr(state, "highest_outbound_stream_id", None)
        if not isinstance(highest, int):
            return False
        if stream is None or stream > highest:
            return True
        known = getattr(getattr(state, "streams", {}).get(stream), "state_machine", None)
        return isinstance(last, int) and stream > last and getattr(known, "headers_received", True) is None
    return False
