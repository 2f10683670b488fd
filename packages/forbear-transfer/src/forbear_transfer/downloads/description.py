"""Parse the headers of a download's response: which object it is, which of its bytes the body has, and their encoding.

Functions without I/O. `describe_body` raises WrongResponse for a response whose bytes must not be used.
"""

from collections.abc import Mapping

from forbear.adapters import dataclass, parse_content_range, parse_size
from forbear_transfer.downloads.sinks import GZIP_MAGIC
from forbear_transfer.errors import WrongResponse
from forbear_transfer.objects import MTIME, Object, Url

GZIP = "gzip"
"""The value of Content-Encoding for objects that are stored as gzip."""

_IDENTITY = "identity"
_STORED_ENCODING = "x-goog-stored-content-encoding"
_MAX_EXPANSION = 1032
"""The largest number of bytes that one byte of gzip can decode to: a match of 258 bytes takes two bits."""


class WrongEncoding(WrongResponse):
    """A response whose Content-Encoding is not that of the stored object.

    A response without this header for an object that is stored as gzip is no such error: the server may have decoded
    it.
    """


class Contradiction(WrongResponse):
    """A response that states another stored encoding or stored size of the object than its metadata."""


@dataclass(slots=True)
class BodyDescription:
    """The range of bytes in a response body: from `first` up to `end` (not included; None if it is not stated).

    `decoded` says that the server seems to have decoded the stored gzip: the response lacks its Content-Encoding. Then
    the checksum of the bytes is not known, and their number only if the response states it. They may be the stored
    bytes after all: `with_head` tells that from their beginning in most cases.
    """

    first: int
    end: int | None
    decoded: bool = False

    def with_head(self, head: bytes, version: Object) -> "BodyDescription":
        """Return the description of a `decoded` body whose beginning `head` (two bytes or more, or all of it) is known.

        If it begins like gzip, and `end` is None or the stored size of `version`, the server has decoded nothing. Then
        return the description of the whole stored object. Otherwise return this description.
        """
        if head.startswith(GZIP_MAGIC) and self.end in (None, version.size):
            return BodyDescription(0, version.size)
        return self

    def limit(self, version: Object) -> int:
        """Return the offset at which the body must end at the latest; gzip decodes to 1032 times its size at most."""
        most = version.size * _MAX_EXPANSION if self.decoded else version.size
        return most if self.end is None else min(most, self.end)


def object_from(url: Url, headers: Mapping[str, str]) -> Object | None:
    """Return the Object at `url` as the headers of a response with all of its bytes describe it.

    Of the custom metadata it has the modification time only. Return None if the headers lack generation, size or
    CRC32C.
    """
    generation = parse_size(headers.get("x-goog-generation", ""))
    crc32c = _read_crc32c(headers)
    encoding = headers.get(_STORED_ENCODING) or headers.get("content-encoding", _IDENTITY)
    size = parse_size(headers.get("x-goog-stored-content-length", ""))
    if size is None and encoding != GZIP:
        size = parse_size(headers.get("content-length", ""))
    if generation is None or size is None or crc32c is None:
        return None
    mtime = headers.get(f"x-goog-meta-{MTIME}")
    return Object(
        bucket=url.bucket,
        name=url.name,
        generation=generation,
        size=size,
        crc32c=crc32c,
        metageneration=parse_size(headers.get("x-goog-metageneration", "")) or 1,
        content_type=headers.get("content-type"),
        content_encoding=None if encoding == _IDENTITY else encoding,
        metadata={} if mtime is None else {MTIME: mtime},
    )


