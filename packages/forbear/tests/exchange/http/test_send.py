"""Bodies for several attempts: every attempt yields the whole body without what is skipped, or raises."""

import io
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.exchange.http.send import Fixed, Rendered, Seekable, body_of_stream
from forbear.http.bodies import AsyncOnce, Once

Kind = Fixed | Seekable | Rendered | Once

PIECES = st.lists(st.binary(max_size=5), max_size=6)


def reading(file: io.BytesIO) -> Iterator[bytes]:
    """A file in pieces, as often as it is iterated."""
    while piece := file.read(3):
        yield piece


class Read:
    """A stream as a client makes it of a file."""

    def __init__(self, file: io.BytesIO) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        return reading(self.file)


def seekable(pieces: list[bytes]) -> Seekable:
    """A body from the middle of a file."""
    file = io.BytesIO(b"before" + b"".join(pieces))
    file.seek(6)
    body = body_of_stream(Read(file), file, 0)
    assert isinstance(body, Seekable)
    return body


class Form:
    """A stream that takes its file back before it reads it."""

    def __init__(self, file: io.BytesIO) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        self.file.seek(0)
        return reading(self.file)


def rendered(pieces: list[bytes]) -> Rendered:
    """A form of one file."""
    file = io.BytesIO(b"".join(pieces))
    return Rendered(Form(file), [file])


MAKERS: list[Callable[[list[bytes]], Kind]] = [
    lambda pieces: Fixed(b"".join(pieces)),
    seekable,
    rendered,
    lambda pieces: body_of_stream(iter(pieces), None, 1000),
]


@pytest.mark.parametrize("make", MAKERS, ids=["fixed", "seekable", "rendered", "once"])
@given(pieces=PIECES, breaks=st.lists(st.integers(0, 4), max_size=3), skip=st.integers(0, 30))
def test_every_attempt_begins_at_the_beginning(
    make: Callable[[list[bytes]], Kind], pieces: list[bytes], breaks: list[int], skip: int
) -> None:
    """However earlier attempts broke off, the next one has all of the body but what is skipped."""
    body, whole = make(pieces), b"".join(pieces)
    for taken in breaks:
        for _ in zip(range(taken), body.chunks(0), strict=False):
            pass
    assert body.why_not_again() is None
    assert b"".join(body.chunks(skip)) == whole[skip:]
    assert not body.failed


@given(pieces=PIECES, breaks=st.lists(st.integers(0, 4), max_size=3), skip=st.integers(0, 30))
async def test_the_same_holds_for_async_bodies(pieces: list[bytes], breaks: list[int], skip: int) -> None:
    """Streams, and fixed bodies and files in async clients."""

    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    for body in (AsyncOnce(stream(), 1000), Fixed(b"".join(pieces)), seekable(pieces)):
        for taken in breaks:
            chunks = body.achunks(0)
            for _ in range(taken):
                await anext(chunks, b"")
        assert b"".join([chunk async for chunk in body.achunks(skip)]) == b"".join(pieces)[skip:]


def test_a_body_that_cannot_be_whole_raises() -> None:
    """A closed file and a stream beyond the limit refuse to be iterated again."""
    file = io.BytesIO(b"abc")
    body = body_of_stream(Read(file), file, 0)
    file.close()
    with pytest.raises(ValueError, match="can no longer be rewound"):
        list(body.chunks(0))
    long = body_of_stream(iter([b"abc"]), None, 2)
    assert list(long.chunks(0)) == [b"abc"]
    with pytest.raises(ValueError, match="one-shot stream of more than 2 bytes"):
        list(long.chunks(0))


async def test_a_stream_that_raises_is_marked() -> None:
    """The caller's own error is not taken for one of the connection."""

    def stream() -> Iterator[bytes]:
        yield b"a"
        raise OSError("disk")

    async def astream() -> AsyncIterator[bytes]:
        yield b"a"
        raise OSError("disk")

    body, abody = body_of_stream(stream(), None, 10), AsyncOnce(astream(), 10)
    with pytest.raises(OSError, match="disk"):
        list(body.chunks(0))
    with pytest.raises(OSError, match="disk"):
        [chunk async for chunk in abody.achunks(0)]
    assert body.failed
    assert abody.failed
    assert body.why_not_again() == abody.why_not_again() is not None
