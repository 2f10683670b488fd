"""Rules for continuing a download that broke: which bytes to ask for, which responses have them. It knows no client.

Two responses are joined only if both say that they are of the same object, by a strong ETag (RFC 9110 §8.8.1) or the
object's generation (Cloud Storage), in the same content coding, and the second begins at the very byte where the first
ended. Bytes are counted as they go over the wire, before any Content-Encoding is undone.
"""

from forbear.core.record import Record
from forbear.http.preconditions import is_strong
from forbear.http.status import reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_ALIASES = {"x-gzip": "gzip", "x-compress": "compress"}
"""Other names of content codings (RFC 9110 §8.4.1)."""


class Unresumable(Exception):
    """Say why a response does not continue a download; after a `final` one no other response would."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class ContentRange(Record):
    """A Content-Range header: the bytes from `first` to `last`, both included, of `total` (None if unknown).

    `first` and `last` are None for a range that could not be satisfied.
    """

    __slots__ = ("first", "last", "total")

    first: int | None
    last: int | None
    total: int | None

    def __init__(self, first: int | None, last: int | None, total: int | None) -> None:
        self._set(first=first, last=last, total=total)


def parse(value: str) -> ContentRange | None:
    """Parse a Content-Range header (RFC 9110 §14.4) in bytes; None where it cannot be read or makes no sense."""
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


class Part(Record):
    """The promise of a first response: bytes `first` to `last` (None: to the end) of an object of `total` bytes.

    `etag` (a strong one) and `generation` say of which object, `encoding` how its bytes are coded on the wire.
    """

    __slots__ = ("first", "last", "total", "etag", "generation", "encoding")

    first: int
    last: int | None
    total: int | None
    etag: str | None
    generation: str | None
    encoding: str

    def __init__(
        self,
        first: int,
        last: int | None,
        total: int | None,
        etag: str | None = None,
        generation: str | None = None,
        encoding: str = "",
    ) -> None:
        self._set(first=first, last=last, total=total, etag=etag, generation=generation, encoding=encoding)

    def remaining(self, received: int) -> int | None:
        """Return how many bytes are missing after `received` ones, None if the length is unknown."""
        return None if self.last is None else self.last + 1 - self.first - received

    def headers(self, received: int) -> dict[str, str]:
        """Return the headers that ask for the rest; they replace the request's own Range and If-Range.

        Where there is a `generation`, ask for that one in the URL, too: then a newer object does not stand in the way.
        A response to If-Range need not name its coding (RFC 9110 §15.3.7), so a coded part is compared by its ETag.
        """
        end = "" if self.last is None else self.last
        headers = {"range": f"bytes={self.first + received}-{end}"}
        if self.is_conditional:
            headers["if-range"] = self.etag or ""
        return headers

    @property
    def is_conditional(self) -> bool:
        """Return whether `headers` make the server compare the ETag."""
        return self.etag is not None and not self.encoding


def begin(method: str, status: int, headers: "Mapping[str, str]", range_header: str = "") -> Part:
    """Return what a response to a download promises, so that it can be continued; `headers` has lower-case names.

    `range_header` is the request's own Range. Raises Unresumable with the reason if the rest cannot be asked for.
    """
    if method != "GET":
        raise Unresumable(f"only a GET can be continued, not a {method}")
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
    return Part(first, last, total, strong, generation, encoding)


def coding(headers: "Mapping[str, str]") -> str:
    """Return the content codings of a response, in order; "" if there are none, which `identity` means, too."""
    codings = (name.strip().lower() for name in headers.get("content-encoding", "").split(","))
    return ", ".join(_ALIASES.get(name, name) for name in codings if name not in ("", "identity"))


def is_pinned(status: int, headers: "Mapping[str, str]") -> bool:
    """Return whether another response of which `verify_again` says that it is the same has the same bytes.

    A coded response is not: a server that compresses while it sends may yield other bytes each time, under one ETag.
    """
    if coding(headers) or _names(headers) == (None, None):
        return False
    span = headers.get("content-range")
    if status != 206:
        return span is None
    part = parse(span or "")
    return part is not None and part.first is not None


def verify(part: Part, received: int, status: int, headers: "Mapping[str, str]", *, named: bool = False) -> int:
    """Check that a response continues `part` exactly after `received` bytes; return how many it will then be in all.

    `headers` has lower-case names. `named` says that the request named the object, so that a 416 without a validator is
    of that one: it may say that there are no more bytes than those. Raises Unresumable with the reason if the response
    does not continue the part; its body must not be used then.
    """
    if status == 416 and part.last is None and not part.encoding:  # its size may be that of the object uncoded
        return _verify_end(part, received, headers, named=named)
    if status == 200 and not _is_part(headers):
        raise Unresumable("the server sent the whole object instead of the rest: it changed, or ranges are not served")
    if status not in (200, 206):
        raise Unresumable(f"the server answered {reason(status)} instead of sending the rest", final=status != 416)
    if not _is_same(part, headers):
        raise Unresumable("the response does not say of which object it is")
    if coding(headers) != part.encoding:
        raise Unresumable("the object comes in another encoding now")
    got = parse(headers.get("content-range", ""))
    if got is None or got.first != part.first + received:
        raise Unresumable(f"the rest does not begin at byte {part.first + received}")
    if part.total is not None and got.total not in (None, part.total):
        raise Unresumable(f"the object has {got.total} bytes now and had {part.total}", final=True)
    end = got.total - 1 if part.last is None and got.total is not None else part.last
    if end is None or got.last != end:
        raise Unresumable("the response does not have all of the rest")
    return end + 1 - part.first


def verify_again(
    first: "tuple[int, Mapping[str, str]]", second: "tuple[int, Mapping[str, str]]", range_header: str = ""
) -> int | None:
    """Check that the `second` response to a request is of the same bytes as the `first`; return how many those are.

    Each is a status and headers with lower-case names; None means that neither has a length. `range_header` is the
    request's own Range. Raises Unresumable with the reason where status, range, validators, coding or length differ;
    a length that is missing does not differ.
    """
    (status, headers), (again, others) = first, second
    # A server that says 200 with the range that was asked for may say 206 the next time.
    if again != status and (not range_header or "content-range" not in headers or {status, again} != {200, 206}):
        raise Unresumable(f"the server answered {reason(again)} when asked again", final=True)
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


def _verify_end(part: Part, received: int, headers: "Mapping[str, str]", *, named: bool) -> int:
    """Check that a 416 says that there is nothing after the `received` bytes, and return their number."""
    got = parse(headers.get("content-range", ""))
    if got is None or got.first is not None or got.total != part.first + received:
        raise Unresumable(f"the server answered {reason(416)} instead of sending the rest")
    if not _is_same(part, headers) and not named:
        raise Unresumable("the response does not say of which object it is")
    return received


def _is_same(part: Part, headers: "Mapping[str, str]") -> bool:
    """Return whether a response says that it is of the object of `part`; raises Unresumable if it is of another one."""
    etag, generation = headers.get("etag"), headers.get("x-goog-generation")
    if part.etag is not None and etag not in (None, part.etag):
        raise Unresumable("the object has another ETag now", final=True)
    if part.generation is not None and generation not in (None, part.generation):
        raise Unresumable("the object has another generation now", final=True)
    return (part.etag is not None and etag is not None) or (part.generation is not None and generation is not None)


def _names(headers: "Mapping[str, str]") -> tuple[str | None, str | None]:
    """Return the strong ETag and the generation of a response, None where there is none."""
    etag = headers.get("etag", "")
    return etag if is_strong(etag) else None, headers.get("x-goog-generation") or None


def _extent(status: int, headers: "Mapping[str, str]", range_header: str) -> tuple[int, int | None, int | None]:
    """Return the first and last byte that a response has, and the size of the object; None for unknown ones."""
    if status == 200 and "content-range" not in headers:
        total = _length(headers)
        return 0, None if total is None else total - 1, total
    if status not in (200, 206):
        raise Unresumable(f"{reason(status)} is no download")
    part = parse(headers.get("content-range", ""))
    if part is None or part.first is None:
        raise Unresumable("the response does not say which one range of bytes it has")
    if status == 200 and (not _is_part(headers) or (part.first, part.last) != _requested(range_header, part.total)):
        raise Unresumable("the response is a 200 with a Content-Range that is not exactly the one that was asked for")
    return part.first, part.last, part.total


def _is_part(headers: "Mapping[str, str]") -> bool:
    """Return whether a Content-Range and the length of a response agree; where RFC 9110 gives the first no meaning."""
    part = parse(headers.get("content-range", ""))
    if part is None or part.first is None or part.last is None:
        return False
    return _length(headers) == part.last + 1 - part.first


def _requested(range_header: str, total: int | None) -> tuple[int, int] | None:
    """Return the first and last byte that a Range header asks for, of `total`; None if it is not one range of bytes."""
    if total is None:
        return None
    unit, _, span = (range_header or "bytes=0-").partition("=")
    start, dash, end = (text.strip() for text in span.partition("-"))
    first, last = number(start), number(end)
    if unit.strip().lower() != "bytes" or not dash or (first is None and start) or (last is None and end):
        return None
    if first is None:
        return None if last is None else (max(total - last, 0), total - 1)
    return first, total - 1 if last is None else min(last, total - 1)


def _is_same_span(one: str, other: str) -> bool:
    """Return whether two Content-Range headers name the same bytes; the size of the object may be missing in one."""
    first, second = parse(one), parse(other)
    if first is None or second is None:
        return one == other
    totals = {first.total, second.total} - {None}
    return (first.first, first.last) == (second.first, second.last) and len(totals) < 2


def _length(headers: "Mapping[str, str]") -> int | None:
    """Return how long a response says it is, None if it does not say."""
    return None if "transfer-encoding" in headers else number(headers.get("content-length", ""))


def number(text: str) -> int | None:
    """Parse a count of bytes of at most 19 digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
