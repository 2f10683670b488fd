"""What an adapter needs of httpx or httpx2 (the names are the same), and what errors mean. It imports neither."""

from collections.abc import Callable, Iterator
from typing import Any

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.exchange.http.adrive import AsyncReader
from forbear.exchange.http.drive import Reader
from forbear.http.status import TRANSIENT_STATUSES

_REFUSED_STREAM = 7
"""The HTTP/2 error code by which a server says that it has not looked at a request."""

_BROKEN_OFF = "ConnectionNotAvailable"
"""The error of httpcore, which httpx passes on, for a response that had begun when HTTP/2's GOAWAY named its stream."""


class HttpxLibrary:
    """The names of one client library that an adapter needs, and its kinds of stream."""

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
        self.proxy = module.ProxyError
        self.RequestBody: Any = type("RequestBody", (_RequestBody, module.SyncByteStream), {})
        self.ReplyBody: Any = type("ReplyBody", (Reader, module.SyncByteStream), {"__slots__": ()})
        self.AsyncRequestBody: Any = type("AsyncRequestBody", (_AsyncRequestBody, module.AsyncByteStream), {})
        self.AsyncReplyBody: Any = type("AsyncReplyBody", (AsyncReader, module.AsyncByteStream), {"__slots__": ()})

    def verdict(self, error: Exception) -> Verdict:
        """Return what an error of the library means: no connection is no execution, a broken one tells nothing.

        It holds as long as no response has begun (see `exchange.begun`). The library raises the errors of `unsent` only
        while it opens a connection or waits for one.
        """
        if isinstance(error, self.unsent):
            return PERMANENT if _is_untrusted(error) else NOT_EXECUTED
        if isinstance(error, self.proxy):  # its text begins with the status of the proxy
            status = str(error)[:3]
            return NOT_EXECUTED if status.isdecimal() and int(status) in TRANSIENT_STATUSES else PERMANENT
        if isinstance(error, self.lost) or type(error).__name__ == _BROKEN_OFF:
            return NOT_EXECUTED if _is_refused_stream(error) or _is_before_tunnel(error) else TRANSIENT
        return PERMANENT


class _RequestBody:
    """The stream of a request that is sent again; the pool of HTTP/2 connections may itself iterate it once more."""

    def __init__(self, chunks: Callable[[int], Any], skip: int) -> None:
        self._chunks = chunks
        self._skip = skip

    def __iter__(self) -> Any:
        return self._chunks(self._skip)


class _AsyncRequestBody:
    """The same for async clients."""

    def __init__(self, chunks: Callable[[int], Any], skip: int) -> None:
        self._chunks = chunks
        self._skip = skip

    def __aiter__(self) -> Any:
        return self._chunks(self._skip)


def _causes(error: object) -> Iterator[BaseException]:
    """An error and what led to it; httpcore keeps that as an argument, and drops the cause on its way."""
    while isinstance(error, BaseException):
        yield error
        argument = error.args[0] if error.args else None
        error = argument if isinstance(argument, BaseException) else error.__cause__


def _is_untrusted(error: Exception) -> bool:
    """Whether the server's certificate was refused, which another attempt does not change."""
    import ssl

    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _is_before_tunnel(error: Exception) -> bool:
    """Return whether a proxy broke off before its tunnel was open, which is before the request was sent.

    The tunnel itself says so: httpcore keeps that in the object through whose method the error passed.
    """
    for cause in _causes(error):
        trace = cause.__traceback__
        while trace is not None:
            frame, trace = trace.tb_frame, trace.tb_next
            module: str = frame.f_globals.get("__name__", "")
            if module.endswith(".http_proxy") and getattr(frame.f_locals.get("self"), "_connected", None) is False:
                return True
    return False


def _is_refused_stream(error: Exception) -> bool:
    """Return whether the server said of the request's HTTP/2 stream that it has not looked at it (RFC 9113 §8.7)."""
    for cause in _causes(error):
        event: object = cause.args[0] if cause.args else None
        kind = type(event).__name__
        if kind == "StreamReset" and getattr(event, "error_code", None) == _REFUSED_STREAM:
            return True
        if kind == "ConnectionTerminated" and getattr(event, "last_stream_id", None) == 0:
            return True
    return False
