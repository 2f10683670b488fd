"""The bytes of an object as a reply: ranges, validators, hashes and decompressive transcoding; changes nothing."""

import re
import zlib

from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import Reply, Request
from forbear.testing.cloud.http.outgoing import http_date
from forbear.testing.cloud.storage.conditions import same_etag
from forbear.testing.cloud.storage.encryption import check_key, encryption_headers
from forbear.testing.cloud.storage.model import StoredObject

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)
_MOST_UNPACKED = 128 * 1024 * 1024

_UNPACKED = (("Accept-Ranges", "none"), ("Vary", "Accept-Encoding"), ("Warning", "214 UploadServer gunzipped"))


def media(item: StoredObject, request: Request, etag: str | None = None) -> Reply:
    """The object's bytes: all (200), the range asked for (206), or 416; unpacked when the client takes no gzip.

    `etag` is the object's in an API that has others than its own.
    """
    check_key(item, request.headers)
    etag = etag or item.etag
    headers = _headers(item, etag)
    encoding = item.string("contentEncoding")
    if encoding == "gzip" and not _accepts_gzip(request) and "no-transform" not in (item.string("cacheControl") or ""):
        unpacked = _unpacked(item.data)
        if unpacked is not None:
            # The range would count bytes that are not stored anywhere: the service ignores it, and sends everything.
            # Neither is its size known before it is unpacked.
            return Reply(200, (*headers, *_UNPACKED), unpacked, measured=False)
    headers = (*headers, ("Accept-Ranges", "bytes"))
    if encoding is not None:
        headers = (*headers, ("Content-Encoding", encoding))
    wanted = _range(item, request, etag)
    if wanted is None:
        return Reply(200, headers, item.content)
    start, end = wanted
    size = len(item.content)
    if start >= min(end, size):
        raise ApiError(416, "Request range not satisfiable", headers=(("Content-Range", f"bytes */{size}"),))
    end = min(end, size)
    return Reply(206, (*headers, ("Content-Range", f"bytes {start}-{end - 1}/{size}")), item.content.cut(start, end))


def _headers(item: StoredObject, etag: str) -> tuple[tuple[str, str], ...]:
    hashes = f"crc32c={item.crc32c}" + (f",md5={item.md5}" if item.md5 is not None else "")
    headers = [
        ("Content-Type", item.string("contentType") or "application/octet-stream"),
        ("ETag", etag),
        ("Last-Modified", _modified(item)),
        ("X-Goog-Generation", str(item.generation)),
        ("X-Goog-Metageneration", str(item.metageneration)),
        ("X-Goog-Hash", hashes),
        ("X-Goog-Stored-Content-Encoding", item.string("contentEncoding") or "identity"),
        ("X-Goog-Stored-Content-Length", str(len(item.content))),
        ("X-Goog-Storage-Class", item.string("storageClass") or "STANDARD"),
    ]
    if item.components is not None:
        headers.append(("X-Goog-Component-Count", str(item.components)))
    named = {"contentDisposition": "Content-Disposition", "contentLanguage": "Content-Language"}
    headers += [(header, value) for name, header in named.items() if (value := item.string(name))]
    return (
        *headers,
        *encryption_headers(item),
        ("Cache-Control", item.string("cacheControl") or "no-cache, no-store, max-age=0, must-revalidate"),
    )


def _modified(item: StoredObject) -> str:
    return http_date(int(item.updated))


def _range(item: StoredObject, request: Request, etag: str) -> tuple[int, int] | None:
    """First byte and the one after the last; None (send all) for no range, a malformed one, or a changed object."""
    condition = request.headers.get("if-range")
    if condition is not None and not same_etag(condition, etag) and condition.strip() != _modified(item):
        return None
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None:
        return None
    first, last = found.groups()
    size = len(item.content)
    if not first:
        return (max(size - int(last), 0), size) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), int(last) + 1 if last else max(size, int(first))


def _accepts_gzip(request: Request) -> bool:
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", weight)
    return False


def _unpacked(data: bytes) -> bytes | None:
    """The content of a gzip file; None when it is none, or unreasonably large."""
    out = bytearray()
    try:
        while data and len(out) < _MOST_UNPACKED:
            unpacker = zlib.decompressobj(wbits=31)
            out += unpacker.decompress(data, _MOST_UNPACKED - len(out))
            if not unpacker.eof:
                return None
            data = unpacker.unused_data
    except zlib.error:
        return None
    return bytes(out) if not data else None
