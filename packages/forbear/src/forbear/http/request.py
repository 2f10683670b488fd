"""`Request`, the part of an HTTP request that services judge; `HttpService`; RFC 9110's rules for methods (§9.2).

And the ids by which servers find a request in their logs, as response headers and gRPC metadata carry them.
"""

from itertools import islice

from forbear.core.attempt import RequestIds
from forbear.core.check import find_similar
from forbear.core.record import Record
from forbear.text.redact import HIDDEN, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from forbear.core.service import Judgement, Service
    from forbear.core.verdict import Verdict

    class HttpService(Service, Protocol):
        """The protocol of a service that knows one HTTP API: it judges requests by their operation, and responses."""

        @property
        def token_header(self) -> str | None:
            """The name of the header for an idempotency token, equal on all attempts; None if the API has none."""
            ...

        def classify(self, request: "Request") -> Judgement:
            """Return the judgement on a request: its operation, and whether it may be executed twice."""
            ...

        def verdict(
            self,
            judgement: Judgement,
            status: int,
            headers: Mapping[str, str],
            body: Callable[[], bytes] | None = None,
        ) -> "Verdict | None":
            """Return the verdict on a response to the judged request, None for a success.

            `headers` has lower-case names. `body` reads the body of the response, and is called only if the verdict
            depends on it; None if the caller cannot read it.
            """
            ...


class Request(Record):
    """A request as it goes over the wire, reduced to what decides whether it may be repeated.

    `target` is the raw, still percent-encoded path with its query, as in the request line. `headers` has lower-case
    names. `body` is the content, None where it is not available (a stream); an unknown body never makes a request
    safer. `port` None means the port in `host`, or the default of the `scheme`.

    >>> from forbear.services.rfc9110 import Rfc9110
    >>> put = Request("PUT", "api.example.com", "/orders/7", {"content-type": "application/json"}, b"{}")
    >>> Rfc9110().classify(put).repeatable
    True
    """

    __slots__ = ("method", "host", "target", "headers", "body", "scheme", "port")

    method: str
    host: str
    target: str
    headers: "Mapping[str, str]"
    body: bytes | None
    scheme: str
    port: int | None

    def __init__(
        self,
        method: str,
        host: str,
        target: str,
        headers: "Mapping[str, str] | None" = None,
        body: bytes | None = b"",
        scheme: str = "https",
        port: int | None = None,
    ) -> None:
        # this constructor is on the happy path of every HTTP adapter, and `object.__setattr__` takes twice as long
        _set_method(self, method)
        _set_host(self, host)
        _set_target(self, target)
        _set_headers(self, headers if headers is not None else {})
        _set_body(self, body)
        _set_scheme(self, scheme)
        _set_port(self, port)

    def __repr__(self) -> str:
        """Return the method and the URL without query and secrets; headers and body may be secret, too."""
        return f"Request({self.method!r}, {redact(self.resource)!r})"

    @property
    def origin(self) -> tuple[str, str, int]:
        """The scheme, host and port of the server (RFC 9110 §4.3.1): ("https", "example.com", 443).

        Scheme and host are in lower case. An IPv6 address has no brackets, and an international name is as the client
        wrote it. The field `port` counts before a port in `host`. Without both, it is 80 for http and 443 for any other
        scheme. What is no port number stays a part of the host, which then equals no other.
        """
        scheme, host, port = self.scheme.lower(), self.host.lower(), self.port
        name, colon, digits = host.rpartition(":")
        is_port = not digits or (digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_PORT)
        if colon and is_port and (":" not in name or name.endswith("]")):  # not the end of an IPv6 address
            host = name
            port = int(digits) if port is None and digits else port
        if port is None:
            port = 80 if scheme == "http" else 443
        return scheme, host.strip("[]"), port

    @property
    def authority(self) -> str:
        """The host of the origin, with its port unless that is 80 or 443: "example.com", "localhost:4443"."""
        _, host, port = self.origin
        return host if port in _USUAL_PORTS else f"{host}:{port}"

    @property
    def resource(self) -> str:
        """The URL without query, default port, user and secrets; the path may contain secrets, which reports remove."""
        scheme, host, port = self.origin
        authority = f"[{host}]" if ":" in host else host
        if port != (80 if scheme == "http" else 443):
            authority = f"{authority}:{port}"
        return f"{scheme}://{authority}{self.target.partition('?')[0]}"


