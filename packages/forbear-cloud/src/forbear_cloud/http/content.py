"""Byte strings in pieces, as they arrive from the network: cut and join them without copying, and hash them."""

import base64
import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TypeAlias, cast

try:
    import google_crc32c
except ModuleNotFoundError as error:
    text = 'forbear_cloud needs google-crc32c; install it with: pip install "forbear[cloud]"'
    raise ModuleNotFoundError(text, name="google_crc32c") from error

Piece: TypeAlias = "bytes | memoryview"

_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]


class Content:
    """An immutable byte string in pieces; `bytes(content)` joins them, and `len(content)` is the number of bytes.

    `crc32c` and `md5` are its hashes in base64 if they are known already; otherwise they are computed on first use.
    """

    __slots__ = ("_crc32c", "_md5", "_size", "pieces")

    def __init__(self, pieces: Iterable[Piece] = (), crc32c: str | None = None, md5: str | None = None) -> None:
        self.pieces = tuple(pieces)
        self._size = sum(map(len, self.pieces))
        self._crc32c = crc32c
        self._md5 = md5

    def __len__(self) -> int:
        return self._size

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.pieces)

    def __bytes__(self) -> bytes:
        if len(self.pieces) == 1:
            return bytes(self.pieces[0])
        return b"".join(self.pieces)

    def cut(self, start: int = 0, end: int | None = None) -> "Content":
        """Return the bytes from `start` up to `end`, which is not included (None: to the end), without copying them."""
        end = len(self) if end is None else min(end, len(self))
        if start <= 0 and end == len(self):
            return self
        if len(self.pieces) == 1:  # as of all that is small
            return Content((memoryview(self.pieces[0])[max(start, 0) : end],) if start < end else ())
        ends = list(accumulate(map(len, self.pieces)))
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        pieces: list[Piece] = []
        for index in range(first, last + 1 if start < end else first):
            piece, before = self.pieces[index], ends[index - 1] if index else 0
            skipped, wanted = max(start - before, 0), end - before
            pieces.append(memoryview(piece)[skipped:wanted] if skipped or wanted < len(piece) else piece)
        return Content(pieces)

    def drop_bytes(self) -> "Content":
        """Return content with the same length and hashes but no bytes, which takes next to no memory."""
        rest = Content((), self.crc32c, self.md5)
        rest._size = self._size
        return rest

    @property
    def crc32c(self) -> str:
        """Return the CRC32C as the API writes it: base64 of the big-endian bytes."""
        if self._crc32c is None:
            self._crc32c = _crc32c_text(crc32c_after(0, self.pieces))
        return self._crc32c

    @property
    def md5(self) -> str:
        """Return the MD5 as the API writes it, in base64."""
        if self._md5 is None:
            digest = hashlib.md5(usedforsecurity=False)
            for piece in self.pieces:
                digest.update(piece)
            self._md5 = base64.b64encode(digest.digest()).decode()
        return self._md5


NOTHING = Content()


def content_of(data: bytes | Content) -> Content:
    """Return `data` as Content, unchanged if it is one."""
    if isinstance(data, Content):
        return data
    return Content((data,)) if data else NOTHING


def join_contents(contents: Iterable[Content]) -> Content:
    """Return the contents one after the other as one content, without copying."""
    return Content(piece for content in contents for piece in content.pieces)


class Growing:
    """Content that is still arriving; `len` is the bytes so far.

    It is hashed on arrival, so that the response to the last piece is quick.
    """

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._size = 0
        self._crc32c = 0
        self._md5 = hashlib.md5(usedforsecurity=False)

    def __len__(self) -> int:
        return self._size

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self._pieces)

    def add(self, content: Content) -> None:
        """Append the bytes of `content`, and hash them."""
        self._pieces += content.pieces
        self._size += len(content)
        self._crc32c = crc32c_after(self._crc32c, content.pieces)
        for piece in content.pieces:
            self._md5.update(piece)

    def keep(self, size: int) -> None:
        """Drop all but the first `size` bytes (none if there are no more), and compute the hashes anew."""
        kept = Content(self._pieces).cut(0, size)
        Growing.__init__(self)
        self.add(kept)

    def content(self) -> Content:
        """Return everything that has arrived so far as Content, with its hashes."""
        return Content(self._pieces, _crc32c_text(self._crc32c), base64.b64encode(self._md5.digest()).decode())


def crc32c_after(crc32c: int, pieces: Iterable[Piece]) -> int:
    """Return the CRC32C of some bytes followed by `pieces`; `crc32c` is that of the bytes alone (0 for none)."""
    for piece in pieces:
        # The library accepts no memoryview.
        crc32c = _extend(crc32c, piece if isinstance(piece, bytes) else bytes(piece))
    return crc32c


def _crc32c_text(crc32c: int) -> str:
    return base64.b64encode(crc32c.to_bytes(4, "big")).decode()
