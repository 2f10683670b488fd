"""Streams: sources of unknown length that come once, kept until the server has them. They know no cloud."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from typing import Any, BinaryIO, cast

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import TransferError
from forbear.transfer.files import PIECE
from forbear.transfer.threads import in_thread


class Stream:
    """Bytes of unknown number that come once; those that the server has not confirmed yet are kept.

    `seek` goes back to a byte of the source, where that is possible.
    """

    def __init__(self, name: str, read: Callable[[], Any], seek: Callable[[int], Any] | None = None) -> None:
        self.name = name
        self.size: int | None = None
        self.rewindable = seek is not None
        self._read = read
        self._seek = seek
        self._kept = bytearray()
        self._first = 0  # where in the source that begins
        self._crc = Crc32c()

    async def ready(self, first: int, most: int) -> None:
        """Keep what comes from `first` on, and read on until that is more than `most`, or all there is."""
        if first < self._first or first > self._first + len(self._kept):
            await self._rewind(first)
        del self._kept[: first - self._first]
        self._first = first
        while len(self._kept) <= most and self.size is None:  # one more, to see whether these are the last
            piece = await self._read()
            if not piece:
                self.size = self._first + len(self._kept)
            self._hash(piece)
            self._kept += piece

    def pieces(self, first: int, end: int) -> Iterator[bytes]:
        """The bytes from `first` to `end`."""
        for place in range(first - self._first, end - self._first, PIECE):
            yield bytes(self._kept[place : min(place + PIECE, end - self._first)])

    async def crc32c(self) -> str:
        """The checksum of all of it."""
        return self._crc.text

    def check(self) -> None:
        """Nobody can change what was read."""

    def _hash(self, piece: bytes) -> None:
        known = self._crc.size - self._first - len(self._kept)
        if known < len(piece):
            self._crc.update(piece[known:] if known else piece)

    async def _rewind(self, first: int) -> None:
        if self._seek is None:
            raise TransferError(
                f"the server has lost bytes of {self.name} that it had acknowledged, and a stream cannot be read again",
                "upload it again, from a file if you can",
            )
        await in_thread(self._seek, first)
        self._kept.clear()
        self._first = first
        self.size = None


def iterated(source: AsyncIterable[bytes]) -> Stream:
    """The stream of what an async iterable yields."""
    pieces: AsyncIterator[bytes] = aiter(source)

    async def read() -> bytes:
        async for piece in pieces:
            if found := _bytes(piece):
                return found
        return b""

    return Stream("the stream", read)


def opened(source: BinaryIO) -> Stream:
    """The stream of what can be read from a file object, from where it stands."""
    if not callable(getattr(source, "read", None)):
        raise TypeError(f"`source` must be a path, an async iterable of bytes or a binary file, got {source!r}")
    name = getattr(source, "name", None)
    is_seekable = getattr(source, "seekable", None)
    origin = source.tell() if is_seekable is not None and is_seekable() else None

    async def read() -> bytes:
        piece = cast("bytes | None", await in_thread(source.read, PIECE * 4))
        if piece is None:
            raise TransferError("the source has nothing to read yet", "open it in blocking mode")
        return _bytes(piece)

    def seek(place: int) -> None:
        source.seek((origin or 0) + place)

    return Stream(name if isinstance(name, str) else "the stream", read, None if origin is None else seek)


def _bytes(piece: object) -> bytes:
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, bytearray):
        return bytes(piece)
    raise TypeError(f"`source` must yield bytes, got {type(piece).__name__}; open files in binary mode")
