"""The classes of httpx or httpx2 that the adapters need, and the verdict on each of the library's errors."""

from collections.abc import Callable, Iterator
from typing import Any

from forbear.clients._given_up import GivenUp
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.exchange.http.adrive import AsyncReader
from forbear.exchange.http.drive import Reader
from forbear.http.status import TRANSIENT_STATUSES

_REFUSED_STREAM = 7
"""The HTTP/2 error code by which a server says that it has not processed a request."""

_BROKEN_OFF = "ConnectionNotAvailable"
"""The class name of httpcore's error for a response that had begun when an HTTP/2 GOAWAY ended its stream.

httpx raises it unchanged.
"""


class HttpxLibrary:
    """The classes of httpx or httpx2 (`module`) that the adapters need, and the verdicts on the library's errors.

    The classes of bodies are forbear's own, derived from the library's stream classes.
    """

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
        slots = {"__slots__": ()}
        self.ResponseBody: Any = type("ResponseBody", (Reader, module.SyncByteStream), slots)
        self.AsyncRequestBody: Any = type("AsyncRequestBody", (_RequestBody, module.AsyncByteStream), {})
        self.AsyncResponseBody: Any = type("AsyncResponseBody", (AsyncReader, module.AsyncByteStream), slots)
        own = f"forbear.clients.{module.__name__}"  # where pickle finds the class
        self.GivenUpResponse: Any = type("GivenUpResponse", (GivenUp, module.Response), {"__module__": own})

    def verdict(self, error: Exception) -> Verdict:
        """Return the verdict on an error raised before a response began; `exchange.begun` corrects a later one.

        - NOT_EXECUTED: no connection could be opened, or none was free in time. A proxy did not open its tunnel for a
          passing reason. Or the server refused the HTTP/2 stream.
        - TRANSIENT (outcome unknown): the connection broke or timed out otherwise.
        - PERMANENT: every other error, an untrusted certificate and a tunnel that the proxy refuses for good included.

        The library raises the errors of `unsent` only while it opens a connection or waits for one.
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
    """The stream of a request's body without its first `skip` bytes, which can be iterated again.

    Each iteration calls `chunks(skip)`. An HTTP/2 connection pool may iterate a stream a second time by itself.
    """

    def __init__(self, chunks: Callable[[int], Any], skip: int) -> None:
        self._chunks = chunks
        self._skip = skip

    def __iter__(self) -> Any:
        return self._chunks(self._skip)

    __aiter__ = __iter__  # where `chunks` returns an async iterator


def _causes(error: object) -> Iterator[BaseException]:
    """Yield `error` and then its causes: each time the first argument if that is an exception, else `__cause__`.

    httpcore keeps a cause as an argument.
    """
    while isinstance(error, BaseException):
        yield error
        argument = error.args[0] if error.args else None
        error = argument if isinstance(argument, BaseException) else error.__cause__


def _is_untrusted(error: Exception) -> bool:
    """Return whether an error was caused by a server's certificate that failed verification; no retry changes that."""
    import ssl

    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _is_before_tunnel(error: Exception) -> bool:
    """Return whether an error was raised while a proxy's tunnel was not yet open, so before the request was sent.

    The traceback shows it: httpcore keeps that state in the object whose method raised the error.
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
    """Return whether the server said that it did not process the request's HTTP/2 stream (RFC 9113 §8.7).

    It says so by resetting the stream with REFUSED_STREAM, or by a GOAWAY whose last processed stream is 0.
    """
    for cause in _causes(error):
        event: object = cause.args[0] if cause.args else None
        kind = type(event).__name__
        if kind == "StreamReset" and getattr(event, "error_code", None) == _REFUSED_STREAM:
            return True
        if kind == "ConnectionTerminated" and getattr(event, "last_stream_id", None) == 0:
            return True
    return False
