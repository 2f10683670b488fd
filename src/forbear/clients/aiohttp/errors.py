"""Decide what errors of aiohttp mean, and which of them it answers by sending the request once more by itself.

The rule: an error is "not executed" only if aiohttp raised it while it was opening the connection of this very request.
"""

from types import TracebackType

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.http.method import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES

_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError, TimeoutError)


def verdict(error: Exception) -> Verdict:
    """Return what an error means: no connection is no execution, a connection that broke tells nothing."""
    if isinstance(error, _UNTRUSTED) or type(error) is TimeoutError:
        return PERMANENT  # a certificate stays what it is, and the session's `total` timeout is over for good
    if isinstance(error, _UNSENT):
        return NOT_EXECUTED
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NOT_EXECUTED if error.status in TRANSIENT_STATUSES else PERMANENT
    if isinstance(error.__cause__, ContentEncodingError):
        return PERMANENT
    if isinstance(error, _LOST) or isinstance(error.__cause__, HttpProcessingError):
        return NOT_EXECUTED if _passed(error, "aiohttp.connector", "connect") else TRANSIENT
    return PERMANENT


def is_of_another_request(error: Exception) -> bool:
    """Return whether an error that a middleware sees is that of a request which another middleware made."""
    return _passed(error, "aiohttp.client", "_request")


def _passed(error: Exception, module: str, function: str) -> bool:
    """Return whether an error was raised within a function."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            return True
        trace = trace.tb_next
    return False


def is_sent_again(request: aiohttp.ClientRequest, error: Exception) -> bool:
    """Return whether aiohttp answers an error by sending the request again: it takes the connection for a stale one."""
    if isinstance(error, _UNSENT) or not isinstance(error, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError):
        return False
    body = request.body
    return (request.method in READS or request.method in IDEMPOTENT) and (isinstance(body, bytes) or not body.consumed)
