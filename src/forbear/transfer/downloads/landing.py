"""Landing: a part file whose bytes are right becomes the file that was asked for. It fetches nothing."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from forbear.transfer.downloads.decoding import Gunzip
from forbear.transfer.downloads.part import Part
from forbear.transfer.downloads.place import Place
from forbear.transfer.downloads.promise import GZIP
from forbear.transfer.errors import StrPath, unwritable
from forbear.transfer.files import PIECE
from forbear.transfer.objects import Object
from forbear.transfer.threads import in_steps


@dataclass(frozen=True, slots=True)
class Terms:
    """How the caller wants the file: see `download`."""

    no_clobber: bool = False
    slices: int | None = None
    decode: bool = True
    root: StrPath | None = None


async def land(part: Part, place: Place, version: Object, terms: Terms, *, decoded: bool) -> None:
    """Put the file in its place, at once; its gzip undone unless that is not wanted, or done by the server."""
    if terms.decode and version.content_encoding == GZIP and not decoded:
        with Part.fresh(place) as plain:
            await in_steps(gunzip(part.descriptor, plain.descriptor, place.path))
            plain.publish(version.mtime, no_clobber=terms.no_clobber)
        part.keep = False
    else:
        part.publish(version.mtime, no_clobber=terms.no_clobber)


def gunzip(source: int, target: int, name: str) -> Iterator[None]:
    """Decode one open file into another one, from the beginning, a piece at each step."""
    decoder = Gunzip(name)
    os.lseek(source, 0, os.SEEK_SET)
    try:
        while data := os.read(source, PIECE):
            for piece in decoder.feed(data):
                _write(target, piece)
            yield
        _write(target, decoder.finish())
    except OSError as error:
        raise unwritable(name, error) from error


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
