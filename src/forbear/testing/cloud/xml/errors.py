"""How the XML API writes its errors; knows nothing of what was asked."""

from forbear.testing.cloud.errors import ApiError
from forbear.testing.cloud.wire import Reply
from forbear.testing.cloud.xml.document import Element, leaf, xml_reply

_CODES = {
    400: "InvalidArgument",
    401: "AuthenticationRequired",
    403: "AccessDenied",
    404: "NoSuchKey",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "OperationAborted",
    410: "NoSuchUpload",
    411: "MissingContentLength",
    412: "PreconditionFailed",
    413: "EntityTooLarge",
    416: "InvalidRange",
    429: "SlowDown",
    500: "InternalError",
    499: "ClientClosedRequest",
    501: "NotImplemented",
    503: "ServiceUnavailable",
}


def xml_error(error: ApiError) -> Reply:
    """An error as a document; words of other forms give way to the API's own, and 304 has no body."""
    if error.status == 304:
        return Reply(304, error.headers)
    known = error.reason is not None and error.reason[:1].isupper() and not error.reason.isupper()
    code = error.reason if known else _CODES.get(error.status, "InternalError")
    root = Element("Error", "", [leaf("Code", code), leaf("Message", error.message)])
    return xml_reply(root, error.status, error.headers, namespace=None)


def no_such_bucket() -> ApiError:
    """404 for a bucket."""
    return ApiError(404, "The specified bucket does not exist.", "NoSuchBucket")


def no_such_upload() -> ApiError:
    """404 for a multipart upload, which may be finished or aborted."""
    return ApiError(404, "The requested upload was not found.", "NoSuchUpload")
