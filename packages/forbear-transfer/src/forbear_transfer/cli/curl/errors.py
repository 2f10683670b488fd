"""The exit codes of `forbear curl`, which are those of curl, and the code for each error of httpx."""

import socket
import ssl

import httpx

from forbear.adapters import error_chain
from forbear.cli.kit.output import Problem

WRONG_URL, UNRESOLVED, NOT_CONNECTED, PARTIAL, HTTP_ERROR, NOT_WRITTEN, TIMED_OUT = 3, 6, 7, 18, 22, 23, 28
TLS_FAILED, TOO_MANY_REDIRECTS, NO_RESPONSE, NOT_SENT, NOT_RECEIVED = 35, 47, 52, 55, 56
BAD_CERTIFICATE, UNTRUSTED, BAD_ENCODING, BAD_CA_FILE, HTTP2_FAILED = 58, 60, 61, 77, 92

_CURES = {
    UNRESOLVED: "check the host name",
    NOT_CONNECTED: "check host and port, and that the server runs",
    TIMED_OUT: "--max-time and --connect-timeout limit an attempt; after --timeout, no further attempt begins",
    UNTRUSTED: "name the server's CA certificate with --cacert FILE",
}


class CurlFailed(Problem):
    """A failure with one of curl's exit codes."""

    def __init__(self, message: str, code: int, hint: str | None = None) -> None:
        super().__init__(message, _CURES.get(code) if hint is None else hint)
        vars(self)["exit_code"] = code  # of the class otherwise


def failure_of(error: Exception) -> CurlFailed:
    """Return the failure for an error that httpx or the network raised."""
    if _is_of_protocol(error):
        return CurlFailed("a file changed its length while it was sent", NOT_SENT, "send it again")
    code = code_of(error)
    causes = error_chain(error)
    reason = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    if code in (UNRESOLVED, NOT_CONNECTED):
        return CurlFailed(f"cannot connect to {_name_host(error)}: {reason or error}", code)
    if isinstance(error, httpx.TimeoutException):
        reason = None  # the end of a connection whose time is over is no reason
    text = reason or str(error) or type(error).__name__
    return CurlFailed(f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text, code)


def code_of(error: Exception) -> int:
    """Return curl's exit code for an error of httpx, by its class and its causes."""
    causes = tuple(error_chain(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return UNTRUSTED
    if isinstance(error, UnicodeError):  # of the host name, which DNS cannot encode
        return UNRESOLVED
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return TIMED_OUT
    if isinstance(error, httpx.ConnectError):
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return UNRESOLVED
        return TLS_FAILED if any(isinstance(cause, ssl.SSLError) for cause in causes) else NOT_CONNECTED
    if isinstance(error, httpx.RemoteProtocolError):
        return _find_protocol_code(str(error))
    if isinstance(error, httpx.WriteError):
        return NOT_SENT
    return BAD_ENCODING if isinstance(error, httpx.DecodingError) else NOT_RECEIVED


def is_of_run(error: Exception) -> bool:
    """Return whether an error is one of httpx, of the network, or of a body that has not the length that it stated."""
    return isinstance(error, (httpx.HTTPError, OSError, UnicodeError)) or _is_of_protocol(error)


def _is_of_protocol(error: Exception) -> bool:
    """Return whether h11 or h2 raised an error that httpx does not wrap: they refuse what breaks their protocol."""
    return type(error).__module__.partition(".")[0] in ("h11", "h2")


def _name_host(error: Exception) -> str:
    try:
        request: httpx.Request = getattr(error, "request")  # noqa: B009 - it raises if there is none
    except (AttributeError, RuntimeError):
        return "the server"
    return request.url.netloc.decode("ascii")


def _find_protocol_code(text: str) -> int:
    if "without sending a response" in text:
        return NO_RESPONSE
    if "StreamReset" in text or "ConnectionTerminated" in text:
        return HTTP2_FAILED
    # h11's words for a body that is too short, and those of forbear's own reader
    return PARTIAL if "incomplete" in text or "without sending complete" in text or "bytes" in text else NOT_RECEIVED
