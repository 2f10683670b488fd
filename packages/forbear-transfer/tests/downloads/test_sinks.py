"""Streams get what gzip decodes to, from its first two bytes on, and never an incomplete object without an error."""

import gzip
import io
from typing import Any

import pytest

from forbear_transfer.downloads.sinks import GzipDecoder, RangeSink, StreamSink
from forbear_transfer.errors import TransferError

pytestmark = pytest.mark.anyio

PLAIN = bytes(1000) + b"end"
PACKED = gzip.compress(PLAIN, mtime=0)


async def written(*pieces: bytes) -> bytes:
    """Return what a decoding stream has written of some pieces."""
    stream = io.BytesIO()
    sink = StreamSink(stream, "the stream", sum(map(len, pieces)), GzipDecoder("gs://bkt/name"))
    for piece in pieces:
        await sink.write(piece)
    await sink.finish()
    return stream.getvalue()


@pytest.mark.parametrize("first", [0, 1, 2, 3, len(PACKED)])
async def test_gzip_is_recognized_however_it_arrives(first: int) -> None:
    """The pieces in which gzip arrives do not matter."""
    assert await written(PACKED[:first], PACKED[first:]) == PLAIN


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f", b"xy", b"xyz"])
async def test_short_data_that_is_no_gzip_stays_as_it_is(data: bytes) -> None:
    """The bytes that were kept to recognize gzip are written at the end."""
    assert await written(data) == data


@pytest.mark.parametrize("size", [2, 10, len(PACKED) - 9, len(PACKED) - 1])
async def test_incomplete_gzip_is_an_error(size: int) -> None:
    """Gzip that ends too early raises an error at its end, also if all that it decodes to was written."""
    with pytest.raises(TransferError):
        await written(PACKED[:size])


class Full(io.RawIOBase):
    """A raw stream whose `write` returns `count`, and after a hundred calls 1, so that no test is endless."""

    def __init__(self, count: int | None) -> None:
        self._count = count
        self.writes: list[bytes] = []

    def write(self, data: Any, /) -> int | None:
        """Take nothing."""
        self.writes.append(bytes(data))
        return self._count if len(self.writes) < 100 else 1


@pytest.mark.parametrize("count", [None, 0, -1])
@pytest.mark.parametrize("ranged", [False, True])
async def test_a_stream_that_takes_nothing_is_written_to_once(ranged: bool, count: int | None) -> None:
    """A `write` that returns None, as a raw file in non-blocking mode does, is an error: no bytes are repeated."""
    stream: Any = Full(count)
    sink = RangeSink(stream, "the stream", 0, 3) if ranged else StreamSink(stream, "the stream", 3)
    with pytest.raises(TransferError, match=f"cannot write the stream: its `write` returned {count}, and must"):
        await sink.write(b"abc")
    assert stream.writes == [b"abc"]


async def test_a_decoded_end_that_is_not_taken_is_an_error() -> None:
    """The byte that was kept to recognize gzip, too, is written once."""
    stream: Any = Full(None)
    sink = StreamSink(stream, "the stream", 1, GzipDecoder("gs://bkt/name"))
    await sink.write(b"x")
    with pytest.raises(TransferError, match="returned None"):
        await sink.finish()
    assert stream.writes == [b"x"]
