"""The API's errors and their JSON form; knows nothing of what was asked."""

from forbear.testing.cloud.wire import Headers, JsonObject, Reply, json_reply

REASONS = {
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


class ApiError(Exception):
    """An answer other than success: an HTTP status, the API's reason word and a sentence for people."""

    def __init__(self, status: int, message: str, reason: str | None = None, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason or REASONS.get(status, "error")
        self.headers = headers

    def reply(self) -> Reply:
        """The error as it goes out; 304 has no body."""
        if self.status == 304:
            return Reply(304, self.headers)
        return error_reply(self.status, self.message, self.reason, self.headers)


def error_reply(status: int, message: str, reason: str, headers: Headers = ()) -> Reply:
    """The API's error envelope around one error."""
    detail: JsonObject = {"message": message, "domain": "global", "reason": reason}
    return json_reply({"error": {"code": status, "message": message, "errors": [detail]}}, status, headers)


def invalid(message: str) -> ApiError:
    """400: a value was given, and it is wrong."""
    return ApiError(400, message)


def required(name: str) -> ApiError:
    """400: a value is missing."""
    return ApiError(400, f"Required parameter: {name}", "required")


def not_found(what: str) -> ApiError:
    """404: the named thing does not exist."""
    return ApiError(404, f"{what} does not exist.")


def conflict(message: str) -> ApiError:
    """409: the state of the resource forbids it."""
    return ApiError(409, message)


def condition_not_met(what: str) -> ApiError:
    """412: a precondition does not hold."""
    return ApiError(412, f"At least one of the pre-conditions you specified did not hold: {what}.")
