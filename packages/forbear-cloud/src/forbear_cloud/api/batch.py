"""Batches: up to 100 JSON API requests in one multipart/mixed body, performed in order."""

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from forbear_cloud.api.uploads import multipart_delimiter
from forbear_cloud.http.content import content_of
from forbear_cloud.http.hosts import Hosts
from forbear_cloud.http.messages import (
    ApiError,
    HttpRequest,
    HttpResponse,
    invalid,
    read_request,
    storage_error,
)
from forbear_cloud.http.outgoing import headers_of

_MAX_REQUESTS = 100
_MAX_SIZE = 10 * 1024 * 1024
_MAX_RESPONSES = 32 * 1024 * 1024
_TOO_MUCH = "The responses before this one are too large for one batch: send this request by itself."
_BOUNDARY = "batch_forbear"
_INHERITED = frozenset({"authorization", "x-goog-user-project"})
"""Headers that a request takes from its batch unless it has them itself."""


def perform_batch(batch: HttpRequest, perform: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """Perform the requests of a batch in order, each with `perform`, and respond 200 with all their responses.

    Raise 400 if the batch or a request in it is malformed, and 413 for more than 10 MiB, before any request is
    performed. Once the responses exceed 32 MiB, the other requests are not performed, and get 413.
    """
    parts = _parts(batch)
    if not 1 <= len(parts) <= _MAX_REQUESTS:
        raise invalid(f"A batch must have 1 to {_MAX_REQUESTS} requests, got {len(parts)}.")
    requests = [_inner_request(batch, part) for part in parts]
    pieces: list[bytes] = []
    size = 0
    for content_id, request in requests:
        response = perform(request) if size <= _MAX_RESPONSES else storage_error(ApiError(413, _TOO_MUCH))
        pieces.append(_write_part(content_id, response))
        size += len(pieces[-1])
    body = b"".join((*pieces, f"--{_BOUNDARY}--\r\n".encode()))
    return HttpResponse(200, (("Content-Type", f"multipart/mixed; boundary={_BOUNDARY}"),), body)


def _parts(batch: HttpRequest) -> Sequence[bytes]:
    """Return the parts of the body, with LF as the line end.

    Raise 400 unless it is multipart/mixed and ends with its closing boundary, and 413 if it has more than 10 MiB.
    """
    delimiter = multipart_delimiter(batch.headers.get("content-type", ""), "multipart/mixed")
    if delimiter is None:
        raise invalid("A batch needs a Content-Type of multipart/mixed with a boundary.")
    if len(batch.content) > _MAX_SIZE:
        raise ApiError(413, f"A batch must have at most {_MAX_SIZE} bytes, got {len(batch.content)}.")
    # Lines end with CRLF or with LF: Python's own tools write LF, and the service accepts it.
    body = b"\n" + batch.body.replace(b"\r\n", b"\n")
    first, *parts = body.split(b"\n" + delimiter, _MAX_REQUESTS + 2)
    if first.strip() or not parts or not parts[-1].startswith(b"--"):
        raise invalid("A batch must begin with its boundary, and end with its closing boundary.")
    return parts[:-1]


def _inner_request(batch: HttpRequest, part: bytes) -> tuple[str | None, HttpRequest]:
    """Read one part: return its Content-ID (None if absent) and the request in it; raise 400 if it is malformed.

    The request takes the authorization and the user project from the batch unless it has its own.
    """
    outer, _, text = part.lstrip(b"\n").partition(b"\n\n")
    fields = _headers(outer)
    if not fields.get("content-type", "").startswith("application/http"):
        raise invalid("A part of a batch must have the Content-Type application/http.")
    head, _, body = text.lstrip(b"\n").partition(b"\n\n")
    line, _, rest = head.partition(b"\n")
    words = line.decode("latin-1").split(" ")
    if len(words) not in {2, 3} or not words[1]:
        raise invalid("A part of a batch must have a request line, headers, an empty line and a body.")
    headers = _headers(rest)
    inherited = {name: value for name, value in batch.headers.items() if name in _INHERITED}
    length = headers.get("content-length", "")
    if length.isdecimal() and len(length) < 9:
        body = body[: int(length)]
    headers = {**inherited, **headers}
    target = _target(words[1], batch.host)
    return fields.get("content-id"), read_request(words[0], target, headers, content_of(body), batch.host)


def _target(text: str, host: str) -> str:
    """Return the path and query of a request target, which is a path or a whole URL.

    Raise 403 if the URL names a host that is neither loopback, nor one of Google's APIs, nor `host`, the one of the
    batch itself. Raise 400 if it cannot be read.
    """
    if text.startswith("/"):
        return text
    Hosts([host.partition(":")[0]]).check(None, text)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise invalid("The URL of a part of a batch cannot be read.") from None
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


def _headers(text: bytes) -> dict[str, str]:
    lines = [line.partition(b":") for line in text.split(b"\n")]
    return {
        name.strip().lower().decode("latin-1"): value.strip().decode("latin-1") for name, colon, value in lines if colon
    }


def _write_part(content_id: str | None, response: HttpResponse) -> bytes:
    """Return the bytes of one part of the batch's response; a request with a Content-ID gets <response-ID>."""
    lines = [f"--{_BOUNDARY}", "Content-Type: application/http"]
    if content_id is not None:
        lines += headers_of((("Content-ID", f"<response-{content_id.strip().strip('<>')}>"),))
    body = bytes(content_of(response.body))
    lines += ["", f"HTTP/1.1 {response.status} ", *headers_of(response.headers), f"Content-Length: {len(body)}"]
    return "\r\n".join((*lines, "", "")).encode("ascii") + body + b"\r\n"
