"""Judge the errors of functions that call a service by their shapes. Knows no service and no client.

The request is not seen here, so neither is its operation, nor whether it was the only one: a refused connection may be
that of a redirect, or of a second request. So a transport error never says that nothing was executed, unless the caller
knows that the function sends a single request (`of_one_request`).
"""

import errno
from typing import TYPE_CHECKING

from forbear.core.record import Record
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.http.method import READS
from forbear.http.request import Judgement
from forbear.services import grpc_status, shapes
from forbear.services.rpc import RpcService

if TYPE_CHECKING:
    from forbear.http.request import Service

_LOST = frozenset({
    "httpx.TimeoutException", "httpx.NetworkError", "httpx.RemoteProtocolError",
    "httpx2.TimeoutException", "httpx2.NetworkError", "httpx2.RemoteProtocolError",
    "requests.exceptions.ConnectionError", "requests.exceptions.Timeout", "requests.exceptions.ChunkedEncodingError",
    "urllib3.exceptions.ProtocolError", "urllib3.exceptions.TimeoutError", "urllib3.exceptions.MaxRetryError",
    "aiohttp.client_exceptions.ClientConnectionError", "aiohttp.client_exceptions.ClientPayloadError",
    "http.client.BadStatusLine", "http.client.IncompleteRead", "http.client.ResponseNotReady",
})  # fmt: skip
_CREDENTIALS = "google.auth.exceptions.TransportError"
_WRAPPERS = frozenset({_CREDENTIALS, "google.auth.exceptions.TimeoutError", "urllib.error.URLError"})
_NO_CONNECTION = frozenset({"urllib3.exceptions.NewConnectionError", "urllib3.exceptions.ConnectTimeoutError"})
_UNREACHABLE = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})


class Failures(Record):
    """The judge of errors around one service, for the `on` of its policies.

    An HTTP status or a gRPC code means what the service says of it. Transport errors leave the outcome unknown, a
    refused connection too: it may be the second request of the function, or the target of a redirect. A certificate
    that is not trusted and anything else is permanent.
    """

    __slots__ = ("service",)

    service: "Service"

    def __init__(self, service: "Service") -> None:
        self._set(service=service)

    def __call__(self, error: Exception) -> Verdict:
        """What an error means."""
        service = self.service
        unknown = Judgement(service.name, None, Safety.NEVER)
        status = shapes.status(error)
        if status is not None:
            return service.verdict(unknown, status, shapes.headers(error), lambda: shapes.body(error)) or PERMANENT
        code = shapes.code(error)
        if code is not None:
            metadata = shapes.metadata(error)
            if isinstance(service, RpcService):
                return service.call_verdict(unknown, code, metadata) or PERMANENT
            return grpc_status.verdict(code, metadata) or PERMANENT
        return transport(error)


def transport(error: BaseException) -> Verdict:
    """What an error without a reply means."""
    import socket  # not cheap to import, and needed only after a failure
    import ssl

    found = list(shapes.causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in found):
        return PERMANENT
    names = shapes.names(error)
    if "aiohttp.client_exceptions.ClientConnectorCertificateError" in names:
        return PERMANENT
    if isinstance(error, ConnectionError | TimeoutError | ssl.SSLError | socket.gaierror) or names & _LOST:
        return TRANSIENT
    if isinstance(error, OSError) and error.errno in _UNREACHABLE:
        return TRANSIENT
    if names & _WRAPPERS and len(found) > 1:
        return transport(found[1])
    return PERMANENT


def of_one_request(error: BaseException) -> Verdict:
    """Judge an error without a response of a call by which a session of requests sends a single request.

    Nothing was executed where no connection was made, or where the credentials of the request could not be fetched.
    A GET may be what a redirect made of a write that had been executed, so that its outcome stays unknown. The session
    of google-auth for asyncio wraps the errors of the request itself and repeats requests on its own: always unknown.
    """
    found = transport(error)
    if found.kind is not Kind.TRANSIENT:
        return found
    names = {name for cause in shapes.causes(error) for name in shapes.names(cause)}
    if any(name.startswith("aiohttp.") for name in names):
        return found
    if _CREDENTIALS in names:
        return NOT_EXECUTED
    return NOT_EXECUTED if names & _NO_CONNECTION and shapes.method(error) not in READS else found
