"""Batches: many requests of the JSON API in one of multipart/mixed, answered one by one; knows no operation."""

from collections.abc import Callable, Sequence
from email.message import Message
from urllib.parse import urlsplit

from forbear.testing.cloud.http.content import Content, content_of
from forbear.testing.cloud.http.errors import ApiError, invalid, storage_error
from forbear.testing.cloud.http.hosts import Hosts
from forbear.testing.cloud.http.messages import Reply, Request, read_request
from forbear.testing.cloud.http.outgoing import headers_of

_MOST = 100
_LARGEST = 10 * 1024 * 1024
_LARGEST_RESPONSE = 32 * 1024 * 1024
_TOO_MUCH = "The responses before this one are too large for one batch: send this request by itself."
_BOUNDARY = "batch_forbear"
_INHERITED = frozenset({"authorization", "x-goog-user-project"})
"""Headers that a part takes from its batch unless it has them itself."""


def answer(request: Request, perform: Callable[[Request], Reply]) -> Reply:
    """Perform the requests of a batch in order, each on its own, and return their responses; 400 for no batch."""
    parts = _parts(request)
    if not 1 <= len(parts) <= _MOST:
        raise invalid(f"A batch has from 1 to {_MOST} requests, got {len(parts)}.")
    # All of them are read first: a mistake in one has no effect.
    inner = [_inner(request, part) for part in parts]
    pieces: list[bytes] = []
    size = 0
    for content_id, each in inner:
        reply = perform(each) if size <= _LARGEST_RESPONSE else storage_error(ApiError(413, _TOO_MUCH))
        pieces.append(_written(content_id, reply))
        size += len(pieces[-1])
    body = b"".join((*pieces, f"--{_BOUNDARY}--\r\n".encode()))
    return Reply(200, (("Content-Type", f"multipart/mixed; boundary={_BOUNDARY}"),), body)


def _parts(request: Request) -> Sequence[bytes]:
    header = Message()
    header["Content-Type"] = request.headers.get("content-type", "")
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/mixed" or not isinstance(boundary, str) or not boundary:
        raise invalid("A batch needs a Content-Type of multipart/mixed with a boundary.")
    if len(request.content) > _LARGEST:
        raise ApiError(413, f"A batch must have at most {_LARGEST} bytes, got {len(request.content)}.")
    # Lines end with CRLF, or with LF: so write Python's own tools, and the service takes it.
    body = b"\n" + request.body.replace(b"\r\n", b"\n")
    first, *parts = body.split(b"\n--" + boundary.encode("latin-1", "replace"), _MOST + 2)
    if first.strip() or not parts or not parts[-1].startswith(b"--"):
        raise invalid("A batch begins with a boundary, and ends with one that closes it.")
    return parts[:-1]


def _inner(batch: Request, part: bytes) -> tuple[str | None, Request]:
    outer, _, text = part.lstrip(b"\n").partition(b"\n\n")
    fields = _headers(outer)
    if not fields.get("content-type", "").startswith("application/http"):
        raise invalid("A part of a batch has the Content-Type application/http.")
    head, _, body = text.lstrip(b"\n").partition(b"\n\n")
    line, _, rest = head.partition(b"\n")
    words = line.decode("latin-1").split(" ")
    if len(words) not in {2, 3} or not words[1]:
        raise invalid("A part of a batch has a request line, headers, an empty line and a body.")
    headers = _headers(rest)
    inherited = {name: value for name, value in batch.headers.items() if name in _INHERITED}
    length = headers.get("content-length", "")
    if length.isdecimal() and len(length) < 9:
        body = body[: int(length)]
    target = _target(words[1])
    content: Content = content_of(body)
    return fields.get("content-id"), read_request(words[0], target, {**inherited, **headers}, content, batch.host)


def _target(text: str) -> str:
    """Return the path with the query of a target, which may be a whole URL; 403 for one of another host."""
    if text.startswith("/"):
        return text
    Hosts().check(None, text)
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


def _written(content_id: str | None, reply: Reply) -> bytes:
    lines = [f"--{_BOUNDARY}", "Content-Type: application/http"]
    if content_id is not None:
        inside = content_id.strip().strip("<>")
        lines += headers_of((("Content-ID", f"<response-{inside}>"),))
    body = bytes(content_of(reply.body))
    lines += ["", f"HTTP/1.1 {reply.status} ", *headers_of(reply.headers), f"Content-Length: {len(body)}"]
    return "\r\n".join((*lines, "", "")).encode("ascii") + body + b"\r\n"
