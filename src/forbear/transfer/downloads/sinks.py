"""Undoing the gzip that an object is stored with, piece by piece: memory stays flat however far it unfolds."""

import os
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import SourceChanged, TransferError, unwritable
from forbear.transfer.files import PIECE, write_at
from forbear.transfer.threads import in_thread

_MAGIC = b"\x1f\x8b"
_FORMAT = 31  # zlib's window bits for gzip


class Gunzip:
    """Takes the bytes of a gzip file, of one member or more, and gives what is in it.

    Bytes that are no gzip from the beginning are given as they are: it was only called so.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._head: bytes | None = b""  # until it is known what it is
        self._plain = False
        self._member = zlib.decompressobj(_FORMAT)
        self._under_way = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What some more bytes unfold to, in pieces of at most 256 KiB."""
        if self._head is not None:
            data = self._head + data
            if len(data) < len(_MAGIC):
                self._head = data
                return
            self._head, self._plain = None, not data.startswith(_MAGIC)
        if self._plain:
            yield data
            return
        while data:
            if not self._under_way:
                data = data.lstrip(b"\0")  # padding, as tapes have it
                self._under_way = bool(data)
            try:
                piece = self._member.decompress(data, PIECE)
            except zlib.error as error:
                raise self._broken(str(error)) from error
            if piece:
                yield piece
            data = self._member.unconsumed_tail
            if self._member.eof:
                data = self._member.unused_data
                self._member, self._under_way = zlib.decompressobj(_FORMAT), False

    def finish(self) -> bytes:
        """What is left at the end; TransferError where the end is missing."""
        if self._under_way:
            raise self._broken("its end is missing")
        return self._head or b""

    def _broken(self, why: str) -> TransferError:
        hint = "take it as it is stored, with `decode=False`"
        return TransferError(f"{self._name} is stored as gzip and cannot be decoded: {why}", hint)


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
    """The bytes from `start` to `end`, to their place in an open file; `checksum` is that of those that are there.

    With `truncate` it has the file for itself, which is never longer than its bytes. `wrote` hears how many came.
    """

    def __init__(
        self,
        descriptor: int,
        name: str,
        end: int,
        *,
        start: int = 0,
        checksum: Crc32c | None = None,
        truncate: bool = False,
        wrote: Callable[[int], None] | None = None,
    ) -> None:
        self.start = start
        self.end = end
        self.checksum = checksum or Crc32c()
        self.position = start + self.checksum.size
        self.decoded = False
        self._descriptor = descriptor
        self._name = name
        self._truncate = truncate
        self._wrote = wrote

    async def write(self, data: bytes) -> None:
        """Write inline: into the page cache, which takes less time than to hand it to a thread."""
        count = len(data)
        try:
            written = write_at(self._descriptor, data, self.position)
            while written < count:
                written += write_at(self._descriptor, data[written:], self.position + written)
        except OSError as error:
            raise unwritable(self._name, error) from error
        self.checksum.update(data)
        self.position += count
        if self._wrote is not None:
            self._wrote(count)

    def restart(self, *, decoded: bool = False) -> None:
        """Write over what is there."""
        if self._truncate:
            os.ftruncate(self._descriptor, 0)
        self.checksum = Crc32c()
        self.position = self.start
        self.decoded = decoded


class StreamSink:
    """All of an object, into a stream that cannot be rewound: what is out is out, and is not written a second time.

    So the checksum is of what is out, and not of the same bytes when they come again, which may be right by then.
    `decoder` undoes the gzip of what is written, unless the server has done so.
    """

    start = 0

    def __init__(self, stream: BinaryIO, name: str, end: int, decoder: Gunzip | None = None) -> None:
        self.end = end
        self.checksum = Crc32c()
        self.position = 0
        self.decoded = False
        self.out = 0
        self._stream = stream
        self._name = name
        self._decoder = decoder

    async def write(self, data: bytes) -> None:
        """Write in a thread, since whoever reads the stream may take his time."""
        new = data[max(self.out - self.position, 0) :]
        self.position += len(data)
        if new:
            self.checksum.update(new)
            self.out += len(new)
            await in_thread(self._put, new)

    def restart(self, *, decoded: bool = False) -> None:
        """Pass over the bytes that are out when they come again."""
        if self.out and decoded != self.decoded:
            raise SourceChanged(f"{self._name} has bytes already, and now the server encodes the object otherwise")
        self.position = 0
        self.decoded = decoded

    async def finish(self) -> None:
        """Have all of it written."""
        await in_thread(self._finish)

    def _put(self, data: bytes) -> None:
        if self._decoder is None or self.decoded:
            self._write(data)
            return
        for piece in self._decoder.feed(data):
            self._write(piece)

    def _finish(self) -> None:
        if self._decoder is not None and not self.decoded:
            self._write(self._decoder.finish())
        try:
            self._stream.flush()
        except OSError as error:
            raise unwritable(self._name, error) from error

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._stream.write(left) :]
        except OSError as error:
            raise unwritable(self._name, error) from error
