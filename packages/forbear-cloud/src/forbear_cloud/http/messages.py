"""HTTP requests and responses as plain values, and API errors with their JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote_plus

from forbear_cloud.http.content import NOTHING, Content

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
Headers: TypeAlias = "tuple[tuple[str, str], ...]"


_NONE: Mapping[str, str] = MappingProxyType({})


class HttpRequest(NamedTuple):
    """A request as the client sent it, except that a header may have replaced its method (see `read_request`).

    `path` is still percent-encoded, and header names are in lower case. `query` has the first value of each parameter,
    decoded; `query_text` is the whole query as sent. `host` is the Host header, or the server's own address without
    one.
    """

    method: str
    path: str
    query: Mapping[str, str] = _NONE
    headers: Mapping[str, str] = _NONE
    content: Content = NOTHING
    host: str = "127.0.0.1"
    query_text: str = ""

    @property
    def body(self) -> bytes:
        """Return the content (the body of the request) as one bytes object, copied if it came in several pieces."""
        return bytes(self.content)

    @property
    def target(self) -> str:
        """Return the path with "?" and the query as sent, the path alone if there is no query."""
        return f"{self.path}?{self.query_text}" if self.query_text else self.path

    def all(self, name: str) -> list[str]:
        """Return all values of the query parameter `name`, decoded and in their order; an empty list without it."""
        return [value for key, value in parse_qsl(self.query_text, keep_blank_values=True) if key == name]


class HttpResponse(NamedTuple):
    """A response without the headers that are added when it is sent (Content-Length, Date and others).

    With `measured=False` the body is sent as one chunk, and no header states its length. A client that does not
    understand chunks (HTTP/1.0) gets a Content-Length all the same.
    """

    status: int
    headers: Headers = ()
    body: bytes | Content = b""
    measured: bool = True


def read_request(method: str, target: str, headers: Mapping[str, str], content: Content, host: str) -> HttpRequest:
    """Return the request that these parts describe; `host` is the default for a missing Host header.

    `target` is a path with a query, or a whole URL, of which only these are kept. The header `X-HTTP-Method-Override`
    of a POST replaces its method.
    """
    path, _, query_text = target.partition("?")
    if "://" in path and not path.startswith("/"):
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    if method == "POST" and headers.get("x-http-method-override"):
        method = headers["x-http-method-override"].strip().upper()
    # Reversed, so that the first value of a repeated parameter wins, as in the real service.
    pairs = [part.partition("=") for part in reversed(query_text.split("&")) if part]
    query = {unquote_plus(name): unquote_plus(value) for name, _, value in pairs}
    return HttpRequest(method, path, query, headers, content, headers.get("host") or host, query_text)


def json_response(value: Json, status: int = 200, headers: Headers = ()) -> HttpResponse:
    """Return a response whose body is `value` as JSON; `headers` follow the Content-Type."""
    return HttpResponse(
        status, (("Content-Type", "application/json; charset=UTF-8"), *headers), json.dumps(value).encode()
    )


NO_CONTENT = HttpResponse(204)


_REASONS = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    405: "methodNotAllowed",
    408: "requestTimeout",
    409: "conflict",
    410: "gone",
    412: "conditionNotMet",
    413: "uploadTooLarge",
    416: "requestedRangeNotSatisfiable",
    429: "rateLimitExceeded",
    499: "clientClosedRequest",
    500: "backendError",
    501: "notImplemented",
    502: "badGateway",
    503: "backendError",
    504: "gatewayTimeout",
}


_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    416: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class ApiError(Exception):
    """An error response as an exception: an HTTP status, a message for people, a `reason` for programs, and headers.

    `reason` is a word that the API in question defines, such as "conditionNotMet". With None the API uses its usual
    word for the status.
    """

    def __init__(self, status: int, message: str, reason: str | None = None, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.headers = headers


ErrorForm: TypeAlias = Callable[[ApiError], HttpResponse]
"""A function that turns an ApiError into a response, in the form of one API."""


def storage_error(error: ApiError) -> HttpResponse:
    """Return an error as a response in the form of Cloud Storage's JSON API; a 304 has no body."""
    if error.status == 304:
        return HttpResponse(304, error.headers)
    reason = error.reason or _REASONS.get(error.status, "error")
    detail: JsonObject = {"message": error.message, "domain": "global", "reason": reason}
    body: JsonObject = {"error": {"code": error.status, "message": error.message, "errors": [detail]}}
    return json_response(body, error.status, error.headers)


def google_error(error: ApiError) -> HttpResponse:
    """Return an error as a response in the form of Google's newer APIs, with the name of a gRPC code as its `status`.

    The name is the error's `reason` if that is in capitals, otherwise the usual one for the HTTP status ("UNKNOWN" if
    there is none).
    """
    is_code = error.reason is not None and error.reason.isupper()
    status = error.reason if is_code else _STATUSES.get(error.status, "UNKNOWN")
    body: JsonObject = {"error": {"code": error.status, "message": error.message, "status": status}}
    return json_response(body, error.status, error.headers)


def invalid(message: str) -> ApiError:
    """Return a 400 error without a reason of its own: a value is wrong, as `message` says."""
    return ApiError(400, message)


def required(name: str) -> ApiError:
    """Return a 400 error with the reason "required": the parameter `name` is missing."""
    return ApiError(400, f"Required parameter: {name}", "required")


def not_found(what: str) -> ApiError:
    """Return a 404 error: the resource that `what` names does not exist."""
    return ApiError(404, f"{what} does not exist.")


def conflict(message: str) -> ApiError:
    """Return a 409 error: the state of the resource forbids the request."""
    return ApiError(409, message)


def condition_not_met(what: str) -> ApiError:
    """Return a 412 error: the precondition that `what` names does not hold."""
    return ApiError(412, f"At least one of the pre-conditions you specified did not hold: {what}.")


def already_exists(message: str) -> ApiError:
    """Return a 409 error with the reason ALREADY_EXISTS: the resource to create exists."""
    return ApiError(409, message, "ALREADY_EXISTS")


def failed_precondition(message: str) -> ApiError:
    """Return a 400 error with the reason FAILED_PRECONDITION: the state of the resource forbids the request."""
    return ApiError(400, message, "FAILED_PRECONDITION")
