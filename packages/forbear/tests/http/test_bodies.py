"""Bodies: what can be sent again, and the bounded memory for what comes only once."""

import asyncio
import io
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from forbear.http import bodies
from forbear.http.bodies import AsyncOnce, Once, Recording

TOO_MUCH = "the body is a one-shot stream of more than {}, too much to keep; pass bytes or a seekable file"
BROKEN = "the body's own stream failed, so the rest of it is lost; pass bytes or a seekable file"


def _nowhere(_: int) -> int:
    return 0


class Iterable:
    """Iterable again and again, but nothing says that it yields the same."""

    def __iter__(self) -> Iterator[bytes]:
        return iter((b"a",))


class AsyncFile:
    """An async file, whose seek() and tell() are of no use to sync code."""

    def __aiter__(self) -> "AsyncFile":
        return self

    def seek(self, position: int) -> int:
        return position

    def tell(self) -> int:
        return 0


class Odd:
    """A body with the given methods."""

    def __init__(self, **methods: object) -> None:
        self.__dict__.update(methods)


def test_a_file_is_sent_again_from_where_it_stood(tmp_path: Path) -> None:
    """A seekable file is put back to where the first attempt began, not to its beginning."""
    path = tmp_path / "body"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        file.seek(4)
        start = bodies.position(file)
        assert start == 4
        assert file.read() == b"456789"
        assert bodies.rewind(file, start)
        assert file.read() == b"456789"


def test_a_file_at_its_beginning_is_seekable() -> None:
    """Position 0 is a position."""
    assert bodies.position(io.BytesIO(b"x")) == 0


