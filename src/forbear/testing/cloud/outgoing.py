"""Replies as bytes: the head is written here, because what the service stores may hold anything; sends nothing."""

import re
from email.utils import formatdate
from functools import lru_cache

from forbear.testing.cloud.wire import Reply

_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f]")
_BODILESS = (204, 304)


def head_of(reply: Reply, size: int, now: float, *, lasting: bool) -> bytes:
    """The status line and the headers, of which those for the framing are added; `size` is that of the body."""
    lines = [f"HTTP/1.1 {reply.status} ", f"Date: {http_date(int(now))}", "Server: forbear-cloud"]
    lines += [f"{name}: {_sendable(value)}" for name, value in reply.headers]
    if has_body(reply):
        lines.append(f"Content-Length: {size}")
    if not lasting:
        lines.append("Connection: close")
    return "\r\n".join((*lines, "\r\n")).encode("ascii")


def has_body(reply: Reply) -> bool:
    """Whether a reply of this status has a body, which may be empty."""
    return reply.status not in _BODILESS


@lru_cache(1024)
def http_date(seconds: int) -> str:
    """A time as HTTP writes it."""
    return formatdate(seconds, usegmt=True)


def _sendable(value: str) -> str:
    """A value that the wire can carry: stored metadata may hold anything."""
    if value.isascii() and value.isprintable():
        return value.strip()
    return _UNSENDABLE.sub("?", value.encode("ascii", "replace").decode()).strip()
