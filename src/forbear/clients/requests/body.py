"""The bodies that requests accepts: bytes, text, files, anything that yields pieces. It sends none of them."""

from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import Any, cast

from forbear.exchange.body import Fixed, Once, Seekable, streamed

_PIECE = 64 * 1024


class _Pieces:
    """What a file or an iterable yields, as bytes; a file can be read again once it was rewound."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        read = getattr(self._source, "read", None)
        pieces = self._source if read is None else takewhile(len, iter(partial(read, _PIECE), None))
        for piece in pieces:
            yield piece.encode() if isinstance(piece, str) else piece


def bodied(body: Any, limit: int) -> Fixed | Once | Seekable:
    """The body of a request; `limit` bytes of one that comes only once are kept."""
    if body is None or isinstance(body, str):
        return Fixed((body or "").encode())
    if isinstance(body, bytes | bytearray | memoryview):
        return Fixed(bytes(cast("bytes", body)))
    return streamed(_Pieces(body), body, limit)
