"""Continue a broken download: request the missing bytes, and check that a response has exactly those.

Two responses are joined only if three things hold. Both name the same object, by a strong ETag (RFC 9110 §8.8.1) or by
its generation (Cloud Storage). Both have the same content coding. The second begins at the byte where the first ended.
Bytes are counted as they are on the wire, before any Content-Encoding is undone.
"""

from collections.abc import Mapping

from forbear.core.dataclass import dataclass
from forbear.http.preconditions import is_strong
from forbear.http.status import reason

_ALIASES = {"x-gzip": "gzip", "x-compress": "compress"}  # the old names of content codings (RFC 9110 §8.4.1)


class Unresumable(Exception):
    """A response does not continue a download, for the reason in the text; if `final`, no other response would."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


@dataclass(frozen=True, slots=True)
class ContentRange:
    """The value of a Content-Range header: the bytes from `first` to `last` of an object of `total` bytes.

    `last` is included. `total` is None if unknown. `first` and `last` are None for a range that could not be satisfied.
    """

    first: int | None
    last: int | None
    total: int | None


def parse(value: str) -> ContentRange | None:
    """Parse a Content-Range header (RFC 9110 §14.4); None if it makes no sense or has another unit than bytes.

    >>> parse_content_range("bytes 5-9/10").first, parse_size("10")
    (5, 10)
    """
    unit, _, rest = value.strip().partition(" ")
    span, slash, size = rest.strip().partition("/")
    total = number(size)
    if unit.lower() != "bytes" or not slash or (total is None and size != "*"):
        return None
    if span == "*":
        return None if total is None else ContentRange(None, None, total)
    first, last = (number(end) for end in (span.split("-") if span.count("-") == 1 else ("", "")))
    if first is None or last is None or first > last or (total is not None and last >= total):
        return None
    return ContentRange(first, last, total)


def read_sent_range(headers: Mapping[str, str]) -> ContentRange | None:
    """Return the bytes that an upload with these headers carries; None if its Content-Range does not say which.

    Without Content-Range it carries all of the object, up to the Content-Length. `headers` has lower-case names.
    """
    named = headers.get("content-range")
    if named is None:
        length = number(headers.get("content-length", ""))
        return ContentRange(0, None if length is None else length - 1, length)
    part = parse(named)
    return None if part is None or part.first is None else part


@dataclass(frozen=True, slots=True)
class DownloadRange:
    """The bytes that the first response of a download has: `first` to `last` of an object of `total` bytes.

    `last` is included; it is None if the response continues to an unknown end. `total` is None if the size is unknown.
    `etag` (a strong one) and `generation` name the object, each None if the response has none. `encoding` is the
    content coding on the wire, "" for none.
    """

    first: int
    last: int | None
    total: int | None
    etag: str | None = None
    generation: str | None = None
    encoding: str = ""

    def remaining(self, received: int) -> int | None:
        """Return how many bytes of the range are missing after `received` ones, None if its end is unknown."""
        return None if self.last is None else self.last + 1 - self.first - received

    def headers(self, received: int) -> dict[str, str]:
        """Return the headers that request the rest after `received` bytes: Range, and If-Range with the ETag.

        If-Range is sent only if there is an `etag` and no content coding: a response to it may leave out its coding
        (RFC 9110 §15.3.7). If there is a `generation`, name it in the URL as well, so that a newer object does no harm.
        """
        headers = {"range": f"bytes={self.first + received}-{'' if self.last is None else self.last}"}
        if self.is_conditional:
            headers["if-range"] = self.etag or ""
        return headers

    @property
    def is_conditional(self) -> bool:
        """True if `headers` has an If-Range, so that the server compares the ETag: it has an `etag` and no coding."""
        return self.etag is not None and not self.encoding


def download_range(status: int, headers: Mapping[str, str], range_header: str = "") -> DownloadRange:
    """Return the range of bytes that the first response to a GET has, so that the download can be continued.

    `range_header` is the Range of the request, "" without one, `status` and `headers` (with lower-case names) are those
    of the response. Raises Unresumable with the reason if the rest cannot be requested. The response must say which
    bytes it has and name its object by a strong ETag or generation. The server must serve ranges, and not decode the
    object while it sends.
    """
    first, last, total = _extent(status, headers, range_header)
    encoding, stored = coding(headers), headers.get("x-goog-stored-content-encoding", "identity")
    if stored not in ("identity", encoding):
        raise Unresumable(
            f"the server decodes {stored} while it sends, and then ignores ranges; "
            f"ask for the stored bytes with `Accept-Encoding: {stored}`"
        )
    if headers.get("accept-ranges") == "none":
        raise Unresumable("the server does not serve ranges")
    strong, generation = _names(headers)
    if strong is None and generation is None:
        raise Unresumable("neither a strong ETag nor a generation says which object it is")
    return DownloadRange(first, last, total, strong, generation, encoding)


def coding(headers: Mapping[str, str]) -> str:
    """Return the content codings of a response, in order and comma-separated; "" for none or `identity`.

    They are in lower case, with "gzip" for the old "x-gzip". `headers` has lower-case names.
    """
    codings = (name.strip().lower() for name in headers.get("content-encoding", "").split(","))
    return ", ".join(_ALIASES.get(name, name) for name in codings if name not in ("", "identity"))


def is_pinned(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether the headers pin the bytes: any response that passes `verify_again` has the same ones.

    That needs a strong ETag or a generation. A 206 must have a readable Content-Range, and any other status must have
    none. The headers of a coded response do not pin them: a server that compresses while it sends may yield other bytes
    each time, under one ETag.
    """
    if coding(headers) or _names(headers) == (None, None):
        return False
    span = headers.get("content-range")
    if status != 206:
        return span is None
    part = parse(span or "")
    return part is not None and part.first is not None


