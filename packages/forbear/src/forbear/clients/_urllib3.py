"""The meaning of urllib3's errors, raised by urllib3 itself or wrapped by requests.

`forbear.evidence.table` says why only the function that raised an error can prove that nothing was sent.
"""

try:
    from urllib3 import exceptions
except ImportError as error:
    raise ImportError(
        'forbear.clients.urllib3 needs urllib3; install it with: pip install "forbear[urllib3]"'
    ) from error

from forbear.core.chain import chain
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.evidence.table import was_opening
from forbear.exchange.interrupt import has_frame
from forbear.http.status import TRANSIENT_STATUSES, verdict_of_refusal

_TUNNEL = "Tunnel connection failed: "

_NO_CONNECTION = "Failed to establish a new connection: "
"""The words after which the reason stands, and before which the host."""


_TRANSIENT = (
    exceptions.TimeoutError,
    exceptions.EmptyPoolError,
    exceptions.ClosedPoolError,
    exceptions.ProtocolError,
    exceptions.ProxyError,
    exceptions.SSLError,
    ConnectionError,
    TimeoutError,
)


def verdict_of(error: Exception, *wrapping: type[Exception]) -> Verdict:
    """Return the verdict on an error, by its causes and by the functions that raised them.

    `wrapping` are the errors of the library around urllib3 that mean a broken connection.

    NOT_EXECUTED: a connection error that was raised while the connection was being opened. TRANSIENT (outcome unknown):
    any later connection error, and an error of `wrapping` that wraps none of urllib3, as other adapters and mocks raise
    it. PERMANENT: an untrusted certificate, a TLS setting that urllib3 refuses, and every error that is not one of the
    connection. A tunnel that the proxy refuses is PERMANENT unless its status is worth a retry, or a SOCKS proxy
    refuses it for a passing reason.
    """
    import ssl

    causes = list(chain(error))
    refused = _has(causes, exceptions.SSLError) and not _has(causes[1:], OSError)  # requests' errors are OSErrors
    if refused or _has(causes, ssl.SSLCertVerificationError):
        return PERMANENT  # a certificate or a setting that urllib3 itself refuses; no other attempt changes it
    if not _has(causes, *_TRANSIENT):
        return TRANSIENT if isinstance(error, wrapping) and not _has(causes, exceptions.HTTPError) else PERMANENT
    stages = (was_opening(cause.__traceback__) for cause in causes)
    if not next((stage for stage in stages if stage is not None), False):  # the first that shows opening or sending
        return TRANSIENT
    socks = next((cause for cause in causes if has_frame(cause, module="urllib3.contrib.socks")), None)
    if socks is not None:
        return verdict_of_refusal(str(socks).partition(_NO_CONNECTION)[2])
    status = next(filter(None, map(_refusal, causes)), None)
    return NOT_EXECUTED if status is None or status in TRANSIENT_STATUSES else PERMANENT


def _has(causes: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _refusal(cause: BaseException) -> int | None:
    """Return the status by which a proxy refused a tunnel, 0 if it cannot be read; None for any other cause.

    Only a plain OSError with http.client's text counts, because a server's own text may look the same.
    """
    text = str(cause)
    if type(cause) is not OSError or not text.startswith(_TUNNEL):
        return None
    status = text.removeprefix(_TUNNEL)[:3]
    return int(status) if status.isdecimal() else 0
