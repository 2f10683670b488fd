"""Sources of uploads: a file, or a stream of unknown length whose bytes come only once. Both compute a checksum."""

import os
import stat
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

from forbear_transfer.checksum import Crc32c
from forbear_transfer.errors import SourceChanged, StrPath, TransferError, unreadable
from forbear_transfer.files import PIECE, hash_file, identify, read_at
from forbear_transfer.threads import in_thread, run_steps

_INLINE = 1024 * 1024
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a FIFO must not make us wait
_HINTS = {
    "a folder": "upload it with recursive=True (-r)",
    "neither a file nor a folder": "read it yourself and pipe it: ... | forbear cp - gs://bucket/name",
}


class FileSource(AbstractContextManager["FileSource", None]):
    """An open regular file; a context manager that closes it. Its bytes are hashed when `pieces` reads them first.

    With `verifies`, `verify` reads the bytes a second time. Raise TransferError if the file cannot be opened or is no
    regular one.
    """

    def __init__(self, path: StrPath, *, verifies: bool = False) -> None:
        self.name = os.fspath(path)
        try:
            self._descriptor = os.open(self.name, _OPEN)
        except (OSError, ValueError) as error:
            raise unreadable(self.name, error) from error
        self.stat = os.fstat(self._descriptor)
        if not stat.S_ISREG(self.stat.st_mode):
            os.close(self._descriptor)
            kind = "a folder" if stat.S_ISDIR(self.stat.st_mode) else "neither a file nor a folder"
            raise TransferError(f"cannot upload {self.name}: it is {kind}", _HINTS[kind])
        self._identity = identify(self.stat)
        self.size: int | None = self.stat.st_size
        self.rewindable = True
        self._crc = Crc32c()
        self._verifies = verifies

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @property
    def path(self) -> str:
        """Return the absolute path of the file, in which symbolic links are not resolved: they may change."""
        return os.path.abspath(self.name)

    @property
    def identity(self) -> list[int]:
        return list(self._identity)

    def read(self) -> bytes:
        """Return all bytes of a small file, also of a system file (as in /proc) that states size 0 but has more.

        They are hashed the first time. Raise SourceChanged if the file has another number of bytes than its size says;
        `verify` finds other changes.
        """
        size = self.stat.st_size
        data = self._read(size + 1, 0)
        while len(data) != size and (more := self._read(PIECE, len(data))):
            data += more
        if len(data) != size and size:
            raise self._make_error()
        if not self._crc.size:
            self._crc.update(data)
        return data

    async def ready(self, first: int, count: int) -> None:
        """Hash the bytes before `first` that were not read yet."""
        if first > self._crc.size:
            await run_steps(self.pieces(self._crc.size, first))

    def pieces(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from `first` up to `end` (not included), in pieces of at most 256 KiB.

        Those that follow the bytes hashed so far are hashed. Raise SourceChanged if the file has become shorter, and
        TransferError if it cannot be read.
        """
        crc = self._crc
        while first < end:
            piece = self._read(min(PIECE, end - first), first)
            if not piece:
                raise self._make_error()
            if first == crc.size:
                crc.update(piece)
            elif first < crc.size < first + len(piece):
                crc.update(piece[crc.size - first :])
            first += len(piece)
            yield piece

    async def crc32c(self) -> str:
        """Return the CRC32C of all bytes of the file, in base64. Bytes that were not hashed yet are read."""
        crc, size = self._crc, self.stat.st_size
        if size - crc.size > _INLINE:
            await run_steps(self.pieces(crc.size, size))
        elif size > crc.size:
            for _ in self.pieces(crc.size, size):
                pass
        return crc.text

    async def measure(self) -> tuple[int, str]:
        return self.stat.st_size, await self.crc32c()

    def check(self) -> None:
        """Raise SourceChanged if the file was changed since it was opened, by its identity.

        The time of its last change of status does not count once its last name is gone: that has set it.
        """
        status = os.fstat(self._descriptor)
        count = -1 if status.st_nlink == 0 else None
        if identify(status)[:count] != self._identity[:count]:
            raise self._make_error()

    async def verify(self) -> None:
        """Check the file, and with `verifies` its bytes: a change through a mapping changes no time."""
        self.check()
        if self._verifies:
            again, crc32c = Crc32c(), await self.crc32c()
            await run_steps(hash_file(self._descriptor, 0, self._crc.size, again))
            if again.text != crc32c:
                raise self._make_error()

    def _read(self, count: int, first: int) -> bytes:
        try:
            return read_at(self._descriptor, count, first)
        except OSError as error:
            raise unreadable(self.name, error) from error

    def _make_error(self) -> SourceChanged:
        return SourceChanged(f"{self.name} was changed while it was read")


class StreamSource:
    """A stream of bytes, read once with `read`; the bytes from the last confirmed one on are kept in memory.

    `read` is awaited and returns some bytes, none at the end. `seek` goes back to an offset of the stream, or to one
    before it, and returns the offset; it is None if the stream cannot do that. `origin` is the file that it is made of.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Any],
        seek: Callable[[int], int] | None = None,
        origin: FileSource | None = None,
    ) -> None:
        self._origin = origin
        self.name = name
        self.size: int | None = None
        self.rewindable = seek is not None
        self.read = read
        self._seek = seek
        self._buffer = bytearray()
        self._start = 0  # the offset in the stream at which the buffer begins
        self._crc = Crc32c()

    async def ready(self, first: int, count: int) -> None:
        """Drop the bytes before `first`, and read until the buffer has over `count` bytes or the stream ends.

        One byte more than `count` shows whether these are the last. At the end, `size` is set. Raise TransferError if
        `first` was dropped before and the stream cannot go back to it, and SourceChanged if the stream ends before it.
        """
        if first < self._start:
            await self._rewind(first)
        while self._start + len(self._buffer) < first and self.size is None:
            await self._read_on()
            self._drop(first)
        self._drop(first)
        if self._start < first:
            raise SourceChanged(f"{self.name} ends before byte {first}, which was uploaded already")
        while len(self._buffer) <= count and self.size is None:
            await self._read_on()

    async def measure(self) -> tuple[int, str]:
        """Return the size and CRC32C of the stream, which is read to its end if it can be read again.

        If it cannot, and its end was not read yet, return 0 and the CRC32C of what was read so far.
        """
        while self.size is None and self.rewindable:
            await self._read_on()
            self._drop(self._start + len(self._buffer))
        return self.size or 0, self._crc.text

    def pieces(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from `first` up to `end` (not included) in pieces; they must be in the buffer."""
        for offset in range(first - self._start, end - self._start, PIECE):
            yield bytes(self._buffer[offset : min(offset + PIECE, end - self._start)])

    async def crc32c(self) -> str:
        return self._crc.text

    def check(self) -> None:
        """Do nothing: the bytes that were read cannot change."""

    async def verify(self) -> None:
        if self._origin is not None:
            await self._origin.verify()

    async def _read_on(self) -> None:
        piece = await self.read()
        if not piece:
            self.size = self._start + len(self._buffer)
        self._hash(piece)
        self._buffer += piece

    def _drop(self, first: int) -> None:
        count = min(max(first - self._start, 0), len(self._buffer))
        del self._buffer[:count]
        self._start += count

    def _hash(self, piece: bytes) -> None:
        hashed = self._crc.size - self._start - len(self._buffer)  # of this piece, before a rewind
        if hashed < len(piece):
            self._crc.update(piece[hashed:])

    async def _rewind(self, first: int) -> None:
        if self._seek is None:
            raise TransferError(
                f"the server has lost bytes of {self.name} that it had acknowledged, and a stream cannot be read again",
                "upload it again, from a file if you can",
            )
        self._start = await in_thread(self._seek, first)
        self._buffer.clear()
        self.size = None


Source = FileSource | StreamSource
"""The bytes to upload. `size` is None until the end of a stream was read.

`rewindable` says whether bytes can be read again after the server has confirmed them.
"""


def is_pipe(path: StrPath) -> bool:
    """Return whether a path leads to a named pipe, whose bytes come only once."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def stream_source(source: AsyncIterable[bytes] | BinaryIO) -> StreamSource:
    """Return a source of an async iterable, or of a binary file, from its position on; TypeError for another."""
    if isinstance(source, AsyncIterable):
        return _wrap_iterable(source)
    if not callable(getattr(source, "read", None)):
        raise TypeError(f"`source` must be a path, an async iterable of bytes or a binary file, got {source!r}")
    name = getattr(source, "name", None)
    is_seekable = getattr(source, "seekable", None)
    origin = source.tell() if is_seekable is not None and is_seekable() else None

    async def read() -> bytes:
        piece = cast("bytes | None", await in_thread(source.read, PIECE * 4))
        if piece is None:
            raise TransferError("the source has nothing to read yet", "open it in blocking mode")
        return _check_bytes(piece)

    def seek(offset: int) -> int:
        source.seek((origin or 0) + offset)
        return offset

    return StreamSource(name if isinstance(name, str) else "the stream", read, None if origin is None else seek)


def _wrap_iterable(source: AsyncIterable[bytes]) -> StreamSource:
    pieces: AsyncIterator[bytes] = aiter(source)

    async def read() -> bytes:
        async for piece in pieces:
            if data := _check_bytes(piece):
                return data
        return b""

    return StreamSource("the stream", read)


def _check_bytes(piece: object) -> bytes:
    if isinstance(piece, bytes | bytearray):
        return bytes(piece)
    raise TypeError(f"`source` must yield bytes, got {type(piece).__name__}; open files in binary mode")
