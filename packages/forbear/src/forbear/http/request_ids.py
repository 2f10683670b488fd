"""The ids by which servers find a request in their logs, as response headers and gRPC metadata carry them."""

from forbear.core.attempt import RequestIds
from forbear.text.redact import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forbear.http.request import Request

_UPLOAD = "x-guploader-uploadid"
_TRACE = "x-cloud-trace-context"

NAMES = frozenset({
    _UPLOAD, _TRACE, "x-goog-request-id",  # Google
    "x-amz-request-id", "x-amz-id-2", "x-amzn-requestid",  # Amazon
    "x-ms-request-id", "x-github-request-id", "cf-ray", "x-request-id", "request-id", "x-correlation-id",
})  # fmt: skip
"""The names of the headers, in lower case. A support case of the service asks for their values."""

_LONGEST = 256
_MOST = 8


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
        if lowered in NAMES and len(ids) < _MOST:
            value = headers[name][:_LONGEST]
            if lowered == _TRACE:
                value = value.partition(";")[0]
            elif lowered == _UPLOAD and resumable:
                value = HIDDEN
            ids[lowered] = value
    return tuple(ids.items())


def is_resumable(request: "Request") -> bool:
    """Return whether a request starts or uses the session of a resumable upload; in doubt it does."""
    query = request.target.partition("?")[2]
    if "%" in query:
        from urllib.parse import unquote  # on a rare path, and expensive to import

        query = unquote(query)
    lowered = query.lower()
    return "upload_id=" in lowered or "uploadtype=resumable" in lowered or "x-goog-resumable" in request.headers
