"""Responses on their way out: how to deliver one, and its bytes."""

import enum
import re
from email.utils import formatdate
from functools import lru_cache
from typing import NamedTuple

from forbear_cloud.http.content import NOTHING, Content, content_of
from forbear_cloud.http.messages import Headers, HttpResponse


class ResponseEnd(enum.Enum):
    """The action of the server after it has sent a response, or the part of it that is to be sent."""

    KEEP = "keep the connection open"
    CLOSE = "send FIN"
    RESET = "send RST"
    STALL = "send nothing until the client leaves or the limit is reached"


class Delivery(NamedTuple):
    """A response and how to send it.

    `response` None sends not one byte. `cut` is how many bytes of the body to send (None: all), and `ending` is the
    action after that. `delay` is how many seconds to wait before, and `limit` how many seconds a STALL lasts at most.
    """

    response: HttpResponse | None
    ending: ResponseEnd = ResponseEnd.KEEP
    cut: int | None = None
    limit: float = 0.0
    delay: float = 0.0


_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f]")
_BODILESS = (204, 304)


def frame(
    response: HttpResponse, now: float, *, lasting: bool, chunked: bool, head_only: bool
) -> tuple[bytes, Content, bytes]:
    """Return the bytes before the body, the body, and the bytes after it.

    `now` is the time for the Date header, in seconds since the epoch. Without `lasting` the response announces that the
    connection closes. With `chunked` the body is sent as one chunk, otherwise with its length. With `head_only` the
    head announces the body, which is left out. A 204 or 304 never has a body.
    """
    body = content_of(response.body) if response.status not in _BODILESS else NOTHING
    head = _head(response, len(body), now, lasting=lasting, chunked=chunked)
    if head_only:
        return head, NOTHING, b""
    if not chunked:
        return head, body, b""
    # One chunk is enough: it too does not state the length before the body begins.
    return (head + b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n") if body else (head, body, b"0\r\n\r\n")


def _head(response: HttpResponse, size: int, now: float, *, lasting: bool, chunked: bool) -> bytes:
    lines = [f"HTTP/1.1 {response.status} ", f"Date: {http_date(int(now))}", "Server: forbear-cloud"]
    lines += headers_of(response.headers)
    if response.status not in _BODILESS:
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}")
    if not lasting:
        lines.append("Connection: close")
    return "\r\n".join((*lines, "\r\n")).encode("ascii")


def headers_of(headers: Headers) -> list[str]:
    """Return the lines of these headers, without line ends; characters that HTTP cannot carry become "?"."""
    return [f"{name}: {_sendable(value)}" for name, value in headers]


@lru_cache(1024)
def http_date(seconds: int) -> str:
    """Return a time, in seconds since the epoch, as an HTTP date."""
    return formatdate(seconds, usegmt=True)


def _sendable(value: str) -> str:
    """Return a header value with "?" for each character that HTTP cannot carry, and without spaces around it.

    Stored metadata may contain any character; control characters and those outside ASCII are replaced.
    """
    if value.isascii() and value.isprintable():
        return value.strip()
    return _UNSENDABLE.sub("?", value.encode("ascii", "replace").decode()).strip()
