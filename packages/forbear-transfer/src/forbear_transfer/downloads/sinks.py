"""Sinks write and hash the bytes of an object: into a file, into part of a file, or into a stream; and decode gzip.

The module `fetch` requests the bytes and writes them to the sink.
"""

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO, cast

from forbear_transfer.checksum import Crc32c
from forbear_transfer.errors import SourceChanged, TransferError, unwritable
from forbear_transfer.files import PIECE, write_at
from forbear_transfer.threads import in_thread

GZIP_MAGIC = b"\x1f\x8b"
"""The first two bytes of every gzip file."""

_TOOK_NONE = "its `write` returned {}, and must return how many bytes it took; open files in blocking mode"
_FORMAT = 31  # zlib's window bits for gzip


class GzipDecoder:
    """Decode gzip data of one or more members, piece by piece, in constant memory.

    Data that does not begin like gzip passes through unchanged: its metadata was wrong. Error messages say `name`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._head: bytes | None = b""  # the first bytes, until there are enough to recognize gzip
        self._plain = False
        self._member = zlib.decompressobj(_FORMAT)
        self._in_member = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what some more bytes decode to, in pieces of at most 256 KiB; raise TransferError for invalid gzip."""
        if self._head is not None:
            data = self._head + data
            if len(data) < len(GZIP_MAGIC):
                self._head = data
                return
            self._head, self._plain = None, not data.startswith(GZIP_MAGIC)
        if self._plain:
            yield data
            return
        while data:
            if not self._in_member:
                data = data.lstrip(b"\0")  # padding between members, as tapes have it
                self._in_member = bool(data)
            try:
                piece = self._member.decompress(data, PIECE)
            except zlib.error as error:
                raise self._make_error(str(error)) from error
            if piece:
                yield piece
            data = self._member.unconsumed_tail
            if self._member.eof:
                data = self._member.unused_data
                self._member, self._in_member = zlib.decompressobj(_FORMAT), False

    def finish(self) -> bytes:
        """Return the byte that was kept as the data had only one; raise TransferError for incomplete gzip."""
        if self._in_member:
            raise self._make_error("its end is missing")
        return self._head or b""

    def _make_error(self, reason: str) -> TransferError:
        return TransferError(
            f"{self._name} is stored as gzip and cannot be decoded: {reason}",
            "download it as it is stored, with `decode=False`",
        )


def decode_file(source: int, target: int, name: str, *, sync: bool = False) -> Iterator[None]:
    """Decode all of a gzip file into another file; both are open descriptors. A file that is not gzip is copied.

    Each step of the iterator decodes 256 KiB of the source. With `sync`, the target is synced to disk in the end. Raise
    TransferError, whose message says `name`, if the gzip is invalid or the target cannot be written.
    """
    decoder, write = GzipDecoder(name), partial(os.write, target)
    os.lseek(source, 0, os.SEEK_SET)
    try:
        while data := os.read(source, PIECE):
            for piece in decoder.feed(data):
                _write_all(write, piece)
            yield
        _write_all(write, decoder.finish())
        if sync:
            os.fsync(target)
    except OSError as error:
        raise unwritable(name, error) from error


