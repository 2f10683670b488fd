"""How a response goes over the wire: whole, cut short, late, or not at all; data only."""

import enum
import re
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache

from forbear.testing.cloud.http.content import NOTHING, Content, content_of
from forbear.testing.cloud.http.messages import Headers, HttpResponse


class ResponseEnd(enum.Enum):
    """What follows the last byte sent."""

    KEEP = "the connection lives on"
    CLOSE = "FIN"
    RESET = "RST"
    STALL = "silence, until the client goes away or the limit is reached"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A response (None: not one byte), how many bytes of its body to send (None: all), and the end."""

    response: HttpResponse | None
    ending: ResponseEnd = ResponseEnd.KEEP
    cut: int | None = None
    limit: float = 0.0
    delay: float = 0.0


_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f]")
_BODILESS = (204, 304)


def framed(
    response: HttpResponse, now: float, *, lasting: bool, chunked: bool, head_only: bool
) -> tuple[bytes, Content, bytes]:
    """What stands before the body, the body, and what stands after it; `head_only` announces the body all the same."""
    body = content_of(response.body) if response.status not in _BODILESS else NOTHING
    head = _head(response, len(body), now, lasting=lasting, chunked=chunked)
    if head_only:
        return head, NOTHING, b""
    if not chunked:
        return head, body, b""
    # One chunk for all: the client learns as little of the length beforehand as from many.
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
    """Return the lines of headers, whatever their values hold."""
    return [f"{name}: {_sendable(value)}" for name, value in headers]


@lru_cache(1024)
def http_date(seconds: int) -> str:
    """A time as HTTP writes it."""
    return formatdate(seconds, usegmt=True)


def _sendable(value: str) -> str:
    """A value that the wire can carry: stored metadata may hold anything."""
    if value.isascii() and value.isprintable():
        return value.strip()
    return _UNSENDABLE.sub("?", value.encode("ascii", "replace").decode()).strip()
