"""Read status, headers, body and code from any client's exception, and make the policies of services that judge them.

Known are the exceptions of httpx, requests, aiohttp, urllib, google-api-core, google-api-python-client and grpc. They
are recognized by their attributes and class names, so no client library is imported.
"""

import errno
import sys
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from forbear.apis import find_api
from forbear.core.attempt import RequestIds
from forbear.core.backoff import Exponential
from forbear.core.chain import arguments_of, chain, read
from forbear.core.check import is_mapping
from forbear.core.limits import Limits
from forbear.core.record import Record
from forbear.core.report import text_of, writable
from forbear.core.service import Judgement
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Safety, Verdict, settle
from forbear.grpc import codes
from forbear.grpc import status as grpc_status
from forbear.grpc.call import Metadata, is_rpc_service
from forbear.http.request import READS, Request, join_headers, request_ids
from forbear.policy import Policy
from forbear.run.runtime import current_runtime
from forbear.waits import Wait, add_wait, find_wait, find_wait_of_rpc

if TYPE_CHECKING:
    from forbear.http.request import HttpService


_MOST_HEADERS = 1000
_MOST_SCHEME = 10


def status_of(error: object) -> int | None:
    """Return the HTTP error status (400 to 599) of an exception or its response; None if there is none, as for gRPC."""
    status = _plain_status(error)
    return _http(read(error, "code")) if status is None and code_of(error) is None else status


def headers_of(error: object) -> dict[str, str]:
    """Return the headers of the response that an exception carries, with lower-case names; an empty dict if none."""
    places = read(read(error, "response"), "headers"), read(error, "headers"), read(error, "resp")
    return lower_names(next((place for place in places if is_mapping(place) or _is_message(place)), None))


def lower_names(headers: Any) -> dict[str, str]:
    """Return headers with lower-case names as text, {} for anything but a mapping; of the first 1000 lines."""
    return join_headers(headers, _MOST_HEADERS) if is_mapping(headers) or _is_message(headers) else {}


def body_of(error: object) -> bytes:
    """Return the bytes of the response's body that an exception carries, b"" if there are none or they are unread."""
    for place in (read(error, "response"), error):
        content = read(place, "_content")  # of requests, whose `content` would read a stream to its end
        if content is None:
            content = read(place, "content")
        if isinstance(content, bytes):
            return content
    return b""


def method_of(error: BaseException) -> str | None:
    """Return the HTTP method of the request that failed, in upper case, by the error or one that it wraps."""
    for cause in chain(error):
        method = read(read(cause, "request"), "method")
        if isinstance(method, str):
            return method.upper()
    return None


def code_of(error: object) -> int | None:
    """Return the number of the gRPC status code of an error; None if it is not one of a gRPC call."""
    if _plain_status(error) is not None:
        return None
    number = _number(read(error, "code"))
    if number is None and not _is_http(error):
        number = _number(read(error, "grpc_status_code"))
    return number


def text_of_call(error: Exception) -> str | None:
    """Return the code and the details of a gRPC error whose own text has several lines, None for any other error."""
    code = code_of(error)
    if code is not None and "\n" in text_of(error):
        with suppress(Exception):
            return writable(f"{codes.NAMES[code]}: {read(error, 'details')()}")
    return None


def metadata_of(error: object) -> Metadata:
    """Return the trailing metadata of a gRPC error or its response, as pairs of name and value; () if there is none."""
    return _metadata(error, "trailing_metadata")


def request_ids_of(error: object, *, resumable: bool = False) -> RequestIds:
    """Return the server's request ids in an exception; one id of `resumable` uploads is secret and left out."""
    headers = headers_of(error)
    if not headers:
        trailing = _metadata(error, "trailing_metadata")
        pairs = (*trailing, *_metadata(error, "initial_metadata"))
        headers = {name.lower(): value for name, value in reversed(pairs) if isinstance(value, str)}
        info = grpc_status.request_info(trailing)
        if info:
            return (("google.rpc.requestinfo", info), *request_ids(headers))
    return request_ids(headers, resumable=resumable)


def _metadata(error: object, name: str) -> tuple[tuple[str, str | bytes], ...]:
    for place in (error, read(error, "response")):
        with suppress(Exception):
            listed = islice(read(place, name)(), _MOST_HEADERS)
            return tuple((str(key), value) for key, value in listed)
    return ()


def wait_of(error: object) -> Wait | None:
    """Return the wait that the server asks for in an error of an HTTP client or of a gRPC call, None if in none."""
    status = status_of(error)
    if status is None:
        return find_wait_of_rpc(metadata_of(error))
    host = host_of(error)
    units = find_api(Request("", host, "").origin).wait_headers
    return find_wait(headers_of(error), status, host=host, units=units, body=lambda: body_of(error), now=_read_clock)


def host_of(error: object) -> str:
    """Return the host of the request that an error names, "" if it names none."""
    for place in (read(error, "request"), read(read(error, "response"), "request"), read(error, "response")):
        url = read(place, "url")
        host = read(url, "host")  # httpx and aiohttp have objects, the others texts
        if isinstance(host, str):
            return host
        if isinstance(url, str) and "://" in url[:_MOST_SCHEME]:
            return url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return ""


def _read_clock() -> float:
    return current_runtime().now()


def names_of(error: object) -> frozenset[str]:
    """Return the full names of an error's class and all its bases, such as "requests.exceptions.ConnectionError"."""
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)


def _plain_status(error: object) -> int | None:
    """Return the HTTP error status of an error or its response; `code` is not read: some libraries warn when it is."""
    response, resp = read(error, "response"), read(error, "resp")
    sources = (
        (response, "status_code"),
        (response, "status"),
        (resp, "status"),
        (error, "status_code"),
        (error, "status"),
        (error, "http_status"),  # of stripe
    )
    return next((status for source, name in sources if (status := _http(read(source, name))) is not None), None)


def _number(status_code: Any) -> int | None:
    """Return the number of a status code of grpc, a member of its enum or a method that returns one; else None."""
    with suppress(Exception):
        value: Any = read(status_code() if callable(status_code) else status_code, "value")
        if isinstance(value, tuple) and isinstance(value[0], int):
            return value[0]
    return None


def _is_http(error: object) -> bool:
    """Return whether an error of google-api-core stands for an HTTP status, although its class has a gRPC code, too.

    Classes with a status of their own are also made from HTTP responses; those that only add a gRPC code are not, nor
    an error whose response is a call.
    """
    if _number(read(read(error, "response"), "code")) is not None:
        return False
    for kind in type(error).__mro__:
        if vars(kind).get("code") is not None:
            return _http(read(error, "code")) is not None
        if vars(kind).get("grpc_status_code") is not None:
            return False
    return False


def _is_message(value: Any) -> bool:
    """Return whether a value is an email.message.Message, the standard library's type for headers."""
    module: Any = sys.modules.get("email.message")  # expensive to import, and no value has this type before
    return module is not None and isinstance(value, module.Message)


def _http(value: object) -> int | None:
    return int(value) if isinstance(value, int) and 400 <= value < 600 else None


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
