"""Hostile responses, through every HTTP adapter: endless, huge, slow, nested and lying ones.

Each ends within its bounds, a POST is sent once, and the caller gets what the plain client would give: forbear adds
neither an error of its own nor an attempt.
"""

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat

import pytest

from forbear.testing import virtual_time
from forbear_testkit.hostile.adapters import ADAPTERS, ATTEMPTS, Adapter
from forbear_testkit.hostile.bounds import Bounded, Limits
from forbear_testkit.hostile.peer import MOST, Peer, Pieces

STALL = (b"",)
PAGE = b"x" * 65536
BUSY = b"HTTP/1.1 503 Busy\r\nConnection: close\r\n"  # else the next request might meet a connection about to close
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


LIMITS = Limits()

# httpx leaves its generators to the collector where a body is not read to its end, which trio tells.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")


@dataclass(frozen=True)
class Case:
    """A response of the peer, and the most that it may cost."""

    name: str
    pieces: Pieces
    limits: Limits = LIMITS
    repeated: bool = True
    """False where a GET is not sent again: a success arrives, or a failure that ends the run."""
    same: bool = True
    """False where the end of the plain client depends on which bytes arrive together."""
    timeout: float = 10.0
    """The seconds that the client waits for a byte: few where none comes."""


def _sent(*pieces: bytes) -> Pieces:
    return lambda: pieces


def _endless(head: bytes, piece: bytes) -> Pieces:
    def pieces() -> Iterable[bytes]:
        return chain((head,), repeat(piece))

    return pieces


def _busy(*headers: bytes, body: bytes = b"") -> Pieces:
    return _sent(b"".join((BUSY, *headers, b"Content-Length: %d\r\n\r\n" % len(body), body)))


@cache
def _bomb() -> Iterable[bytes]:
    """Make the body at its first use: at import, every worker would."""
    return _busy(b"Content-Encoding: gzip\r\n", body=gzip.compress(bytes(50_000_000)))()


def _slowly(text: bytes) -> Pieces:
    def pieces() -> Iterator[bytes]:
        for place in range(len(text)):
            yield text[place : place + 1]
        yield b""

    return pieces