def describe_body(version: Object, first: int, end: int, status: int, headers: Mapping[str, str]) -> BodyDescription:
    """Describe the body of a 200 or 206 response to a request for bytes `first` to `end` (not included) of `version`.

    Raise Contradiction if the headers state another stored size or stored encoding than `version` has. Raise
    WrongEncoding if Content-Encoding is not the stored one. An object that is stored as gzip may lack it: a whole body
    is then `decoded`. Raise WrongResponse for another generation, and for bytes that are neither requested ones nor the
    whole object.
    """
    _check_version(version, headers)
    encoding = headers.get("content-encoding", _IDENTITY)
    stored = version.content_encoding or _IDENTITY
    unlabelled = is_unlabelled(version, headers)
    if encoding != stored and not unlabelled:
        raise WrongEncoding(f"the response is encoded as {encoding}, and {version.url} is stored as {stored}")
    if status == 206:
        return _describe_range(version, first, end, headers.get("content-range"), unlabelled=unlabelled)
    size = parse_size(headers.get("content-length", ""))
    if unlabelled:
        return _describe_decoded(version, size, headers)
    if size not in (None, version.size):
        raise WrongResponse(f"the response has {size} bytes of {version.url}, which has {version.size}")
    return BodyDescription(0, version.size)


def is_unlabelled(version: Object, headers: Mapping[str, str]) -> bool:
    """Return whether `version` is stored as gzip, and Content-Encoding in the response is absent or "identity"."""
    return version.content_encoding == GZIP and headers.get("content-encoding", _IDENTITY) == _IDENTITY


def _check_version(version: Object, headers: Mapping[str, str]) -> None:
    """Raise WrongResponse for another generation, Contradiction for another stored encoding or size."""
    generation = headers.get("x-goog-generation")
    if generation is not None and generation != str(version.generation):
        raise WrongResponse(f"the response is of generation {generation} of {version.url}")
    stored, known = headers.get(_STORED_ENCODING), version.content_encoding or _IDENTITY
    if stored is not None and stored.lower() != known.lower():
        raise Contradiction(f"the response says that {version.url} is stored as {stored}, and its metadata say {known}")
    size = headers.get("x-goog-stored-content-length")
    if size is not None and size != str(version.size):
        raise Contradiction(
            f"the response says that {version.url} has {size} bytes, and its metadata say {version.size}"
        )


def _describe_range(
    version: Object, first: int, end: int, content_range: str | None, *, unlabelled: bool
) -> BodyDescription:
    """Describe the body of a 206 response by its Content-Range; WrongResponse unless that fits the request.

    The range must begin at `first`, end before `end` or at it, and state the stored size of `version` as the total. A
    total that is unknown (*) is accepted unless the response is `unlabelled`: gzip without its Content-Encoding.
    """
    part = parse_content_range(content_range or "")
    totals = (version.size,) if unlabelled else (None, version.size)
    if part is None or part.first != first or part.last is None or part.total not in totals:
        raise WrongResponse(
            f"bytes {first} to {end - 1} of {version.size} were requested, and the response has {content_range!r}"
        )
    if part.last >= end:
        raise WrongResponse(f"bytes {first} to {end - 1} were requested, and the response has more: up to {part.last}")
    return BodyDescription(first, part.last + 1)


def _describe_decoded(version: Object, size: int | None, headers: Mapping[str, str]) -> BodyDescription:
    """Describe a 200 response of a gzip object without Content-Encoding: its body counts as decoded by the server.

    `size` is its Content-Length, None if there is none. Raise WrongResponse if there is none and the body is not
    chunked, or if `size` is over 1032 times the stored size of `version`.
    """
    if size is None and "chunked" not in headers.get("transfer-encoding", "").lower():
        raise WrongResponse(
            f"the response states no length for {version.url}, so a truncated one could not be recognized"
        )
    if size is not None and size > version.size * _MAX_EXPANSION:
        raise WrongResponse(
            f"the response has {size} bytes, more than {version.url} ({version.size} bytes of gzip) can decode to"
        )
    return BodyDescription(0, size, decoded=True)


def _read_crc32c(headers: Mapping[str, str]) -> str | None:
    for item in headers.get("x-goog-hash", "").split(","):
        name, _, value = item.strip().partition("=")
        if name == "crc32c":
            return value
    return None
