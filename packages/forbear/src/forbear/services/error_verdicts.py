"""The verdicts of a service on errors of any client, and the policies of services that judge them."""

import errno
from typing import TYPE_CHECKING

from forbear.core.backoff import Exponential
from forbear.core.chain import arguments_of, chain
from forbear.core.decide import Limits
from forbear.core.record import Record
from forbear.core.service import Judgement
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Safety, Verdict, settle
from forbear.grpc import status as grpc_status
from forbear.grpc.call import is_rpc_service
from forbear.http.request import READS
from forbear.policy import Policy
from forbear.services.errors import body_of, code_of, headers_of, metadata_of, method_of, names_of, status_of, wait_of
from forbear.waits import add_wait

if TYPE_CHECKING:
    from forbear.http.request import HttpService

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
_UNTRUSTED = "aiohttp.client_exceptions.ClientConnectorCertificateError"
_REFUSALS = "Multiple exceptions: [Errno "
_UNREACHABLE = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})


DOCUMENTED_WAITS = Exponential(initial=1, multiplier=2, maximum=64, jitter="documented")
"""The waits of Google's pages in seconds: `min(2**n + up to 1 s, 64 s)` before retry n, counted from 0."""
RECOMMENDED_WAITS = Exponential(initial=2, multiplier=2, maximum=64, jitter="equal")
"""Random waits of 2**n to 2**(n+1) s before retry n, counted from 0, and of 32 to 64 s at the cap."""


class ErrorVerdicts(Record):
    """The verdicts on errors of functions that call one service, for the `on` of the service's policies.

    The service decides what an HTTP status or a gRPC code means; for a service without RPCs, gRPC's usual codes count.
    A transport error leaves the outcome unknown, even a refused connection: it may belong to the function's second
    request, or to the target of a redirect. An untrusted certificate and any other error are permanent.
    """

    __slots__ = ("service",)

    judges_errors = True  # and no values, so it is no `on_result`
    is_of_service = True  # a policy with it repeats no function that may have been executed
    service: "HttpService"

    def __init__(self, service: "HttpService") -> None:
        self._set(service=service)

    def __call__(self, error: Exception) -> Verdict:
        """Return the verdict on an error: by its HTTP status, else by its gRPC code, else as a transport error."""
        service = self.service
        unknown = Judgement(service.name, None, Safety.NEVER)
        status, code = status_of(error), code_of(error)
        if status is not None:
            verdict = service.verdict(unknown, status, headers_of(error), lambda: body_of(error))
        elif code is None:
            return transport_verdict(error)
        elif is_rpc_service(service):
            verdict = service.call_verdict(unknown, code, metadata_of(error))
        else:
            verdict = grpc_status.verdict(code)
        return add_wait(settle(verdict), wait_of(error))


def policy_of(service: "HttpService", limits: Limits, backoff: Exponential) -> Policy:
    """Return a policy of one service, which repeats no function that may have been executed."""
    return Policy(ErrorVerdicts(service), limits, backoff, service=service)


def transport_verdict(error: BaseException) -> Verdict:
    """Return the verdict on an error that has no response: TRANSIENT for transport errors, PERMANENT for all others.

    An untrusted certificate is PERMANENT. google-auth's errors and URLError count as the error that they wrap.
    """
    import socket  # expensive to import, and needed only after a failure
    import ssl

    causes = list(chain(error))
    if any(is_untrusted(cause) for cause in causes):
        return PERMANENT
    for cause in causes:
        names = names_of(cause)
        if isinstance(cause, ConnectionError | TimeoutError | ssl.SSLError | socket.gaierror) or names & _LOST:
            return TRANSIENT
        if isinstance(cause, OSError) and (cause.errno in _UNREACHABLE or _is_refused_everywhere(cause)):
            return TRANSIENT
        if not names & _WRAPPERS:
            break
    return PERMANENT


def is_untrusted(error: BaseException) -> bool:
    """Return whether an error says that the server's certificate is not trusted; those that it wraps do not count."""
    import ssl

    names = names_of(error)
    return isinstance(error, ssl.SSLCertVerificationError) or _UNTRUSTED in names


def _is_refused_everywhere(error: OSError) -> bool:
    """Return whether this is the error of asyncio for a host that refused a connection at several addresses."""
    text = arguments_of(error)[:1]
    return type(error) is OSError and isinstance(text[0] if text else None, str) and str(text[0]).startswith(_REFUSALS)


def verdict_of_one_request(error: BaseException) -> Verdict:
    """Return the verdict on an error without a response, for a call that sends a single request through a session.

    It is `transport_verdict`, but NOT_EXECUTED if the request's credentials could not be fetched. So it is if urllib3
    made no connection for a write; a redirect may have made a GET of a write that was executed. Errors of aiohttp stay
    TRANSIENT, since google-auth's asyncio session repeats requests on its own.
    """
    verdict = transport_verdict(error)
    if verdict.kind is not Kind.TRANSIENT:
        return verdict
    names = {name for cause in chain(error) for name in names_of(cause)}
    if any(name.startswith("aiohttp.") for name in names):
        return verdict
    if _CREDENTIALS in names:
        return NOT_EXECUTED
    return NOT_EXECUTED if names & _NO_CONNECTION and method_of(error) not in READS else verdict
