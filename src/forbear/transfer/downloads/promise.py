"""What a reply to a request for an object's bytes promises, by its status and headers. It reads no body."""

from collections.abc import Mapping
from dataclasses import dataclass

from forbear.http import ranges
from forbear.transfer.cloud.address import Url
from forbear.transfer.cloud.objects import MTIME, Object
from forbear.transfer.errors import WrongReply

GZIP = "gzip"
_PLAIN = "identity"


class Recoded(WrongReply):
    """A reply whose bytes were compressed on the way, though they are not stored so."""


@dataclass(frozen=True, slots=True)
class Promise:
    """The bytes from `first` up to `end` (not included; None if nobody said).

    Where they are `decoded`, the server has undone the gzip that is stored: neither size nor checksum are known.
    """

    first: int
    end: int | None
    decoded: bool = False


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
    """What a reply with status 200 or 206 brings of `version`, of which the bytes from `first` to `end` were asked for.

    Raises WrongReply where that is neither what was asked for nor the whole object.
    """
    generation = headers.get("x-goog-generation")
    if generation is not None and generation != str(version.generation):
        raise WrongReply(f"the reply is of generation {generation} of {version.url}")
    encoding = headers.get("content-encoding", _PLAIN)
    stored = _stored(headers) or version.content_encoding or _PLAIN
    if encoding == _PLAIN and stored == GZIP:
        return Promise(0, ranges.number(headers.get("content-length", "")), decoded=True)
    if encoding != stored:
        raise Recoded(f"the reply comes as {encoding}, and {version.url} is stored as {stored}")
    if status == 200:
        size = ranges.number(headers.get("content-length", ""))
        if size not in (None, version.size):
            raise WrongReply(f"the reply promises {size} bytes of {version.url}, which has {version.size}")
        return Promise(0, version.size)
    part = ranges.parse(headers.get("content-range", ""))
    if part is None or part.first != first or part.last is None or part.total not in (None, version.size):
        said = headers.get("content-range")
        raise WrongReply(f"bytes {first} to {end - 1} of {version.size} were asked for, and the reply has {said!r}")
    if part.last >= end:
        raise WrongReply(f"bytes {first} to {end - 1} were asked for, and the reply has more: up to {part.last}")
    return Promise(first, part.last + 1)


def _stored(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-goog-stored-content-encoding")


def _crc32c(headers: Mapping[str, str]) -> str | None:
    for each in headers.get("x-goog-hash", "").split(","):
        name, _, value = each.strip().partition("=")
        if name == "crc32c":
            return value
    return None
