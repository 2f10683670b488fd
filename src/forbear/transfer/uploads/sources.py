"""Sources: what is uploaded, and files as such, read in pieces and hashed as they pass. They know no cloud."""

import os
import stat
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from typing import Any, BinaryIO, Protocol, Self, cast

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import SourceChanged, StrPath, TransferError, unreadable
from forbear.transfer.files import PIECE, read_at
from forbear.transfer.threads import in_steps, in_thread

_INLINE = 1024 * 1024
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a FIFO must not make us wait


class Source(Protocol):
    """What is uploaded; `size` is None until its end is known."""

    name: str
    size: int | None
    rewindable: bool

    async def ready(self, first: int, most: int) -> None:
        """Make as many of the bytes from `first` on ready to be read; where the source ends before, set `size`."""
        ...

    def pieces(self, first: int, end: int) -> Iterator[bytes]:
        """The bytes from `first` to `end`, which are ready."""
        ...

    async def crc32c(self) -> str:
        """The checksum of all of it."""
        ...

    def check(self) -> None:
        """Raise SourceChanged where it is not what it was."""
        ...


class File:
    """A regular file, as a context manager; the bytes are hashed when they pass for the first time."""

    def __init__(self, path: StrPath) -> None:
        self.name = os.fspath(path)
        try:
            self._descriptor = os.open(self.name, _OPEN)
        except (OSError, ValueError) as error:
            raise unreadable(self.name, error) from error
        self.stat = os.fstat(self._descriptor)
        if not stat.S_ISREG(self.stat.st_mode):
            os.close(self._descriptor)
            kind = "a folder" if stat.S_ISDIR(self.stat.st_mode) else "neither a file nor a folder"
            raise TransferError(f"cannot upload {self.name}: it is {kind}", _CURES[kind])
        self.size: int | None = self.stat.st_size
        self.rewindable = True
        self._crc = Crc32c()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @property
    def path(self) -> str:
        """Where it is, from the root."""
        return os.path.abspath(self.name)  # a link is another file than the one it leads to now

    @property
    def mtime(self) -> int:
        """When it was last modified, in whole seconds."""
        return int(self.stat.st_mtime)

    @property
    def stamp(self) -> list[int]:
        """What tells this version of the file from others."""
        return [self.stat.st_size, self.stat.st_mtime_ns, self.stat.st_ino]

    def read(self) -> bytes:
        """All of it, for a small one; one of the system's own, such as those in /proc, has more than it says."""
        size = self.stat.st_size
        data = self._read(size + 1, 0)
        while len(data) != size and (more := self._read(PIECE, len(data))):
            data += more
        self.check()
        if len(data) != size and size:
            raise self._changed()
        return data

    async def ready(self, first: int, most: int) -> None:
        """Hash what comes before `first`, if that has not passed by; the rest of the file is ready."""
        if first > self._crc.size:
            await in_steps(self.pieces(self._crc.size, first))

    def pieces(self, first: int, end: int) -> Iterator[bytes]:
        """The bytes from `first` to `end`; SourceChanged where the file is shorter than it was."""
        crc = self._crc
        while first < end:
            piece = self._read(min(PIECE, end - first), first)
            if not piece:
                raise self._changed()
            if first == crc.size:
                crc.update(piece)
            elif first < crc.size < first + len(piece):
                crc.update(piece[crc.size - first :])
            first += len(piece)
            yield piece

    async def crc32c(self) -> str:
        """The checksum of all of it."""
        rest = self.pieces(self._crc.size, self.stat.st_size)
        if self.stat.st_size - self._crc.size > _INLINE:
            await in_steps(rest)
        else:
            for _ in rest:
                pass
        return self._crc.text

    def check(self) -> None:
        """Raise SourceChanged where the file is not what it was."""
        now = os.fstat(self._descriptor)
        if (now.st_size, now.st_mtime_ns) != (self.stat.st_size, self.stat.st_mtime_ns):
            raise self._changed()

    def _read(self, count: int, first: int) -> bytes:
        try:
            return read_at(self._descriptor, count, first)
        except OSError as error:
            raise unreadable(self.name, error) from error

    def _changed(self) -> SourceChanged:
        return SourceChanged(f"{self.name} was changed during its upload")


_CURES = {
    "a folder": "upload it with recursive=True (-r)",
    "neither a file nor a folder": "read it yourself and pipe it: ... | forbear cp - gs://bucket/name",
}


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
