"""Streams get what gzip decodes to, from its first two bytes on, and never an incomplete object without an error."""

import gzip
import io

import pytest

from forbear_transfer.downloads.sinks import GzipDecoder, StreamSink
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
