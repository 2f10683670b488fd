"""API errors, and their JSON in Cloud Storage and in Google's newer APIs."""

from collections.abc import Callable
from typing import TypeAlias

from forbear.testing.cloud.http.messages import Headers, HttpResponse, JsonObject, json_response

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
    """An error response: an HTTP status, a message for people, and a `reason` for programs.

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
"""A function that writes an error as a response, in the form of one API."""


def storage_error(error: ApiError) -> HttpResponse:
    """Write an error as the JSON API of Cloud Storage does; a 304 has no body."""
    if error.status == 304:
        return HttpResponse(304, error.headers)
    reason = error.reason or _REASONS.get(error.status, "error")
    detail: JsonObject = {"message": error.message, "domain": "global", "reason": reason}
    body: JsonObject = {"error": {"code": error.status, "message": error.message, "errors": [detail]}}
    return json_response(body, error.status, error.headers)


def google_error(error: ApiError) -> HttpResponse:
    """Write an error as Google's newer APIs do, with the name of a gRPC code as its `status`.

    The name is the error's `reason` if that is in capitals, otherwise the usual one for the HTTP status.
    """
    is_code = error.reason is not None and error.reason.isupper()
    status = error.reason if is_code else _STATUSES.get(error.status, "UNKNOWN")
    body: JsonObject = {"error": {"code": error.status, "message": error.message, "status": status}}
    return json_response(body, error.status, error.headers)


def invalid(message: str) -> ApiError:
    """Return a 400 error: a value is wrong."""
    return ApiError(400, message)


def required(name: str) -> ApiError:
    """Return a 400 error: the parameter `name` is missing."""
    return ApiError(400, f"Required parameter: {name}", "required")


def not_found(what: str) -> ApiError:
    """Return a 404 error: `what` does not exist."""
    return ApiError(404, f"{what} does not exist.")


def conflict(message: str) -> ApiError:
    """Return a 409 error: the state of the resource forbids the request."""
    return ApiError(409, message)


def condition_not_met(what: str) -> ApiError:
    """Return a 412 error: the precondition `what` does not hold."""
    return ApiError(412, f"At least one of the pre-conditions you specified did not hold: {what}.")


def already_exists(message: str) -> ApiError:
    """409 ALREADY_EXISTS: the resource to create exists."""
    return ApiError(409, message, "ALREADY_EXISTS")


def failed_precondition(message: str) -> ApiError:
    """400 FAILED_PRECONDITION: the state of the resource forbids the operation."""
    return ApiError(400, message, "FAILED_PRECONDITION")
