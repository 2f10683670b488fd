"""Where the bytes of an object go: a file from its beginning, a slice of a file, a stream. They ask for no bytes."""

import asyncio
import errno
import os
import sys
from typing import BinaryIO, Protocol

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import SourceChanged, TransferError


class Sink(Protocol):
    """Takes the bytes of an object from `start` to `end`, in their order; `position` is that of the next one.

    `decoded` says that what it takes are not the stored bytes: the server has undone their gzip.
    """

    start: int
    end: int
    position: int
    checksum: Crc32c
    decoded: bool

    async def write(self, data: bytes) -> None:
        """Take some more bytes."""
        ...

    def restart(self, *, decoded: bool = False) -> None:
        """Begin anew at `start`."""
        ...


class FileSink:
    """All of an object, into a file."""

    start = 0

    def __init__(self, descriptor: int, name: str, size: int, checksum: Crc32c | None = None) -> None:
        self.checksum = checksum or Crc32c()
        self.position = self.checksum.size
        self.end = size
        self.decoded = False
        self._descriptor = descriptor
        self._name = name

    async def write(self, data: bytes) -> None:
        """Write inline: into the page cache, which takes less time than to hand it to a thread."""
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            raise unwritable(self._name, error) from error
        self.checksum.update(data)
        self.position += len(data)

    def restart(self, *, decoded: bool = False) -> None:
        """Empty the file."""
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.checksum = Crc32c()
        self.position = 0
        self.decoded = decoded


class SliceSink:
    """The bytes from `start` to `end` of an object, to their place in a file."""

    def __init__(self, descriptor: int, name: str, start: int, end: int, checksum: Crc32c | None = None) -> None:
        self.checksum = checksum or Crc32c()
        self.start = start
        self.position = start + self.checksum.size
        self.end = end
        self.decoded = False
        self._descriptor = descriptor
        self._name = name

    async def write(self, data: bytes) -> None:
        """Write inline, as FileSink does."""
        try:
            written = _write_at(self._descriptor, data, self.position)
            while written < len(data):
                written += _write_at(self._descriptor, data[written:], self.position + written)
        except OSError as error:
            raise unwritable(self._name, error) from error
        self.checksum.update(data)
        self.position += len(data)

    def restart(self, *, decoded: bool = False) -> None:
        """Write over what is there."""
        self.checksum = Crc32c()
        self.position = self.start
        self.decoded = decoded


class StreamSink:
    """All of an object, into a stream that cannot be rewound: what is out is out, and is not written a second time."""

    start = 0

    def __init__(self, stream: BinaryIO, name: str, size: int) -> None:
        self.checksum = Crc32c()
        self.position = 0
        self.end = size
        self.decoded = False
        self.out = 0
        self._stream = stream
        self._name = name

    async def write(self, data: bytes) -> None:
        """Write in a thread, since whoever reads the stream may take his time."""
        new = data[max(self.out - self.position, 0) :]
        self.checksum.update(data)
        self.position += len(data)
        if new:
            self.out += len(new)
            await asyncio.to_thread(self._put, new)

    def restart(self, *, decoded: bool = False) -> None:
        """Pass over the bytes that are out when they come again."""
        if self.out and decoded != self.decoded:
            raise SourceChanged(f"{self._name} has the object's stored bytes in part, and the server decodes it now")
        self.checksum = Crc32c()
        self.position = 0
        self.decoded = decoded

    async def flush(self) -> None:
        """Have all of it written."""
        await asyncio.to_thread(self._flush)

    def _put(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                written = self._stream.write(left)
                left = left[written:]
        except OSError as error:
            raise unwritable(self._name, error) from error

    def _flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise unwritable(self._name, error) from error


def unwritable(name: str, error: OSError) -> TransferError:
    """The error for what cannot be written."""
    return TransferError(f"cannot write {name}: {error.strerror or error}", _HINTS.get(error.errno or 0))


if sys.platform == "win32":

    def _write_at(descriptor: int, data: bytes, position: int) -> int:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, data)

else:
    _write_at = os.pwrite

_HINTS = {
    errno.ENOSPC: "make room and start again: what is there already is kept",
    errno.EACCES: "ask for the permission to write there, or choose another place",
}
