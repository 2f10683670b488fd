"""Send a request body again: rewind files, and keep the bytes of a one-shot stream in bounded memory.

A seekable file is sent again from the position that it had first. Any other body that is not in memory counts as a
one-shot stream, even one that can be iterated twice, because nothing guarantees that it yields the same bytes again.
"""

from forbear.core import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
    from typing import Self

LIMIT = 8 * 1024 * 1024
"""The number of bytes of a one-shot stream that are kept by default."""


def position(body: object) -> int | None:
    """Return the current position of a seekable file, for `rewind`; None for any other body.

    None also for an asynchronous file, and for one that cannot tell its position (a pipe, a closed file).
    """
    if hasattr(body, "__aiter__") or not callable(getattr(body, "seek", None)):
        return None
    seekable, tell = getattr(body, "seekable", None), getattr(body, "tell", None)
    try:
        if tell is None or (seekable is not None and not seekable()):
            return None
        where = tell()
    except (OSError, ValueError):  # a pipe that claims to be seekable, or a closed file
        return None
    return where if isinstance(where, int) else None


def rewind(body: object, position: int) -> bool:
    """Seek a file to `position` and return True; return False if that fails: then it cannot be sent again."""
    try:
        body.seek(position)  # type: ignore[attr-defined]
    except (OSError, ValueError):
        return False
    return True


class Recording:
    """The bytes that a one-shot stream has yielded so far, at most `limit` of them (default 8 MiB).

    A longer stream is not kept at all, and cannot be sent again. Only one attempt reads the stream. A new attempt
    cannot begin while an earlier one waits for a chunk. Once the new attempt has begun, the earlier one can read no
    more.
    """

    __slots__ = ("_attempts", "_chunks", "_is_read", "_limit", "_refusal", "_size")

    def __init__(self, limit: int = LIMIT) -> None:
        check.at_least("limit", limit, 0, what="a whole number of bytes", whole=True)
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._refusal: str | None = None
        self._attempts = 0
        self._is_read = False

    @property
    def refusal(self) -> str | None:
        """The reason, as a text, why the stream cannot be sent again (now); None if it can."""
        if self._refusal is None and self._is_read:
            return "the body's own stream is still being read for the previous attempt; pass bytes or a seekable file"
        return self._refusal

    def add(self, chunk: bytes) -> None:
        """Keep a chunk before it is sent: no stream yields it again. Past the limit, drop all and set `refusal`."""
        if self._refusal is not None:
            return
        self._size += len(chunk)
        if self._size > self._limit:
            self._refuse(
                f"the body is a one-shot stream of more than {_show(self._limit)}, too much to keep; "
                "pass bytes or a seekable file"
            )
        else:
            self._chunks.append(bytes(chunk))

    def fail(self, error: BaseException) -> None:
        """Record in `refusal` that the stream raised `error` or was cancelled, and drop the kept chunks."""
        how = "failed" if isinstance(error, Exception) else "was cancelled with the attempt that read it"
        self._refuse(f"the body's own stream {how}, so the rest of it is lost; pass bytes or a seekable file")

    def _begin(self) -> tuple[int, tuple[bytes, ...]]:
        """Begin an attempt: return its number, from 1, and the kept chunks, which it sends first."""
        if self.refusal is not None:
            raise ValueError(self.refusal)
        self._attempts += 1
        return self._attempts, tuple(self._chunks)

    def _reading(self, attempt: int) -> "Self":
        """Return a context manager for reading the next chunk; it records a failure of the stream.

        Raises ValueError if a later attempt has begun, since this one would miss a chunk.
        """
        if attempt != self._attempts:
            raise ValueError("the body is sent by a later attempt now")
        self._is_read = True
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._is_read = False
        if error is not None and not isinstance(error, StopIteration | StopAsyncIteration):
            self.fail(error)

    def _refuse(self, why: str) -> None:
        self._refusal = why
        self._chunks.clear()


class Replay(Recording):
    """A one-shot stream that can be iterated once for each attempt: first the kept chunks, then the rest of the stream.

    Iterating raises ValueError where `refusal` says why the body cannot be sent again; half a body is never sent.
    """

    __slots__ = ("_rest",)

    def __init__(self, stream: "Iterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = iter(stream)  # taken once: a second iterator might start over, and send the beginning twice

    def __iter__(self) -> "Iterator[bytes]":
        attempt, kept = self._begin()
        yield from kept
        while True:
            try:
                with self._reading(attempt):
                    chunk = next(self._rest)
            except StopIteration:
                return
            self.add(chunk)
            yield chunk


class AsyncReplay(Recording):
    """The async form of Replay; cancelling an attempt that waits for the next chunk loses the rest of the body."""

    __slots__ = ("_rest",)

    def __init__(self, stream: "AsyncIterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = aiter(stream)

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return _Attempt(self, *self._begin())

    async def _next(self, attempt: int) -> bytes:
        with self._reading(attempt):
            chunk = await anext(self._rest)
        self.add(chunk)
        return chunk


class _Attempt:
    """The pass of one attempt over an `AsyncReplay`: first the kept chunks, then the rest of the stream.

    It is a class, because trio warns of an async generator that is not read to its end.
    """

    __slots__ = ("_kept", "_number", "_replay")

    def __init__(self, replay: AsyncReplay, number: int, kept: "Iterable[bytes]") -> None:
        self._number = number
        self._kept = iter(kept)
        self._replay = replay

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._kept:
            return chunk
        return await self._replay._next(self._number)


def _show(size: int) -> str:
    return f"{size // 1024**2} MiB" if size and size % 1024**2 == 0 else f"{size} bytes"
