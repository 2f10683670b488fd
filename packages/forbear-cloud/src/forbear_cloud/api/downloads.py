"""Download the bytes of an object: ranges, entity tags, hashes, and decompression for clients that take no gzip."""

import re
import zlib

from forbear_cloud.http.messages import ApiError, Headers, HttpRequest, HttpResponse
from forbear_cloud.http.outgoing import http_date
from forbear_cloud.storage.conditions import is_same_etag
from forbear_cloud.storage.encryption import check_key, encryption_headers
from forbear_cloud.storage.model import StoredObject

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)
_MAX_UNPACKED = 128 * 1024 * 1024

_UNPACKED = (("Accept-Ranges", "none"), ("Vary", "Accept-Encoding"), ("Warning", "214 UploadServer gunzipped"))


def media(item: StoredObject, request: HttpRequest, etag: str | None = None) -> HttpResponse:
    """Respond with all bytes of an object (200) or with the range that the request names (206).

    A gzip object is decompressed for a client that does not accept gzip, all of it even if the request names a range.
    It is sent as stored if it is marked no-transform, or is not valid gzip of at most 128 MiB. `etag` replaces the
    object's entity tag, as the XML API has its own. Raise 416 if the range is after the end, and 400 unless the request
    has the object's key.
    """
    check_key(item, request.headers)
    etag = etag or item.etag
    headers = _headers(item, etag)
    encoding = item.string("contentEncoding")
    if encoding == "gzip" and not _accepts_gzip(request) and "no-transform" not in (item.string("cacheControl") or ""):
        unpacked = _unpack(item.data)
        if unpacked is not None:
            # Like the service, ignore a range, which would count bytes that are not stored, and send no length.
            return HttpResponse(200, (*headers, *_UNPACKED), unpacked, measured=False)
    headers = (*headers, ("Accept-Ranges", "bytes"))
    if encoding is not None:
        headers = (*headers, ("Content-Encoding", encoding))
    wanted = _range(item, request, etag)
    if wanted is None:
        return HttpResponse(200, headers, item.content)
    start, end = wanted
    size = len(item.content)
    if start >= min(end, size):
        raise ApiError(416, "Request range not satisfiable", headers=(("Content-Range", f"bytes */{size}"),))
    end = min(end, size)
    return HttpResponse(
        206, (*headers, ("Content-Range", f"bytes {start}-{end - 1}/{size}")), item.content.cut(start, end)
    )


def _headers(item: StoredObject, etag: str) -> Headers:
    headers = [
        ("Content-Type", item.string("contentType") or "application/octet-stream"),
        ("ETag", etag),
        ("Last-Modified", http_date(int(item.updated))),
        ("X-Goog-Generation", str(item.generation)),
        ("X-Goog-Metageneration", str(item.metageneration)),
        ("X-Goog-Hash", item.hashes),
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


def _range(item: StoredObject, request: HttpRequest, etag: str) -> tuple[int, int] | None:
    """Return the range in the Range header as the first byte and the one after the last, which may be after the end.

    Return None, so that all bytes are sent, without a range, for a malformed one and for several. Return None also if
    If-Range names neither the entity tag nor the time of the last change.
    """
    condition = request.headers.get("if-range")
    modified = http_date(int(item.updated))
    if condition is not None and not is_same_etag(condition, etag) and condition.strip() != modified:
        return None
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None:
        return None
    first, last = match.groups()
    size = len(item.content)
    if not first:
        return (max(size - int(last), 0), size) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), int(last) + 1 if last else max(size, int(first))


def _accepts_gzip(request: HttpRequest) -> bool:
    """Return whether Accept-Encoding lists gzip or `*`; the first of the two must not have a weight of 0."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", weight)
    return False


def _unpack(data: bytes) -> bytes | None:
    """Decompress gzip data of one or more members.

    Return None if it is not valid, or has more than 128 MiB unpacked.
    """
    out = bytearray()
    try:
        while data and len(out) < _MAX_UNPACKED:
            unpacker = zlib.decompressobj(wbits=31)
            out += unpacker.decompress(data, _MAX_UNPACKED - len(out))
            if not unpacker.eof:
                return None
            data = unpacker.unused_data
    except zlib.error:
        return None
    return bytes(out) if not data else None