def test_a_pipe_comes_once() -> None:
    """A file that cannot seek is a stream."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as pipe, os.fdopen(write, "wb"):
        assert bodies.position(pipe) is None


def test_a_closed_file_cannot_be_put_back() -> None:
    """A closed file has no position and cannot be put back to one."""
    file = io.BytesIO(b"x")
    file.close()
    assert bodies.position(file) is None
    assert not bodies.rewind(file, 0)


def _refuse(*_: object) -> int:
    raise OSError("Illegal seek")


def _break(*_: object) -> int:
    raise RuntimeError("the file is gone")


def test_a_file_of_the_users_own_that_breaks() -> None:
    """Whatever a file raises, it has no position and cannot be put back to one."""
    file = Odd(seek=_break, tell=_break)
    assert bodies.position(file) is None
    assert not bodies.rewind(file, 0)


@pytest.mark.parametrize(
    "body",
    [
        Iterable(),
        iter([b"x"]),
        (chunk for chunk in [b"x"]),
        AsyncFile(),
        Odd(seek=_nowhere),
        Odd(tell=lambda: 0),
        Odd(seek=3, tell=lambda: 0),
        Odd(seek=_nowhere, tell=lambda: 0, seekable=lambda: False),
        Odd(seek=_nowhere, tell=_refuse, seekable=lambda: True),
        Odd(seek=_nowhere, tell=lambda: None),
        Odd(seek=_nowhere, tell=lambda: "0"),
        b"bytes",
        None,
        3,
    ],
)
def test_everything_else_has_no_position(body: object) -> None:
    """Whatever is no seekable file has no position."""
    assert bodies.position(body) is None


def test_a_file_need_not_say_that_it_is_seekable() -> None:
    """Older file-like objects have seek() and tell() only."""
    assert bodies.position(Odd(seek=_nowhere, tell=lambda: 7)) == 7


def test_a_file_that_refuses_to_be_put_back() -> None:
    """A failing seek() means that the body cannot be sent again."""
    assert not bodies.rewind(Odd(seek=_refuse), 0)


def test_a_stream_goes_on_where_it_was_broken_off() -> None:
    """The second attempt sends what the first one took from the stream, then the rest of the same stream."""
    body = Once(chunk for chunk in [b"a", b"b", b"c"])
    first = body.chunks(0)
    assert [next(first), next(first)] == [b"a", b"b"]
    assert list(body.chunks(0)) == [b"a", b"b", b"c"]
    assert list(body.chunks(0)) == [b"a", b"b", b"c"]
    assert body.why_not_again() is None


def test_a_stream_that_can_be_iterated_twice_is_still_taken_once() -> None:
    """A second iterator would send the beginning twice."""
    body = Once([b"a", b"b"])
    assert next(body.chunks(0)) == b"a"
    assert list(body.chunks(0)) == [b"a", b"b"]


def test_chunks_are_copied() -> None:
    """A stream that reuses its buffer does not change what was kept."""
    buffer = bytearray(b"a")

    def stream() -> Iterator[bytes]:
        for letter in b"xy":
            buffer[:] = bytes([letter])
            yield buffer  # type: ignore[misc]  # as sloppy streams do

    body = Once(stream())
    assert b"".join(bytes(chunk) for chunk in body.chunks(0)) == b"xy"
    assert list(body.chunks(0)) == [b"x", b"y"]


@pytest.mark.parametrize(("limit", "kept"), [(4, True), (3, False), (0, False)])
def test_the_limit_is_on_bytes(limit: int, kept: bool) -> None:
    """Just as many bytes as the limit are kept; with one more, all is dropped and the next attempt refused."""
    body = Once(iter([b"ab", b"cd"]), limit)
    assert list(body.chunks(0)) == [b"ab", b"cd"]
    if kept:
        assert body.why_not_again() is None
        assert list(body.chunks(0)) == [b"ab", b"cd"]
    else:
        assert body.why_not_again() == TOO_MUCH.format(f"{limit} bytes")
        with pytest.raises(ValueError, match="one-shot stream of more than"):
            next(body.chunks(0))


def test_the_default_limit_is_8_mib() -> None:
    """8 MiB are kept; one more byte, and the text says so."""
    recording = Recording()
    chunk = bytes(1024 * 1024)
    for _ in range(8):
        recording.add(chunk)
    assert recording.why_not_again() is None
    recording.add(b"x")
    assert recording.why_not_again() == TOO_MUCH.format("8 MiB")


@pytest.mark.parametrize(
    ("limit", "text"),
    [(1024 * 1024, "1 MiB"), (1024 * 1024 + 1, "1048577 bytes"), (2048, "2048 bytes"), (1, "1 bytes"), (0, "0 bytes")],
)
def test_the_refusal_names_the_limit(limit: int, text: str) -> None:
    """Whole MiB are shown as such."""
    recording = Recording(limit)
    recording.add(bytes(limit + 1))
    assert recording.why_not_again() == TOO_MUCH.format(text)


def test_an_overflown_recording_keeps_nothing_and_stays_refused() -> None:
    """Small chunks after the overflow do not bring the body back, and no memory is held."""
    body = Once(iter([b"abc", b"x", b""]), 2)
    assert list(body.chunks(0)) == [b"abc", b"x"]
    assert body._chunks == []
    assert body.why_not_again() == TOO_MUCH.format("2 bytes")


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (-1, "`limit` must be 0 or more, got -1"),
        *((odd, f"`limit` must be a whole number of bytes, got {odd!r}") for odd in (1.5, "8", None, True)),
    ],
)
def test_a_limit_is_a_whole_number(limit: object, why: str) -> None:
    """A limit that cannot be right is refused where it is given."""
    with pytest.raises((TypeError, ValueError)) as caught:
        Recording(limit)  # type: ignore[arg-type]
    assert str(caught.value) == why


def test_a_stream_that_failed_is_not_sent_again() -> None:
    """A generator that raised would go on as if it were at its end, and half a body would be sent."""

    def stream() -> Iterator[bytes]:
        yield b"a"
        raise OSError("disk")

    body = Once(stream())
    with pytest.raises(OSError, match="disk"):
        list(body.chunks(0))
    assert body.failed
    assert body.why_not_again() == BROKEN
    with pytest.raises(ValueError, match="own stream failed"):
        list(body.chunks(0))


def test_a_client_that_stops_reading_does_not_break_the_stream() -> None:
    """Closing an attempt's iterator leaves the stream and what was kept of it alone."""
    body = Once(chunk for chunk in [b"a", b"b"])
    attempt = body.chunks(0)
    next(attempt)
    attempt.close()  # type: ignore[attr-defined]
    assert list(body.chunks(0)) == [b"a", b"b"]


async def _stream(*chunks: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if error is not None:
        raise error


async def test_an_async_stream_goes_on_where_it_was_broken_off() -> None:
    """The same holds for async streams."""
    body = AsyncOnce(_stream(b"a", b"b", b"c"))
    first = body.achunks(0)
    assert aiter(first) is first
    assert [await anext(first), await anext(first)] == [b"a", b"b"]
    assert [chunk async for chunk in body.achunks(0)] == [b"a", b"b", b"c"]
    assert [chunk async for chunk in body.achunks(0)] == [b"a", b"b", b"c"]
    assert [chunk async for chunk in body.achunks(0)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 4])
