"""Heads of requests: plain ones are read without h11, and mean the same."""

import re

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_cloud import Cloud
from forbear_cloud.http import incoming
from forbear_testkit.cloud.sockets import talk

_UPLOAD = b"POST /upload/storage/v1/b/bkt/o?uploadType=media&name=o HTTP/1.1\r\nHost: localhost\r\n"
_ODD = (
    b"Content-Length: 5\r\nContent-Length: 5\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: 0000000000000000000000000000005\r\n",
    b"Content-Length : 5\r\n",
    b"Content-Length:5\r\n",
    b"content-length:  5 \r\n",
    b"Content-Length: 5\r\nX: a\x00b\r\n",
    b"Content-Length: 5\r\nX:\r\n",
    b"Content-Length: 5\r\nX: \xe9\r\n",
    b"Content-Length: 5\r\nX y: a\r\n",
    b"Content-Length: 5\r\nX: a\r\n b\r\n",
    b"Content-Length: 5\r\nX: a\nY: b\r\n",
    b"Content-Length: 5\r\nHost: localhost\r\n",
)
_ODD_LINES = (
    b"post / HTTP/1.1",
    b"GET  / HTTP/1.1",
    b"GET / HTTP/1.2",
    b"GET / x HTTP/1.1",
    b"GET /\x7f HTTP/1.1",
    b"GET /",
)


@pytest.mark.parametrize(
    "request_bytes",
    [
        *(_UPLOAD + headers + b"\r\nhello" for headers in _ODD),
        *(line + b"\r\nHost: localhost\r\n\r\n" for line in _ODD_LINES),
    ],
)
def test_odd_heads_get_the_same_status(cloud: Cloud, request_bytes: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd head gets the status that h11 would give it alone."""
    answer = talk(cloud, request_bytes)
    monkeypatch.setattr(incoming, "_PLAIN", re.compile(rb"(?!)"))
    assert talk(cloud, request_bytes).partition(b"\r\n")[0] == answer.partition(b"\r\n")[0]


_names = st.sampled_from([b"Host", b"host", b"Content-Length", b"X-A", b"x-a", b"Connection", b"Expect", b"X:", b"Y "])
_values = st.one_of(
    st.integers(0, 10**18).map(lambda size: b"%d" % size), st.text(st.characters(max_codepoint=255)).map(
        lambda text: text.encode("latin-1")
    ), st.sampled_from([b"localhost", b"a  b", b" a", b"close", b"a\tb", b"100-continue"])
)  # fmt: skip
_lines = st.lists(st.tuples(_names, st.sampled_from([b": ", b":", b":\t"]), _values).map(b"".join), max_size=6)
_first = st.tuples(
    st.sampled_from([b"GET", b"POST", b"get", b"FOO"]), st.binary(min_size=1, max_size=4), st.just(b"HTTP/1.1")
).map(b" ".join)


@given(st.one_of(st.just(b"GET /a?b HTTP/1.1"), _first), _lines, st.binary(max_size=3))
def test_plain_heads_mean_what_h11_reads(first: bytes, lines: list[bytes], rest: bytes) -> None:
    """Whatever the quick reader accepts, h11 accepts, too, with the same method, target, headers and rest."""
    data = b"\r\n".join((first, *lines, b"", rest))
    head = incoming._read_plain(data)
    if head is not None:
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(data)
        event = parser.next_event()
        assert isinstance(event, h11.Request)
        assert (head.method, head.target) == (event.method.decode(), event.target.decode("latin-1"))
        assert head.headers == incoming._headers(event)
        assert head.rest == parser.trailing_data[0]


def test_most_heads_are_plain() -> None:
    """The heads that clients send are read without h11."""
    head = incoming._read_plain(_UPLOAD + b"Authorization: Bearer a.b\r\nContent-Length: 5\r\nAccept: */*\r\n\r\nhello")
    assert head is not None
    assert (head.headers["content-length"], head.rest) == ("5", b"hello")
