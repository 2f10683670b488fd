"""Retries for google-api-python-client: `forbear.install(service)`. A request is judged by its method's description."""

import copy
import selectors
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from http.client import BadStatusLine, HTTPException, ResponseNotReady
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

try:
    import httplib2  # type: ignore[import-untyped]
    from google.auth.exceptions import TransportError
    from googleapiclient.discovery import Resource
    from googleapiclient.errors import HttpError
    from googleapiclient.http import HttpRequest
except ImportError as error:
    raise ImportError(
        "forbear.clients.discovery needs google-api-python-client; install it with: "
        'pip install "forbear[google]" google-api-python-client'
    ) from error

from forbear.core.report import ATTRIBUTE, attach
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear.exchange.chosen import choose
from forbear.exchange.http.drive import Sender, drive
from forbear.exchange.http.options import HttpOptions
from forbear.exchange.http.send import Body, Variation, body_of_file
from forbear.http.vouch import Vouch
from forbear.policy import Policy
from forbear.run.switch import is_off
from forbear.services.discovery import Discovered, list_methods
from forbear.tables.google_apis import is_google

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions

S = TypeVar("S")

_RAISED = (OSError, HTTPException, httplib2.HttpLib2Error, TransportError)
_BEFORE = (httplib2.ServerNotFoundError, TransportError)
"""Errors that arise before a request is sent: its host has no address, or there are no credentials."""
_answered: ContextVar[bool] = ContextVar("forbear_answered", default=False)
"""The note that a response has arrived since the attempt began: a redirect, or one that asks for new credentials."""


