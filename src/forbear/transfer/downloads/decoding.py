"""Undoing the gzip that an object is stored with, piece by piece: memory stays flat however far it unfolds."""

import zlib
from collections.abc import Iterator

from forbear.transfer.errors import TransferError
from forbear.transfer.files import PIECE

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