# What is endless comes in large pieces. The machine decides how many arrive together, and each read costs calls.
TRAILERS = b"X: y\r\n" * 10_000
CHUNK = b"10000\r\n" + PAGE + b"\r\n"
PART = b"HTTP/1.1 206 P\r\nContent-Range: bytes %s\r\nContent-Length: 9\r\n\r\n%s"
NESTED = b'{"error":' * 50_000
CASES = (
    # endless
    Case("a failure with an endless body", _endless(BUSY + b"\r\n", PAGE)),
    Case("a failure with endless chunks", _endless(BUSY + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK)),
    Case("a failure that claims a terabyte", _endless(BUSY + b"Content-Length: 1099511627776\r\n\r\n", PAGE)),
    Case("a success with endless chunks", _endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK), repeated=False),
    Case("endless headers", _endless(OK, b"X-%s: y\r\n" % (b"a" * 1000) * 64)),
    Case("an endless header", _endless(OK + b"X: ", PAGE)),
    Case("an endless status line", _endless(b"HTTP/1.1 200 ", PAGE)),
    Case("an endless chunk size", _endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536)),
    Case("an endless trailer", _endless(BUSY + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", TRAILERS), same=False),
    # huge
    Case("a length of 4400 digits", _sent(OK + b"Content-Length: " + b"9" * 4400 + b"\r\n\r\nabc")),
    Case("a failure with such a length", _sent(BUSY + b"Content-Length: " + b"9" * 4400 + b"\r\n\r\nabc")),
    Case("a length of 30 digits", _sent(OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabc")),
    Case("a bomb in gzip", _bomb),
    Case("a thousand headers", _busy(*(b"X-%d: y\r\n" % number for number in range(90)))),
    # Retry-After
    Case("Retry-After of commas", _busy(b"Retry-After: " + b"," * 7000 + b"\r\n")),
    Case("Retry-After of dates", _busy(b"Retry-After: " + b"06 Nov 1994 08:49:37 GMT," * 280 + b"\r\n")),
    Case("Retry-After of brackets", _busy(b"Retry-After: " + b"(" * 7000 + b"\r\n")),
    Case("Retry-After of digits", _busy(b"Retry-After: " + b"9" * 7000 + b"\r\n"), repeated=False),
    Case("Retry-After of a year", _busy(b"Retry-After: 06 Nov 9999 08:49:37 GMT\r\n"), repeated=False),
    Case("Retry-After and Date of garbage", _busy(b"Date: " + b"1" * 5000 + b"\r\nRetry-After: \xff\xfe-1e9\r\n")),
    # nested
    Case("a failure of nested JSON", _busy(b"Content-Type: application/json\r\n", body=NESTED)),
    Case("a failure of nested XML", _busy(b"Content-Type: application/xml\r\n", body=b"<a>" * 100_000)),
    # slow
    Case("a status line, then nothing", lambda: (OK, *STALL), timeout=0.2),
    Case("nothing", lambda: STALL, timeout=0.2),
    Case("a failure byte by byte, then nothing", _slowly(BUSY + b"Content-Length: 9\r\n\r\nabc"), timeout=0.2),
    # lying
    Case("less than was claimed", _sent(OK + b"Content-Length: 1000\r\n\r\nabc")),
    Case("two lengths", _sent(OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde")),
    Case("a negative length", _sent(OK + b"Content-Length: -5\r\n\r\nabcde")),
    Case("a length that is no number", _sent(OK + b"Content-Length: \xb2\r\n\r\nabcde")),
    Case(
        "a length and chunks", _sent(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
    ),
    Case("a part that nobody asked for", _sent(PART % (b"5-9/10", b"x"))),
    Case("a range of 4400 digits", _sent(PART % (b"0-%s/*" % (b"9" * 4400), b"x"))),
    Case("a status of 4400 digits", _sent(b"HTTP/1.1 " + b"9" * 4400 + b" OK\r\n\r\n")),
    Case("a status that is no number", _sent(b"HTTP/1.1 abc OK\r\n\r\n")),
    Case("another protocol", _sent(b"SSH-2.0-OpenSSH_9.6\r\n")),
    Case("control characters", _sent(BUSY + b"X: \x1b[2J\x00\x7f\r\nContent-Length: 0\r\n\r\n")),
)


def _ended(case: Case, adapter: Adapter, method: str, url: str, *, retries: bool) -> tuple[int | None, str]:
    """Return the status, or the kind of error, that a request ends with."""
    try:
        return adapter.send(method, url, case.timeout, retries)[0], ""
    except Exception as error:
        return None, f"{type(error).__module__}.{type(error).__qualname__}"


def _withstands(case: Case, adapter: Adapter, method: str) -> None:
    with Peer(case.pieces) as peer:
        plain = _ended(case, adapter, method, peer.url, retries=False)
        before, taken = peer.requests, peer.sent
        peer.requests = peer.sent = 0
        with virtual_time(seed=7) as time, Bounded(case.limits):
            found = _ended(case, adapter, method, peer.url, retries=True)
        assert found == plain or not case.same
        assert peer.sent <= max(MOST, taken)
        assert peer.requests <= (before if method == "POST" else before * ATTEMPTS)
        if not case.repeated:
            assert peer.requests == before
        assert sum(time.slept) <= 600


@pytest.mark.parametrize(
    ("case", "adapter", "method"),
    [
        pytest.param(case, ADAPTERS[number % len(ADAPTERS)], "POST" if number % 2 else "GET", id=case.name)
        for number, case in enumerate(CASES[::2])
    ],
)
def test_a_hostile_response_ends_within_its_bounds(case: Case, adapter: Adapter, method: str) -> None:
    """A sample: one adapter for each second case, another one for the next."""
    _withstands(case, adapter, method)


@pytest.mark.soak
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_so_it_does_through_every_adapter(case: Case, adapter: Adapter, method: str) -> None:
    """Every case through every adapter, as a read and as a write."""
    _withstands(case, adapter, method)
