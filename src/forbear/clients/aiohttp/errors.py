"""What errors of aiohttp mean, and which of them it answers by sending the request once more, all by itself."""

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.http.method import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES

_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch)
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError, TimeoutError)


def verdict(error: Exception) -> Verdict:
    """What an error means: no connection is no execution, a connection that broke tells nothing."""
    if isinstance(error, _UNTRUSTED) or type(error) is TimeoutError:
        return PERMANENT  # a certificate stays what it is, and the session's `total` timeout is over for good
    if isinstance(error, _UNSENT):
        return NOT_EXECUTED
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NOT_EXECUTED if error.status in TRANSIENT_STATUSES else PERMANENT
    if isinstance(error.__cause__, ContentEncodingError):
        return PERMANENT
    if isinstance(error, _LOST) or isinstance(error.__cause__, HttpProcessingError):
        return TRANSIENT
    return PERMANENT


def is_sent_again(request: aiohttp.ClientRequest, error: Exception) -> bool:
    """Whether aiohttp answers an error by sending the request once more: it takes the connection for a stale one."""
    if isinstance(error, _UNSENT) or not isinstance(error, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError):
        return False
    body = request.body
    return (request.method in READS or request.method in IDEMPOTENT) and (isinstance(body, bytes) or not body.consumed)
