"""Chunks of a session: what is asked, and what is sent of them after the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.exchange.http.send import ORIGINAL, ChunkSession
from forbear.http.request import Request


def chunk_of(**headers: str) -> ChunkSession | None:
    """The chunk of a request with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ChunkSession.of(Request("PUT", "host", "/upload?upload_id=1", named, None))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content_range": "bytes 0-9/10"}, (0, 10, "10")),
        ({"content_range": " Bytes  5-9/* "}, (5, 10, "*")),
        ({"content_length": "7"}, (0, 7, "7")),
        ({"content_length": "0"}, (0, 0, "0")),
        ({"transfer_encoding": "chunked"}, (0, None, "*")),
        ({"content_range": "bytes */10"}, None),
        ({"content_range": "items 0-9/10"}, None),
        ({"content_range": "bytes 9-0/10"}, None),
        ({"content_range": "bytes ²-9/10"}, None),
        ({"content_range": "bytes 0-9"}, None),
        ({"content_range": "bytes 0-9/5"}, None),
        ({"content_range": ""}, None),
    ],
)
def test_a_chunk_is_read_off_its_headers(headers: dict[str, str], expected: tuple[int, int | None, str] | None) -> None:
    """Content-Range says which bytes, and without one the body is the whole object."""
    chunk = chunk_of(**headers)
    assert (None if chunk is None else (chunk.start, chunk.end, chunk.total)) == expected


@given(start=st.integers(0, 50), size=st.integers(1, 50), stored=st.integers(0, 120))
def test_only_what_is_missing_is_sent(start: int, size: int, stored: int) -> None:
    """Whatever a session has, what goes next begins at its very end and stops at the chunk's, or nothing goes."""
    chunk = chunk_of(content_range=f"bytes {start}-{start + size - 1}/*")
    assert chunk is not None
    send = chunk.find_rest(308, {"range": f"bytes=0-{stored - 1}"} if stored else {})
    if send is None:
        assert stored < start or stored >= start + size
    elif send is ORIGINAL:
        assert stored == start
    else:
        assert send.skip == stored - start
        assert send.headers == {
            "content-range": f"bytes {stored}-{start + size - 1}/*",
            "content-length": str(start + size - stored),
        }


@pytest.mark.parametrize("status", [200, 201, 204, 302])
def test_any_other_answer_is_the_callers(status: int) -> None:
    """Only 308 says that something is missing."""
    chunk = chunk_of(content_length="10")
    assert chunk is not None
    assert chunk.find_rest(status, {}) is None
