"""Local files: what all parts do with open ones, and the errors for those that cannot be read or written."""

import errno
import os
import sys
from collections.abc import Iterator

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import TransferError

StrPath = str | os.PathLike[str]
"""A path as users give it."""

PIECE = 256 * 1024
"""How many bytes are read, hashed, sent and written at a time: larger ones are no faster."""

_READING = {
    errno.EACCES: "ask for the permission to read it",
    errno.ENOENT: "check the path",
    errno.EPERM: "ask for the permission to read it",
}
_WRITING = {
    errno.EACCES: "ask for the permission to write there, or choose another place",
    errno.ENOENT: "make the folder first",
    errno.ENOSPC: "make room, then start again",
    errno.EPERM: "ask for the permission to write there, or choose another place",
}


def unreadable(path: str, error: Exception) -> TransferError:
    """The error for a file that cannot be opened, or read."""
    return TransferError(f"cannot read {path!r}: {_why(error)}", _READING.get(_number(error)))


def unwritable(path: StrPath, error: Exception, *, verb: str = "write") -> TransferError:
    """The error for what cannot be written; a name that no file can have is shown so that its fault can be seen."""
    shown = path if isinstance(error, OSError) else repr(path)
    return TransferError(f"cannot {verb} {shown}: {_why(error)}", _WRITING.get(_number(error)))


def hash_file(descriptor: int, start: int, count: int, checksum: Crc32c) -> Iterator[None]:
    """Have `checksum` see `count` bytes of an open file (fewer where it ends) from `start` on, a piece at each step."""
    while count and (data := read_at(descriptor, min(PIECE, count), start)):
        checksum.update(data)
        start += len(data)
        count -= len(data)
        yield


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _number(error: Exception) -> int:
    return getattr(error, "errno", None) or 0


if sys.platform == "win32":

    def read_at(descriptor: int, count: int, position: int, /) -> bytes:
        """Read at most so many bytes from a place in an open file."""
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)

    def write_at(descriptor: int, data: bytes, position: int, /) -> int:
        """Write bytes to a place in an open file; returns how many it took."""
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, data)

else:
    read_at = os.pread
    write_at = os.pwrite