class FileSink:
    """Write the bytes of an object from `start` up to `end` (not included) at their offset in an open file.

    `checksum` is that of the bytes which the file has already, from `start` on; writing continues after them. With
    `truncate`, the file belongs to this sink alone, and a restart empties it. `on_write` is called with the number of
    bytes after each write. `name` is for error messages.
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
        on_write: Callable[[int], None] | None = None,
    ) -> None:
        self.start = start
        self.end = end
        self.checksum = checksum or Crc32c()
        self.position = start + self.checksum.size
        self.decoded = False
        self._descriptor = descriptor
        self._name = name
        self._truncate = truncate
        self._on_write = on_write

    def write(self, data: bytes) -> None:
        """Write and hash `data` in this thread: the page cache takes it sooner than another thread would."""
        count = len(data)
        try:
            written = write_at(self._descriptor, data, self.position)
            while written < count:
                written += write_at(self._descriptor, data[written:], self.position + written)
        except OSError as error:
            raise unwritable(self._name, error) from error
        self.checksum.update(data)
        self.position += count
        if self._on_write is not None:
            self._on_write(count)

    def restart(self, *, decoded: bool = False) -> None:
        """Go back to `start`, because all bytes arrive again; `decoded` says that the server decodes them now."""
        if self._truncate:
            os.ftruncate(self._descriptor, 0)
        self.checksum = Crc32c()
        self.position = self.start
        self.decoded = decoded


class StreamSink:
    """Write all `end` bytes of an object to a stream, which cannot be rewound: no byte is written twice.

    After a restart, the bytes that were written before (`written`) are skipped. The checksum is that of the bytes which
    were written: those that are skipped may be right the second time. `decoder` decodes gzip before writing, unless the
    server has done so. `name` is for error messages.
    """

    start = 0

    def __init__(self, stream: BinaryIO, name: str, end: int, decoder: GzipDecoder | None = None) -> None:
        self.end = end
        self.checksum = Crc32c()
        self.position = 0
        self.decoded = False
        self.written = 0
        self._stream = stream
        self._name = name
        self._decoder = decoder

    async def write(self, data: bytes) -> None:
        """Write what is new of `data` in another thread: the reader of a pipe may keep it waiting."""
        new = data[max(self.written - self.position, 0) :]
        self.position += len(data)
        if new:
            self.checksum.update(new)
            self.written += len(new)
            await in_thread(self._write, new)

    def restart(self, *, decoded: bool = False) -> None:
        """Go back to byte 0; SourceChanged if bytes were written, and `decoded` is not as before."""
        if self.written and decoded != self.decoded:
            raise SourceChanged(f"{self._name} is partly written, and now the server encodes the object differently")
        self.position = 0
        self.decoded = decoded

    async def finish(self) -> None:
        """Write what the decoder has left, if it was used, and flush the stream."""
        await in_thread(self._finish)

    def _write(self, data: bytes) -> None:
        decoder = None if self.decoded else self._decoder
        try:
            for piece in (data,) if decoder is None else decoder.feed(data):
                _write_all(self._stream.write, piece)
        except OSError as error:
            raise unwritable(self._name, error) from error

    def _finish(self) -> None:
        try:
            if self._decoder is not None and not self.decoded:
                _write_all(self._stream.write, self._decoder.finish())
            self._stream.flush()
        except OSError as error:
            raise unwritable(self._name, error) from error


Sink = FileSink | StreamSink
"""Takes the bytes of an object from `start` up to `end` (not included), in order.

`position` is the offset of the next byte that it takes, and `checksum` that of the bytes which it has. `decoded` is
true if the server has decoded the stored gzip, so that these bytes are not those that are stored.
"""


class RangeSink(StreamSink):
    """Write the bytes of an object from `start` up to `end` (not included) to a stream, each of them once."""

    def __init__(self, stream: BinaryIO, name: str, start: int, end: int) -> None:
        super().__init__(stream, name, end)
        self.start = start
        self.position = start
        self.written = start

    def restart(self, *, decoded: bool = False) -> None:
        """Go back to `start`; SourceChanged if bytes were written, and the server decodes them now."""
        if decoded and self.written > self.start:
            super().restart(decoded=decoded)
        self.position = self.start
        self.decoded = decoded


def _write_all(write: Callable[[memoryview], int], data: bytes) -> None:
    """Call `write`, which may take only some of the bytes, until it has taken all of them.

    BlockingIOError if it returns None or no positive number. In the protocol of files, None says that nothing was
    written: to write on would repeat the bytes for ever, and to go on without them could lose them.
    """
    left = memoryview(data)
    while left:
        count = cast("int | None", write(left))
        if not count or count < 0:
            raise BlockingIOError(errno.EAGAIN, _TOOK_NONE.format(count))
        left = left[count:]


def is_open_pipe(path: str) -> bool:
    """Return whether a symbolic link leads to a pipe without a name: one that a process has open, as its stdout."""
    with suppress(OSError):
        return stat.S_ISFIFO(os.stat(path).st_mode) and not os.path.lexists(os.path.realpath(path))
    return False
