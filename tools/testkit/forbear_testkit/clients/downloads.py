"""Downloads that break: data, responses and requests."""

import gzip
from typing import Any

import pytest

from forbear.services import rfc9110
from forbear_testkit.clients.flavours import FLAVOURS, Flavour, Result
from forbear_testkit.clients.others import OTHERS
from forbear_testkit.clients.wire import Answer, reply

_OFTEN = ("httpx", "httpx2-trio")


EVERY = pytest.mark.parametrize(
    "flavour",
    [
        *(pytest.param(each, marks=() if each.name in _OFTEN else pytest.mark.soak) for each in FLAVOURS),
        *OTHERS,
    ],
    ids=lambda flavour: flavour.name,
    indirect=True,
)
"""Run a test through all clients that see whole requests, of those that share their code some in `make soak` only."""


DATA = b"".join(b"line %d\n" % number for number in range(3000))


PACKED = gzip.compress(DATA, mtime=1)


STREAM = 10**7
"""More bytes than any body has: with `stop_after`, the caller gets them as they arrive, not as a whole."""


ETAG = 'ETag: "one"'


GZIP = "Content-Encoding: gzip"


def fetch(flavour: Flavour, url: str, policy: Any = rfc9110.policy, **options: Any) -> Result:
    """Get a URL under a policy."""
    return flavour.call(flavour.transport(policy), "GET", url, **options)


def head(status: int, *headers: str) -> bytes:
    """The beginning of a response."""
    return "\r\n".join([f"HTTP/1.1 {status} Whatever", *headers, "", ""]).encode()


def chunked(status: int, body: bytes, *headers: str, end: str = "keep") -> Answer:
    """A response of unknown length, without its last chunk where it does not `keep` the connection."""
    last = b"0\r\n\r\n" if end == "keep" else b""
    data = head(status, "Transfer-Encoding: chunked", *headers) + b"%x\r\n%s\r\n" % (len(body), body) + last
    return Answer(data, end)


def cut(body: bytes, *headers: str, at: int = 20, status: int = 200) -> Answer:
    """A response of a known length that ends too early."""
    return reply(status, body[:at], *headers, length=len(body), end="close")


def span(first: int, whole: bytes = DATA) -> str:
    """The Content-Range of the rest of an object."""
    return f"Content-Range: bytes {first}-{len(whole) - 1}/{len(whole)}"


RANGE = {"Range": "bytes=1000-"}


# Both libraries drop their own async generators where a body is left before its end, and trio reports that.
LEFT_BEFORE_ITS_END = pytest.mark.filterwarnings(
    "ignore:Exception ignored (in.|while finalizing generator) <async_generator object"
    ":pytest.PytestUnraisableExceptionWarning"
)
