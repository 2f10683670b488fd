"""What a reply to a request for an object's bytes promises, by its status and headers. It reads no body."""

from collections.abc import Mapping
from dataclasses import dataclass

from forbear.http import ranges
from forbear.transfer.errors import WrongResponse
from forbear.transfer.objects import MTIME, Object, Url

GZIP = "gzip"
_PLAIN = "identity"


_MAGIC = b"\x1f\x8b"
_MOST_UNFOLDED = 1032
"""How many bytes one byte of gzip may unfold to, at most: a match of 258 bytes in two bits."""


class Recoded(WrongResponse):
    """A reply whose bytes were compressed on the way, though they are not stored so."""


class Contradiction(WrongResponse):
    """A response that describes the object otherwise than its metadata does: the metadata decides."""


@dataclass(frozen=True, slots=True)
class Promise:
    """The bytes from `first` up to `end` (not included; None if nobody said).

    Where they are `decoded`, the server has undone the gzip that is stored: the checksum is not known, and the size
    only as far as the response states it.
    """

    first: int
    end: int | None
    decoded: bool = False

    def seen(self, head: bytes, version: Object) -> "Promise":
        """Return the promise, now that the body of a decoded one is known to begin with `head` (two bytes, or all).

        Bytes that still are gzip, and may be as many as are stored, are the stored ones: only their label is missing.
        """
        if head.startswith(_MAGIC) and self.end in (None, version.size):
            return Promise(0, version.size)
        return self

    def most(self, version: Object) -> int:
        """Return before which byte the body must end, whatever the response states."""
        most = version.size * _MOST_UNFOLDED if self.decoded else version.size
        return most if self.end is None else min(most, self.end)


def described(url: Url, headers: Mapping[str, str]) -> Object | None:
    """The version of an object that a reply with all its bytes is of; None where the reply does not say enough."""
    generation = ranges.number(headers.get("x-goog-generation", ""))
    crc32c = _crc32c(headers)
    encoding = _stored(headers) or headers.get("content-encoding", _PLAIN)
    size = ranges.number(headers.get("x-goog-stored-content-length", ""))
    if size is None and encoding != GZIP:
        size = ranges.number(headers.get("content-length", ""))
    if generation is None or size is None or crc32c is None:
        return None
    mtime = headers.get(f"x-goog-meta-{MTIME}")
    return Object(
        bucket=url.bucket,
        name=url.name,
        generation=generation,
        size=size,
        crc32c=crc32c,
        metageneration=ranges.number(headers.get("x-goog-metageneration", "")) or 1,
        content_type=headers.get("content-type"),
        content_encoding=None if encoding == _PLAIN else encoding,
        metadata={} if mtime is None else {MTIME: mtime},
    )


def promised(version: Object, first: int, end: int, status: int, headers: Mapping[str, str]) -> Promise:
    """Return what a response with status 200 or 206 brings of `version`, of which `first` to `end` were asked for.

    Raises Contradiction where it describes another object than `version`, and WrongResponse where its bytes are neither
    those that were asked for nor the whole object.
    """
    _agree(version, headers)
    encoding = headers.get("content-encoding", _PLAIN)
    stored = version.content_encoding or _PLAIN
    unlabelled = encoding == _PLAIN and stored == GZIP
    if encoding != stored and not unlabelled:
        raise Recoded(f"the reply comes as {encoding}, and {version.url} is stored as {stored}")
    if status == 206:
        return _part(version, first, end, headers.get("content-range"), unlabelled=unlabelled)
    size = ranges.number(headers.get("content-length", ""))
    if unlabelled:
        return _unlabelled(version, size, headers)
    if size not in (None, version.size):
        raise WrongResponse(f"the reply promises {size} bytes of {version.url}, which has {version.size}")
    return Promise(0, version.size)


def _agree(version: Object, headers: Mapping[str, str]) -> None:
    """Raise WrongResponse for another generation, and Contradiction where the response and the metadata do not agree."""
    generation = headers.get("x-goog-generation")
    if generation is not None and generation != str(version.generation):
        raise WrongResponse(f"the reply is of generation {generation} of {version.url}")
    stored, known = _stored(headers), version.content_encoding or _PLAIN
    if stored is not None and stored.lower() != known.lower():
        raise Contradiction(f"the response says that {version.url} is stored as {stored}, and its metadata say {known}")
    size = headers.get("x-goog-stored-content-length")
    if size is not None and size != str(version.size):
        raise Contradiction(
            f"the response says that {version.url} has {size} bytes, and its metadata say {version.size}"
        )


def _part(version: Object, first: int, end: int, header: str | None, *, unlabelled: bool) -> Promise:
    """Return the promise of a Content-Range; without a label of their encoding, bytes are of what has that size."""
    part = ranges.parse(header or "")
    totals = (version.size,) if unlabelled else (None, version.size)
    if part is None or part.first != first or part.last is None or part.total not in totals:
        raise WrongResponse(
            f"bytes {first} to {end - 1} of {version.size} were asked for, and the reply has {header!r}"
        )
    if part.last >= end:
        raise WrongResponse(f"bytes {first} to {end - 1} were asked for, and the reply has more: up to {part.last}")
    return Promise(first, part.last + 1)


def _unlabelled(version: Object, size: int | None, headers: Mapping[str, str]) -> Promise:
    """Return the promise of a whole body that is not labelled as gzip, though it is stored so."""
    if size is None and "chunked" not in headers.get("transfer-encoding", "").lower():
        raise WrongResponse(
            f"the response states no length of {version.url}, so nobody can tell whether all of it comes"
        )
    if size is not None and size > version.size * _MOST_UNFOLDED:
        raise WrongResponse(
            f"the response promises {size} bytes, more than {version.url} ({version.size} bytes) unfolds to"
        )
    return Promise(0, size, decoded=True)


def is_unlabelled(version: Object, headers: Mapping[str, str]) -> bool:
    """Return whether a body comes without the label of the gzip that is stored."""
    return version.content_encoding == GZIP and headers.get("content-encoding", _PLAIN) == _PLAIN


def _stored(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-goog-stored-content-encoding")


def _crc32c(headers: Mapping[str, str]) -> str | None:
    for each in headers.get("x-goog-hash", "").split(","):
        name, _, value = each.strip().partition("=")
        if name == "crc32c":
            return value
    return None
