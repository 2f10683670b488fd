"""The body of a request on its way through several attempts: bytes, files, streams. It knows no client library.

The rule: every attempt sends the whole body from its beginning or raises, never the second half as if it were all.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Protocol

from forbear.http.bodies import AsyncReplay, Replay, position, rewind


class Body(Protocol):
    """A body that may have to be sent again."""

    @property
    def once(self) -> bool:
        """Whether the client's own stream comes only once, so that the first attempt, too, must send `chunks`."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the caller's own stream raised while it was sent."""
        ...

    def why_not_again(self) -> str | None:
        """Why the body cannot be sent again, None if it can."""
        ...


class Fixed:
    """Bytes."""

    __slots__ = ("content",)

    once = False
    failed = False

    def __init__(self, content: bytes) -> None:
        self.content = content

    def why_not_again(self) -> None:
        """Nothing keeps bytes from being sent again."""

    def chunks(self, skip: int) -> Iterator[bytes]:
        """The body without its first `skip` bytes."""
        yield self.content[skip:]

    async def achunks(self, skip: int) -> AsyncIterator[bytes]:
        """The body without its first `skip` bytes."""
        yield self.content[skip:]


class Seekable:
    """A file, sent again from where it stood, through the `stream` by which the client reads it."""

    __slots__ = ("_file", "_start", "_stream")

    once = True
    failed = False

    def __init__(self, file: object, stream: Iterable[bytes], start: int) -> None:
        self._file = file
        self._stream = stream
        self._start = start

    def why_not_again(self) -> str | None:
        """A file may have been closed meanwhile."""
        if position(self._file) is not None:
            return None
        return "the body is a file that can no longer be rewound; keep it open until the reply is there, or pass bytes"

    def chunks(self, skip: int) -> Iterator[bytes]:
        """The body without its first `skip` bytes."""
        if not rewind(self._file, self._start + skip):
            raise ValueError("the file that is the body can no longer be rewound")
        yield from self._stream

    async def achunks(self, skip: int) -> AsyncIterator[bytes]:
        """The body without its first `skip` bytes; reading a file does not wait for others."""
        for chunk in self.chunks(skip):
            yield chunk


class Once:
    """A stream that comes once: what was kept of it is sent again, then the rest of the stream."""

    __slots__ = ("_replay", "failed")

    once = True

    def __init__(self, stream: Iterable[bytes], limit: int) -> None:
        self._replay = Replay(stream, limit)
        self.failed = False

    def why_not_again(self) -> str | None:
        """More than the limit is not kept."""
        return self._replay.refusal

    def chunks(self, skip: int) -> Iterator[bytes]:
        """The body without its first `skip` bytes."""
        try:
            for chunk in self._replay:
                if skip < len(chunk):
                    yield chunk[skip:]
                skip = max(skip - len(chunk), 0)
        except Exception:
            self.failed = True
            raise


class AsyncOnce:
    """An async stream that comes once: what was kept of it is sent again, then the rest of the stream."""

    __slots__ = ("_replay", "failed")

    once = True

    def __init__(self, stream: AsyncIterable[bytes], limit: int) -> None:
        self._replay = AsyncReplay(stream, limit)
        self.failed = False

    def why_not_again(self) -> str | None:
        """More than the limit is not kept."""
        return self._replay.refusal

    async def achunks(self, skip: int) -> AsyncIterator[bytes]:
        """The body without its first `skip` bytes."""
        try:
            async for chunk in self._replay:
                if skip < len(chunk):
                    yield chunk[skip:]
                skip = max(skip - len(chunk), 0)
        except Exception:
            self.failed = True
            raise


def streamed(stream: Iterable[bytes], file: object, limit: int) -> Seekable | Once:
    """The body that a sync client reads through `stream`, perhaps from `file`; `limit` bytes of a stream are kept."""
    start = position(file)
    return Once(stream, limit) if start is None else Seekable(file, stream, start)