_set_method, _set_host, _set_target, _set_headers, _set_body, _set_scheme, _set_port = Request._stores.values()

_USUAL_PORTS = (80, 443)
_LONGEST_PORT = 5

READS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing; RFC 9110 §9.2.1 calls them safe."""

IDEMPOTENT = frozenset({"PUT", "DELETE"})
"""Methods that change something and may be executed twice (RFC 9110 §9.2.2)."""

_WRITES = frozenset({*IDEMPOTENT, "POST", "PATCH", "CONNECT"})

_EXTENSIONS = (
    "ACL BAN BASELINE-CONTROL BCOPY BDELETE BIND BMOVE BPROPFIND BPROPPATCH CHECKIN CHECKOUT COPY FLUSH "
    "LABEL LINK LIST LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE "
    "NOTIFY ORDERPATCH POLL PROPFIND PROPPATCH PURGE QUERY REBIND REFRESH REPORT SEARCH SOURCE SUBSCRIBE "
    "UNBIND UNCHECKOUT UNLINK UNLOCK UNSUBSCRIBE UPDATE UPDATEREDIRECTREF VERSION-CONTROL VIEW"
)
METHODS = READS | _WRITES | frozenset(_EXTENSIONS.split())
"""Methods that are known. Any other may be sent, too, but one that is nearly one of these is a slip."""

OVERRIDES = ("x-http-method-override", "x-http-method", "x-method-override")
"""Headers, in lower case, by which many servers let a request name another method than its own."""


def join_headers(headers: "Mapping[Any, Any]", limit: int | None = None) -> dict[str, str]:
    """Return headers with lower-case names, as text; the values of lines with one name are joined by ", ".

    So a header that stands there twice is judged by all of its lines (RFC 9110 §5.2). Names and values may be bytes.
    `headers` may yield a name more than once; only the first `limit` lines are read.
    """
    return join_lines(islice(headers.items(), limit))


def join_lines(pairs: "Iterable[tuple[Any, Any]]") -> dict[str, str]:
    """Return headers as `join_headers` does, from pairs of name and value."""
    lines: dict[str, str] = {}
    for name, value in pairs:
        key = (name if type(name) is str else _text_of(name)).lower()
        text = value if type(value) is str else _text_of(value)
        lines[key] = f"{lines[key]}, {text}" if key in lines else text
    return lines


def _text_of(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def method_overrides(headers: "Mapping[str, str]") -> list[str]:
    """Return the methods that the headers in OVERRIDES name, in upper case; [] if there is none."""
    return [headers[name].strip().upper() for name in OVERRIDES if name in headers]


def danger(method: str) -> int:
    """Return how dangerous it is to repeat a method: 0 for reads, 1 for idempotent methods, 2 for PATCH, 3 for others.

    PATCH is below the others because a precondition can guard it. Case matters, as in RFC 9110: "get" is 3.
    """
    if method in READS:
        return 0
    return 1 if method in IDEMPOTENT else 2 if method == "PATCH" else 3


def find_similar_method(method: str) -> str | None:
    """Return the usual method that is meant by one which is not known, such as POST for POTS; None if none is."""
    if method in METHODS:
        return None
    letters = sorted(method)
    for name in ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"):
        if sorted(name) == letters:  # some are swapped
            return name
    return find_similar(method, sorted(METHODS), 0.75)


def method_label(method: str) -> str:
    """Return the method as a label of metrics: itself if it is PATCH or of RFC 9110, in capitals, else "_OTHER"."""
    return method if method in READS or method in _WRITES else "_OTHER"


_UNSIGNED = ("", "basic", "bearer")


def is_signed(target: str, authorization: str) -> bool:
    """Return whether a URL or an Authorization header has a signature; an unknown scheme counts as one.

    `target` is signed if it contains `signature=` in any case. Basic and Bearer, or no header, are no signature.
    Nothing may be added to a signed request's query, or to its headers of the service. Source: the signing processes of
    Cloud Storage and Amazon S3 (versions 2 and 4), which cover the whole query and every header whose name begins with
    `x-goog-` or `x-amz-`.
    """
    return "signature=" in target.lower() or authorization.partition(" ")[0].lower() not in _UNSIGNED


_UPLOAD = "x-guploader-uploadid"
_TRACE = "x-cloud-trace-context"

REQUEST_IDS = frozenset({
    _UPLOAD, _TRACE, "x-goog-request-id",  # Google
    "x-amz-request-id", "x-amz-id-2", "x-amzn-requestid",  # Amazon
    "x-ms-request-id", "x-github-request-id", "cf-ray", "x-request-id", "request-id", "x-correlation-id",
})  # fmt: skip
"""Headers, in lower case, by which servers find a request in their logs; a support case asks for their values."""

_LONGEST_ID = 256
_MOST_IDS = 8


def request_ids(headers: "Mapping[str, str]", *, resumable: bool = False) -> RequestIds:
    """Return the request ids among the headers of a response, as pairs of a lower-case name and its value.

    `headers` may have names in any case, if it finds each by its own spelling. At most 8 ids are returned, of each the
    first 256 characters. The options of a trace are left out. If the request is part of a `resumable` upload, the value
    of X-GUploader-UploadID is hidden, because it is the key to the upload session.

    >>> request_ids({"content-type": "text/csv", "x-request-id": "7f3a"})
    (('x-request-id', '7f3a'),)
    """
    ids: dict[str, str] = {}
    for name in headers:
        lowered = name.lower()
        if lowered in REQUEST_IDS and len(ids) < _MOST_IDS:
            value = headers[name][:_LONGEST_ID]
            if lowered == _TRACE:
                value = value.partition(";")[0]
            elif lowered == _UPLOAD and resumable:
                value = HIDDEN
            ids[lowered] = value
    return tuple(ids.items())


def is_resumable(request: Request) -> bool:
    """Return whether a request starts or uses the session of a resumable upload; in doubt it does."""
    query = request.target.partition("?")[2]
    if "%" in query:
        from urllib.parse import unquote  # on a rare path, and expensive to import

        query = unquote(query)
    lowered = query.lower()
    return "upload_id=" in lowered or "uploadtype=resumable" in lowered or "x-goog-resumable" in request.headers


def identify(request: Request) -> object:
    """Return what makes two requests the same: method, URL, conditions and body; None if the body is not known.

    The boundary of a multipart body is left out: libraries draw a new one for each call.
    """
    from hashlib import blake2b  # only after a failure

    if request.body is None:
        return None
    boundary = request.headers.get("content-type", "").partition("boundary=")[2].strip("\"'").encode()
    body = request.body.replace(b"--" + boundary, b"--") if boundary else request.body
    kept = tuple(sorted(each for each in request.headers.items() if each[0].startswith(("if-", "x-goog-if-"))))
    return request.method, request.origin, request.target, kept, blake2b(body, digest_size=16).digest()


class Place:
    """The place of what was read: the origin of a URL, and its path as a folder."""

    __slots__ = ("folder", "origin")

    def __init__(self, origin: "tuple[str, str | None, int | None]", folder: str) -> None:
        self.origin = origin
        self.folder = folder

    @classmethod
    def of(cls, url: str) -> "Place":
        """Return the place of a URL; one that nobody can send is the place of nothing."""
        from urllib.parse import urlsplit  # as rarely as `identify`

        try:
            parts = urlsplit(url)
            origin = parts.scheme, parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)
        except ValueError:
            return cls(("", None, None), "/")
        return cls(origin, f"{parts.path.rstrip('/')}/")
