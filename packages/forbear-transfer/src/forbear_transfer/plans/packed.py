"""Comparisons of local files with objects that are stored as gzip, without unpacking them."""

import io
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, cast

from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear_transfer.downloads.sinks import RangeSink
from forbear_transfer.encryption import EncryptionKey
from forbear_transfer.errors import TransferError
from forbear_transfer.files import PIECE
from forbear_transfer.objects import Object
from forbear_transfer.plans.trees import Entry
from forbear_transfer.storage.client import Storage
from forbear_transfer.threads import run_steps

_TRAILER, _SMALLEST = 8, 18
_MODULUS = 2**32


async def is_unpacked(
    storage: Storage, file: Entry, there: Object, keys: Sequence[EncryptionKey], *, by_size: bool
) -> bool:
    """Return whether a file has what an object that is stored as gzip unpacks to; with `by_size` if the size is right.

    The last bytes of the stored ones, which are requested, state the size and CRC-32 of the contents. Those of several
    members state it of the last one: if the file may be longer for that reason, the object is read and unpacked. False
    if that cannot be known.
    """
    try:
        trailer = await _read_trailer(storage, there, keys)
        if trailer is None:
            return False
        crc32, size = trailer
        if size == file.size % _MODULUS:
            return by_size or await _hash_file(file) == crc32
        if size > file.size:
            return False
        contents = _Hash()
        await download(storage, there, cast("BinaryIO", contents), decryption_keys=keys)
        return contents.size == file.size and (by_size or contents.crc32 == await _hash_file(file))
    except (TransferError, Gone, Unsliceable, OSError):  # the copy that follows reports it
        return False


async def _read_trailer(storage: Storage, there: Object, keys: Sequence[EncryptionKey]) -> tuple[int, int] | None:
    """Return the CRC-32 and the size, modulo 2**32, in the last bytes of a gzip object; None if it is too short."""
    if there.size < _SMALLEST:
        return None
    stream = io.BytesIO()
    await Fetch(storage, there, decode=False, keys=keys).fill(
        RangeSink(stream, str(there.url), there.size - _TRAILER, there.size)
    )
    data = stream.getvalue()
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")


async def _hash_file(file: Entry) -> int:
    contents = _Hash()
    await run_steps(contents.read_file(file.path))
    return contents.crc32


class _Hash(io.RawIOBase):
    def __init__(self) -> None:
        self.crc32 = 0
        self.size = 0

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.crc32 = zlib.crc32(data, self.crc32)
        self.size += len(data)
        return len(data)

    def read_file(self, path: str) -> Iterator[None]:
        with open(path, "rb", buffering=0) as file:
            while data := file.read(PIECE):
                self.write(data)
                yield
