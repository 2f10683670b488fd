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
    except Exception:  # a pipe that claims to be seekable, a closed file, or a file of the user's own
        return None
    return where if isinstance(where, int) else None


def rewind(body: object, position: int) -> bool:
    """Seek a file to `position` and return True; return False if that fails: then it cannot be sent again."""
    try:
        body.seek(position)  # type: ignore[attr-defined]
    except Exception:  # as in `position`
        return False
    return True


class Recording:
    """The base of one-shot streams as bodies: the bytes that one has yielded so far, at most `limit` (default 8 MiB).

    A longer stream is not kept at all, and cannot be sent again. Only one attempt reads the stream. A new attempt
    cannot begin while an earlier one waits for a chunk. Once the new attempt has begun, the earlier one can read no
    more. An error of the stream, and a refusal to read it, set `failed`.
    """

    __slots__ = ("failed", "_attempts", "_chunks", "_is_read", "_limit", "_refusal", "_size")

    once = True

    def __init__(self, limit: int = LIMIT) -> None:
        check.at_least("limit", limit, 0, what="a whole number of bytes", whole=True)
        self.failed = False
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._refusal: str | None = None
        self._attempts = 0
        self._is_read = False

    def why_not_again(self) -> str | None:
        """Return the reason why the stream cannot be sent again (now), None if it can."""
        if self._refusal is None and self._is_read:
            return "the body's own stream is still being read for the previous attempt; pass bytes or a seekable file"
        return self._refusal

    def add(self, chunk: bytes) -> bytes:
        """Keep a chunk before it is sent, and return it: no stream yields it again. Past the limit, drop all."""
        if self._refusal is None:
            self._size += len(chunk)
            self._chunks.append(bytes(chunk))
            if self._size > self._limit:
                self._refuse(
                    f"the body is a one-shot stream of more than {_show(self._limit)}, too much to keep; "
                    "pass bytes or a seekable file"
                )
        return chunk

    def _begin(self) -> "tuple[int, Iterator[bytes]]":
        """Begin an attempt: return its number, from 1, and the kept chunks, which it sends first."""
        refusal = self.why_not_again()
        if refusal is not None:
            self.failed = True
            raise ValueError(refusal)
        self._attempts += 1
        return self._attempts, iter(tuple(self._chunks))

    def _reading(self, attempt: int) -> "Self":
        """Return a context manager for reading the next chunk; it records a failure of the stream.

        Raises ValueError if a later attempt has begun, since this one would miss a chunk.
        """
        if attempt != self._attempts:
            self.failed = True
            raise ValueError("the body is sent by a later attempt now")
        self._is_read = True
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._is_read = False
        if error is None or isinstance(error, StopIteration | StopAsyncIteration):
            return
        is_own = isinstance(error, Exception)
        self.failed = self.failed or is_own
        how = "failed" if is_own else "was cancelled with the attempt that read it"
        self._refuse(f"the body's own stream {how}, so the rest of it is lost; pass bytes or a seekable file")

    def _refuse(self, why: str) -> None:
        self._refusal = why
        self._chunks.clear()


class Once(Recording):
    """A stream that can be read only once: up to `limit` bytes of it are kept and sent again, then the rest.

    `chunks` raises ValueError where `why_not_again` has a reason; half a body is never sent.

    >>> body = OnceBody(iter([b"order", b" 7"]), limit=3)
    >>> [*body.chunks(skip=0)]
    [b'order', b' 7']
    >>> body.why_not_again()
    'the body is a one-shot stream of more than 3 bytes, too much to keep; pass bytes or a seekable file'
    """

    __slots__ = ("_rest",)

    def __init__(self, stream: "Iterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = iter(stream)  # taken once: a second iterator might start over, and send the beginning twice

    def chunks(self, skip: int) -> "Iterator[bytes]":
        """Yield the body without its first `skip` bytes."""
        return skip_bytes(self._read(), skip)

    def _read(self) -> "Iterator[bytes]":
        attempt, kept = self._begin()
        yield from kept
        while True:
            try:
                with self._reading(attempt):
                    chunk = next(self._rest)
            except StopIteration:
                return
            yield self.add(chunk)


def skip_bytes(chunks: "Iterable[bytes]", skip: int) -> "Iterator[bytes]":
    """Yield a stream without its first `skip` bytes, and without empty chunks."""
    for chunk in chunks:
        if skip < len(chunk):
            yield chunk[skip:]
        skip = max(skip - len(chunk), 0)


class AsyncOnce(Recording):
    """The async form of `Once`; cancelling an attempt that waits for the next chunk loses the rest of the body.

    Example: see `OnceBody`.
    """

    __slots__ = ("_rest",)

    def __init__(self, stream: "AsyncIterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = aiter(stream)

    def achunks(self, skip: int) -> "AsyncIterator[bytes]":
        """Return an async iterator over the body without its first `skip` bytes."""
        return _Attempt(self, skip)


class _Attempt:
    """The pass of one attempt over an `AsyncOnce`, without the first `skip` bytes: the kept chunks, then the rest.

    It is a class, because trio warns of an async generator that is not read to its end.
    """

    __slots__ = ("_body", "_kept", "_number", "_skip")

    def __init__(self, body: AsyncOnce, skip: int) -> None:
        self._number, self._kept = body._begin()
        self._body = body
        self._skip = skip

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return self

    async def __anext__(self) -> bytes:
        while True:
            chunk = next(self._kept, None)
            if chunk is None:
                with self._body._reading(self._number):
                    chunk = await anext(self._body._rest)
                self._body.add(chunk)
            part, self._skip = chunk[self._skip :], max(self._skip - len(chunk), 0)
            if part:
                return part


def _show(size: int) -> str:
    return f"{size // 1024**2} MiB" if size and size % 1024**2 == 0 else f"{size} bytes"