def verify(
    expected: DownloadRange, received: int, status: int, headers: Mapping[str, str], *, named: bool = False
) -> int:
    """Check that a response continues the range `expected` exactly after `received` bytes of it.

    Returns the number of bytes that the download has once this response is read to its end. `headers` has lower-case
    names. `named` says that the request named the object, so that a 416 without a validator may say that there are no
    more bytes. Raises Unresumable with the reason if the response does not continue the download.
    """
    if status == 416 and expected.last is None and not expected.encoding:  # its size may be the uncoded object's
        return _verify_end(expected, received, headers, named=named)
    if status == 200 and not _is_part(headers):
        raise Unresumable("the server sent the whole object instead of the rest: it changed, or ranges are not served")
    if status not in (200, 206):
        raise Unresumable(f"the server answered {reason(status)} instead of sending the rest", final=status != 416)
    if not _is_same(expected, headers):
        raise Unresumable("the response does not name its object")
    if coding(headers) != expected.encoding:
        raise Unresumable("the object comes in another encoding now")
    actual = parse(headers.get("content-range", ""))
    if actual is None or actual.first != expected.first + received:
        raise Unresumable(f"the rest does not begin at byte {expected.first + received}")
    if expected.total is not None and actual.total not in (None, expected.total):
        raise Unresumable(f"the object has {actual.total} bytes now and had {expected.total}", final=True)
    end = actual.total - 1 if expected.last is None and actual.total is not None else expected.last
    if end is None or actual.last != end:
        raise Unresumable("the response does not have all of the rest")
    return end + 1 - expected.first


def verify_again(
    first: tuple[int, Mapping[str, str]], second: tuple[int, Mapping[str, str]], range_header: str = ""
) -> int | None:
    """Check that the `second` response to a request has the same bytes as the `first`; return their number.

    Each response is a status and headers with lower-case names. Returns None if neither has a length. `range_header` is
    the request's own Range. Raises Unresumable if status, range, validators, coding or length differ. A missing length
    does not, nor do 200 and 206 if a range was requested and the first response has a Content-Range.
    """
    (status, headers), (again, others) = first, second
    # A server that answers a range with 200 may answer with 206 the next time.
    if again != status and (not range_header or "content-range" not in headers or {status, again} != {200, 206}):
        raise Unresumable(f"the server answered {reason(again)} to the repeated request", final=True)
    for name in ("etag", "x-goog-generation"):
        if headers.get(name) != others.get(name):
            raise Unresumable(f"the second response has another {name} than the first", final=True)
    if coding(headers) != coding(others):
        raise Unresumable("the second response has another content-encoding than the first")
    if not _is_same_span(headers.get("content-range", ""), others.get("content-range", "")):
        raise Unresumable("the second response has another content-range than the first")
    length, other = _length(headers), _length(others)
    if None not in (length, other) and length != other:
        raise Unresumable("the second response has another content-length than the first")
    return other if length is None else length