async def test_the_first_bytes_may_be_left_out(skip: int) -> None:
    """An upload session that has the beginning gets the rest, in whatever chunks it comes, and no empty chunk."""
    chunks = [b"ab", b"", b"c"]
    body, abody = Once(chunks), AsyncOnce(_stream(*chunks))
    for _ in range(2):
        sent = [*body.chunks(skip)], [chunk async for chunk in abody.achunks(skip)]
        assert sent[0] == sent[1]
        assert b"".join(sent[0]) == b"abc"[skip:]
        assert b"" not in sent[0]


async def test_an_async_stream_over_the_limit_is_not_sent_again() -> None:
    """The same limit holds for async streams."""
    body = AsyncOnce(_stream(b"ab", b"c"), 2)
    assert [chunk async for chunk in body.achunks(0)] == [b"ab", b"c"]
    assert body.why_not_again() == TOO_MUCH.format("2 bytes")
    with pytest.raises(ValueError, match="one-shot stream of more than"):
        await anext(body.achunks(0))
    assert body.failed


async def test_an_async_stream_that_failed_is_not_sent_again() -> None:
    """The same holds for an async stream that raised."""
    body = AsyncOnce(_stream(b"a", error=OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        [chunk async for chunk in body.achunks(0)]
    assert body.failed
    assert body.why_not_again() == BROKEN


BEING_READ = "the body's own stream is still being read for the previous attempt; pass bytes or a seekable file"


async def test_an_async_stream_that_is_being_read_is_not_sent_again() -> None:
    """While one attempt waits for the next chunk, another one would miss it."""
    go = asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        yield b"a"
        await go.wait()
        yield b"b"

    body = AsyncOnce(stream())
    first = body.achunks(0)
    assert await anext(first) == b"a"
    waiting = asyncio.ensure_future(anext(first))
    await checkpoint()
    refusals = [body.why_not_again()]
    with pytest.raises(ValueError, match="still being read"):
        body.achunks(0)
    go.set()
    assert await waiting == b"b"
    assert [*refusals, body.why_not_again()] == [BEING_READ, None]
    assert [chunk async for chunk in body.achunks(0)] == [b"a", b"b"]


async def test_an_async_stream_that_was_cancelled_says_so() -> None:
    """A stream whose attempt was cancelled while it waited has no more chunks, for no fault of its own."""
    body = AsyncOnce(_waiting())
    task = asyncio.ensure_future(anext(body.achunks(0)))
    await checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not body.failed
    assert str(body.why_not_again()).startswith("the body's own stream was cancelled with the attempt that read it")


async def _waiting() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def test_a_stream_that_is_being_read_is_not_sent_again() -> None:
    """The same holds for a stream that another thread, or the stream itself, is in the middle of."""
    refusals: list[str | None] = []

    def stream() -> Iterator[bytes]:
        refusals.append(body.why_not_again())
        with pytest.raises(ValueError, match="still being read"):
            list(body.chunks(0))
        yield b"a"

    body = Once(stream())
    assert list(body.chunks(0)) == [b"a"]
    assert refusals == [BEING_READ]
    assert body.why_not_again() is None


async def test_an_attempt_that_was_left_takes_nothing_from_the_next_one() -> None:
    """Only the last attempt to begin reads on: whoever goes on with an older one gets an error, not a chunk."""
    body = Once(iter([b"a", b"b", b"c"]))
    old = body.chunks(0)
    assert next(old) == b"a"
    new = body.chunks(0)
    assert [next(new), next(new)] == [b"a", b"b"]
    with pytest.raises(ValueError, match="by a later attempt"):
        next(old)
    assert body.failed
    assert list(new) == [b"c"]
    abody = AsyncOnce(_stream(b"a", b"b", b"c"))
    first, second = abody.achunks(0), abody.achunks(0)
    with pytest.raises(ValueError, match="by a later attempt"):
        await anext(first)
    assert [chunk async for chunk in second] == [b"a", b"b", b"c"]


@given(st.lists(st.binary(max_size=5), max_size=8), st.lists(st.integers(0, 9), max_size=5), st.integers(0, 40))
def test_no_attempt_ever_sends_anything_but_the_body(chunks: list[bytes], breaks: list[int], limit: int) -> None:
    """However often and wherever attempts break off, the next one sends the whole body or is refused."""
    body = Once(iter(chunks), limit)
    for taken in breaks:
        attempt = body.chunks(0)
        if body.why_not_again() is not None:
            break
        sent = [chunk for chunk, _ in zip(attempt, range(taken), strict=False)]
        assert b"".join(chunks).startswith(b"".join(sent))
    if body.why_not_again() is None:
        assert list(body.chunks(0)) == [chunk for chunk in chunks if chunk]
    else:
        assert sum(map(len, chunks)) > limit