class _Connection:
    """The base of connections that send a request once: httplib2 sends it again in secret if one breaks."""

    sock: Any

    def connect(self) -> None:
        """Open the connection; an error says that no byte of the request was sent."""
        try:
            super().connect()  # type: ignore[misc]
        except Exception as error:
            error.was_sent = False  # type: ignore[attr-defined]
            raise

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request, on a new connection if the server has closed this one."""
        above: Any = super()
        if self.sock is not None:
            with selectors.DefaultSelector() as selector:
                selector.register(self.sock, selectors.EVENT_READ)
                if selector.select(0):
                    above.close()
        above.request(*args, **options)

    def getresponse(self) -> Any:
        """Return the response; raise an error that httplib2 passes on."""
        above: Any = super()
        try:
            response = above.getresponse()
        except (BadStatusLine, ResponseNotReady) as error:
            raise ConnectionResetError(str(error)) from error
        _answered.set(True)
        return response


class _Plain(_Connection, httplib2.HTTPConnectionWithTimeout):  # type: ignore[misc]
    pass


class _Tls(_Connection, httplib2.HTTPSConnectionWithTimeout):  # type: ignore[misc]
    pass


class RetriedHttp:
    """The `http` of one request: it sends as often as the policy allows. Its attributes are those of the real one."""

    def __init__(self, http: Any, options: HttpOptions, host: str) -> None:
        self.inner, self.options, self.host = http, options, host

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a copy asks for them before it has the real one
            raise AttributeError(name)
        return getattr(self.inner, name)

    def request(self, uri: str, method: str = "GET", body: Any = None, headers: Any = None, **more: Any) -> Any:
        """Send a request; return the last response and its content, or raise the last error."""
        more["connection_type"] = _Tls if urlsplit(uri).scheme == "https" else _Plain
        if is_off():
            return self.inner.request(uri, method, body=body, headers=headers, **more)
        port = DiscoveryPort(self, uri, method, body, headers, more)
        answered = drive(port)
        if port.report is not None:
            setattr(answered.response, ATTRIBUTE, port.report)
        return answered.response, answered.content


class RetriedRequest(HttpRequest):  # type: ignore[misc]
    """A request of a service with retries; `install` makes the service build these."""

    def __init__(self, wrap: Any, http: Any, postproc: Any, uri: str, **options: Any) -> None:
        untyped: Any = super()
        untyped.__init__(wrap(http, options.get("methodId")), postproc, uri, **options)

    def execute(self, http: Any = None, num_retries: int = 0) -> Any:
        """Execute the request; `num_retries` must be 0, or retries would multiply."""
        untyped: Any = super()
        return self._explain(untyped.execute, http, num_retries)

    def next_chunk(self, http: Any = None, num_retries: int = 0) -> Any:
        """Send the next part of an upload; `num_retries` must be 0."""
        untyped: Any = super()
        return self._explain(untyped.next_chunk, http, num_retries)

    def _explain(self, send: Any, http: Any, num_retries: int) -> Any:
        if num_retries:
            raise ValueError(
                "`num_retries` must be 0: forbear retries, and retries would multiply; pass limits to "
                f"forbear.install(service, attempts=...); got {num_retries!r}"
            )
        own: RetriedHttp = self.http
        if http is not None and not isinstance(http, RetriedHttp):
            http = RetriedHttp(http, own.options, own.host)
        try:
            return send(http=http)
        except HttpError as error:
            failed: Any = error
            report = getattr(failed.resp, ATTRIBUTE, None)
            if report is not None:
                attach(error, report)
            raise


class _Answered:
    """A response of httplib2 with its content; names of headers are in lower case."""

    def __init__(self, response: Any, content: bytes) -> None:
        self.response, self.content = response, content
        self.status_code, self.headers = int(response.status), response


class DiscoveryPort(Sender[_Answered]):
    """The port of httplib2: it sends one request by the `http` of the service."""

    def __init__(
        self,
        http: RetriedHttp,
        uri: str,
        method: str,
        body: Any,
        headers: Mapping[str, str] | None,
        more: dict[str, Any],
    ) -> None:
        self._http, self._uri, self._content, self._more = http, uri, body, more
        self._lines: dict[str, str] = {name.lower(): value for name, value in (headers or {}).items()}
        super().__init__(http.options, method, plain=body is None or isinstance(body, bytes | str))

    def _target(self) -> tuple[str, str]:
        url = urlsplit(self._uri)
        host = url.hostname or ""
        return host if is_google(host) else self._http.host, f"{url.path or '/'}?{url.query}".removesuffix("?")

    def _scheme_and_port(self) -> tuple[str, int | None]:
        url = urlsplit(self._uri)
        return (url.scheme, url.port) if is_google(url.hostname or "") else ("https", None)

    def _headers(self) -> Mapping[Any, Any]:
        return self._lines

    def _read_body(self) -> Body:
        return body_of_file(self._content, self._options.buffer)

    def first(self) -> _Answered:
        return self._send(self._uri, self._content, self._lines)

    def send(self, variation: Variation, limit: float | None) -> _Answered:
        uri, headers, body = self._uri, dict(self._lines), self._content
        if variation.skip is None:
            body = None
        elif variation.skip or self._body.once:
            body = self._body.chunks(variation.skip)
        if variation.query:
            uri += ("&" if urlsplit(uri).query else "?") + variation.query
        self._adjust(headers, variation)
        return self._send(uri, body, headers)

    def _send(self, uri: str, body: Any, headers: dict[str, str]) -> _Answered:
        _answered.set(False)
        connections: dict[str, Any] = getattr(self._http.inner, "connections", {})
        for place, connection in list(connections.items()):
            if not isinstance(connection, _Connection):  # one of httplib2's own, which sends again in secret
                connections.pop(place).close()
        return _Answered(*self._http.inner.request(uri, self._method, body=body, headers=dict(headers), **self._more))

    def verdict(self, error: Exception) -> Verdict:
        if isinstance(error, ssl.SSLCertVerificationError):
            return PERMANENT
        if not _answered.get() and (getattr(error, "was_sent", True) is False or isinstance(error, _BEFORE)):
            return NOT_EXECUTED
        return TRANSIENT if isinstance(error, (OSError, HTTPException, *_BEFORE)) else PERMANENT

    def may_ask_to_wait(self, response: _Answered) -> bool:
        return True

    def read_copy(self, response: _Answered) -> _Answered:
        return copy.copy(response)  # its body is in memory

    def settle(self, response: _Answered) -> None: ...

    def close(self, response: _Answered) -> None: ...


def install(
    service: S,
    policy: Policy | None = None,
    *,
    safe: "Safe" = (),
    apis: "Apis" = (),
    **options: "Unpack[ClientOptions]",
) -> S:
    """Put retries into a service that `googleapiclient.discovery.build` has made, and return it.

    Each request that it makes from now on is judged by our tables, else by its method in the discovery document. The
    parameters are those of `forbear.clients.requests.RetryAdapter`. TypeError for another object, ValueError for a
    service with retries, or for a policy with an `attempt_timeout`: httplib2 has a timeout of its own.

    >>> from googleapiclient.discovery import build
    >>> with install(build("drive", "v3", developerKey="my-key"), attempts=3) as drive:
    ...     drive.files().get(fileId="1").method
    'GET'
    """
    made: Any = service
    if not isinstance(service, Resource):
        raise TypeError(f"`client` must be a service of googleapiclient.discovery, got {service!r}")
    if isinstance(made._requestBuilder, partial):
        raise ValueError("`client` has forbear's retries already; install them once, or build a new service")
    policy, changes = choose("install", policy, options, ("safe", "apis"))
    chosen = HttpOptions(policy, vouch=Vouch(safe, apis), changes=changes, raised=_RAISED)
    if chosen.sample.attempt_timeout is not None:
        raise ValueError("`policy` must have no attempt_timeout: httplib2 has a timeout of its own, 60 s by default")
    document: dict[str, Any] = made._rootDesc
    host, known = (
        urlsplit(str(document["rootUrl"])).hostname or "",
        {each.method_id: each for each in list_methods(document)},
    )

    def wrap(http: Any, method_id: str | None) -> RetriedHttp:
        judge = known.get(method_id) or Discovered(method_id)
        return RetriedHttp(http, chosen.replace(service=judge), host)

    made._requestBuilder = partial(RetriedRequest, wrap)
    return service