def verify_anew(headers: Mapping[str, str], others: Mapping[str, str]) -> int | None:
    """Check that a response with the headers `others` can take the place of the first one; return its length or None.

    Raises Unresumable if their codings differ: the reader of the first one has chosen how to decode it.
    """
    if coding(headers) != coding(others):
        raise Unresumable("the second response has another content-encoding than the first")
    return _length(others)


def _verify_end(expected: DownloadRange, received: int, headers: Mapping[str, str], *, named: bool) -> int:
    """Check that a 416 says that nothing follows the `received` bytes of the same object, and return `received`."""
    actual = parse(headers.get("content-range", ""))
    if actual is None or actual.first is not None or actual.total != expected.first + received:
        raise Unresumable(f"the server answered {reason(416)} instead of sending the rest")
    if not _is_same(expected, headers) and not named:
        raise Unresumable("the response does not name its object")
    return received


def _is_same(expected: DownloadRange, headers: Mapping[str, str]) -> bool:
    """Return whether a response names the expected object, False if it names none; Unresumable if it names another."""
    etag, generation = headers.get("etag"), headers.get("x-goog-generation")
    if expected.etag is not None and etag not in (None, expected.etag):
        raise Unresumable("the object has another ETag now", final=True)
    if expected.generation is not None and generation not in (None, expected.generation):
        raise Unresumable("the object has another generation now", final=True)
    return None not in (expected.etag, etag) or None not in (expected.generation, generation)


def _names(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the strong ETag and the generation of a response, None for each that is missing (or a weak ETag)."""
    etag = headers.get("etag", "")
    return etag if is_strong(etag) else None, headers.get("x-goog-generation") or None


def _extent(status: int, headers: Mapping[str, str], range_header: str) -> tuple[int, int | None, int | None]:
    """Return the first and the last byte that a response has, and the size of its object, each None if unknown.

    A 200 with a Content-Range must have exactly the range in `range_header`, the request's Range.
    """
    if status == 200 and "content-range" not in headers:
        total = _length(headers)
        return 0, None if total is None else total - 1, total
    if status not in (200, 206):
        raise Unresumable(f"{reason(status)} is no download")
    span = parse(headers.get("content-range", ""))
    if span is None or span.first is None:
        raise Unresumable("the response does not say which one range of bytes it has")
    if status == 200 and (not _is_part(headers) or (span.first, span.last) != _parse_range(range_header, span.total)):
        raise Unresumable("the response is a 200 with a Content-Range that is not exactly the requested one")
    return span.first, span.last, span.total


def _is_part(headers: Mapping[str, str]) -> bool:
    """Return whether a 200, where RFC 9110 gives a Content-Range no meaning, has one that its length confirms."""
    span = parse(headers.get("content-range", ""))
    if span is None or span.first is None or span.last is None:
        return False
    return _length(headers) == span.last + 1 - span.first


def _parse_range(range_header: str, total: int | None) -> tuple[int, int] | None:
    """Return the first and last byte that a Range header ("": all) requests of an object of `total` bytes, if any."""
    if total is None:
        return None
    unit, _, spec = (range_header or "bytes=0-").partition("=")
    start, dash, end = (text.strip() for text in spec.partition("-"))
    first, last = number(start), number(end)
    if unit.strip().lower() != "bytes" or not dash or (first is None and start) or (last is None and end):
        return None
    if first is None:
        return None if last is None else (max(total - last, 0), total - 1)
    return first, total - 1 if last is None else min(last, total - 1)


def _is_same_span(one: str, other: str) -> bool:
    """Return whether two Content-Range headers name the same bytes; one may lack the size of the object."""
    first, second = parse(one), parse(other)
    if first is None or second is None:
        return one == other
    totals = {first.total, second.total} - {None}
    return (first.first, first.last) == (second.first, second.last) and len(totals) < 2


def _length(headers: Mapping[str, str]) -> int | None:
    """Return the Content-Length of a response, None if it is missing or unreadable, or there is a Transfer-Encoding."""
    return None if "transfer-encoding" in headers else number(headers.get("content-length", ""))


def number(text: str) -> int | None:
    """Parse a count of bytes of at most 19 digits; None for any other text. Example: see `parse_content_range`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
