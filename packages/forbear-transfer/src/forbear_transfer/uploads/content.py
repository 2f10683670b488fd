"""The content of uploads: its type by the name, and its compression on the way."""

import mimetypes
import zlib
from collections.abc import Awaitable, Callable
from functools import lru_cache

from forbear_transfer.files import PIECE
from forbear_transfer.threads import to_the_end
from forbear_transfer.uploads.sources import FileSource, StreamSource

_LEVEL, _WITH_HEADER = 6, 31
COMPRESSION = f"zlib {zlib.ZLIB_RUNTIME_VERSION}, level {_LEVEL}"
"""The identity of the compression: with another one, the same file may become other bytes."""
_BINARY = "application/octet-stream"
_COMPRESSED = {
    "br": "application/x-brotli",
    "bzip2": "application/x-bzip2",
    "compress": "application/x-compress",
    "gzip": "application/gzip",
    "xz": "application/x-xz",
}


def gzip_source(source: FileSource | StreamSource) -> StreamSource:
    """Return a stream of what a file or a stream becomes by gzip; equal bytes become equal bytes.

    That of a file can be read again: the file is compressed again from its beginning. Reading it raises SourceChanged
    if the file has changed meanwhile.
    """
    compressor, plain = _make_compressor(), source.read if isinstance(source, StreamSource) else _make_reader(source)
    is_over = False

    def restart(_: int) -> int:
        nonlocal compressor, plain, is_over
        assert isinstance(source, FileSource)  # noqa: S101
        compressor, plain, is_over = _make_compressor(), _make_reader(source), False
        return 0

    async def read() -> bytes:
        nonlocal is_over
        while not is_over:
            piece = await plain()
            is_over = not piece
            if data := compressor.flush() if is_over else await to_the_end(compressor.compress, piece):
                return data
        return b""

    file = source if isinstance(source, FileSource) else None
    return StreamSource(source.name, read, None if file is None else restart, file)


def _make_compressor() -> "zlib._Compress":
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, _WITH_HEADER)  # it states no time


def _make_reader(file: FileSource) -> Callable[[], Awaitable[bytes]]:
    size = file.stat.st_size
    pieces = iter((file.read(),)) if size <= PIECE else file.pieces(0, size)

    async def read() -> bytes:
        piece: bytes = await to_the_end(next, pieces, b"")
        if not piece:
            file.check()
        return piece

    return read


def guess_content_type(name: str) -> str:
    """Guess the content type from the extension of `name`; for a compressed file, return that of the compression.

    Return application/octet-stream for an unknown extension.
    """
    return _guess_by_extensions(name.rpartition("/")[2].lstrip(".").partition(".")[2])


@lru_cache(256)
def _guess_by_extensions(extensions: str) -> str:
    kind, encoding = mimetypes.guess_type(f"/x.{extensions}")
    return kind or _BINARY if encoding is None else _COMPRESSED.get(encoding, _BINARY)
