"""Whether a request body can be sent again, and a bounded memory for one that comes only once. It knows no client.

The rule: a seekable file is sent again from where it stood; everything else that is not in memory counts as a stream
that comes once, even if it can be iterated twice, for nothing says that it yields the same again.
"""

from forbear.core import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

LIMIT = 8 * 1024 * 1024
"""How much of a one-shot stream is kept by default, in bytes."""


def position(body: object) -> int | None:
    """Where a seekable file stands now, None for anything else; hand it to `rewind` before the next attempt."""
    if hasattr(body, "__aiter__") or not callable(getattr(body, "seek", None)):
        return None
    seekable, tell = getattr(body, "seekable", None), getattr(body, "tell", None)
    try:
        if tell is None or (seekable is not None and not seekable()):
            return None
        where = tell()
    except (OSError, ValueError):  # a pipe that says it can, or a closed file
        return None
    return where if isinstance(where, int) else None


def rewind(body: object, position: int) -> bool:
    """Put a file back to `position`; False if it cannot be, and then the body cannot be sent again."""
    try:
        body.seek(position)  # type: ignore[attr-defined]
    except (OSError, ValueError):
        return False
    return True


class Recording:
    """The bytes that a one-shot stream has yielded so far, up to `limit` of them (default 8 MiB).

    One attempt reads it at a time: none begins while another one waits for a chunk, and the last to begin reads on.
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
        """Why the stream cannot be sent again, None if it can."""
        if self._refusal is None and self._is_read:
            return "the body's own stream is still being read for the attempt before; pass bytes or a seekable file"
        return self._refusal

    def add(self, chunk: bytes) -> None:
        """Keep a chunk, before it is sent: one that was lost on the way was yielded all the same."""
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
        """Say that the stream raised or was cancelled: it is at its end now, which is not the end of the body."""
        how = "failed" if isinstance(error, Exception) else "was cancelled with the attempt that read it"
        self._refuse(f"the body's own stream {how}, so the rest of it is lost; pass bytes or a seekable file")

    def _begin(self) -> tuple[int, tuple[bytes, ...]]:
        """Return the number of an attempt that begins, and what it sends first."""
        if self.refusal is not None:
            raise ValueError(self.refusal)
        self._attempts += 1
        return self._attempts, tuple(self._chunks)

    def _check(self, attempt: int) -> None:
        """Raise ValueError where another attempt has begun, or it would miss a chunk."""
        if attempt != self._attempts:
            raise ValueError("the body is sent by a later attempt now")

    def _refuse(self, why: str) -> None:
        self._refusal = why
        self._chunks.clear()


class Replay(Recording):
    """A one-shot stream to be iterated once an attempt: first what was kept, then the rest of the same stream.

    Iterating raises ValueError, rather than send half a body, where `refusal` says why it cannot be sent again.
    """

    __slots__ = ("_rest",)

    def __init__(self, stream: "Iterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = iter(stream)  # taken once: a second iterator might start over, and send the beginning twice

    def __iter__(self) -> "Iterator[bytes]":
        attempt, kept = self._begin()
        yield from kept
        while True:
            self._check(attempt)
            self._is_read = True
            try:
                chunk = next(self._rest)
            except StopIteration:
                return
            except BaseException as error:
                self.fail(error)
                raise
            finally:
                self._is_read = False
            self.add(chunk)
            yield chunk


class AsyncReplay(Recording):
    """The same for an async stream; being cancelled while waiting for its next chunk loses the rest of it."""

    __slots__ = ("_rest",)

    def __init__(self, stream: "AsyncIterable[bytes]", limit: int = LIMIT) -> None:
        super().__init__(limit)
        self._rest = aiter(stream)

    def __aiter__(self) -> "AsyncIterator[bytes]":
        return _Attempt(self, *self._begin())

    async def _next(self, attempt: int) -> bytes:
        self._check(attempt)
        self._is_read = True
        try:
            chunk = await anext(self._rest)
        except StopAsyncIteration:
            raise
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self._is_read = False
        self.add(chunk)
        return chunk


class _Attempt:
    """One pass over an async stream; no generator, since trio complains of one that was not read to its end."""

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
