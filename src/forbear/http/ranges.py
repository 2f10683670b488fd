"""Going on with a download that broke: which bytes to ask for, and whether a reply has just those. It knows no client.

The rule: two replies are joined only if both say that they are of the same object, by a strong ETag (RFC 9110 §8.8.1)
or the object's generation (Cloud Storage), and the second begins at the very byte where the first ended. Counted are
bytes as they go over the wire, before any Content-Encoding is undone.
"""

from forbear.core.record import Record
from forbear.http import status as _status
from forbear.http.preconditions import is_strong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Unresumable(Exception):
    """Why a download cannot be continued."""


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
    """A Content-Range header (RFC 9110 §14.4) in bytes, None where it cannot be read or makes no sense."""
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
    """What a first reply promised: the bytes from `first` to `last` (None: to the end) of an object of `total` bytes.

    `etag` (a strong one) and `generation` say of which object, `encoding` how its bytes are encoded on the wire.
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
        """How many bytes are missing after `received` ones, None if the length is unknown."""
        return None if self.last is None else self.last + 1 - self.first - received

    def headers(self, received: int) -> dict[str, str]:
        """The headers that ask for the rest; they replace the request's own Range and If-Range.

        Where there is a `generation`, ask for that one in the URL, too: then a newer object does not stand in the way.
        """
        end = "" if self.last is None else self.last
        headers = {"range": f"bytes={self.first + received}-{end}"}
        if self.etag is not None:
            headers["if-range"] = self.etag
        return headers


def begin(method: str, status: int, headers: "Mapping[str, str]") -> Part:
    """What a reply to a download promises, so that it can be continued; `headers` has lower-case names.

    Raises Unresumable with the reason if a break in its body would be final.
    """
    if method != "GET":
        raise Unresumable(f"only a GET can be continued, not a {method}")
    first, last, total = _extent(status, headers)
    encoding, stored = headers.get("content-encoding", ""), headers.get("x-goog-stored-content-encoding", "identity")
    if stored not in ("identity", encoding):
        raise Unresumable(
            f"the server decodes {stored} while it sends, and then ignores ranges; "
            f"ask for the stored bytes with `Accept-Encoding: {stored}`"
        )
    if headers.get("accept-ranges") == "none":
        raise Unresumable("the server does not serve ranges")
    etag, generation = headers.get("etag", ""), headers.get("x-goog-generation")
    strong = etag if is_strong(etag) else None
    if strong is None and not generation:
        raise Unresumable("neither a strong ETag nor a generation says which object it is")
    return Part(first, last, total, strong, generation or None, encoding)


def _extent(status: int, headers: "Mapping[str, str]") -> tuple[int, int | None, int | None]:
    if status == 200:
        total = None if "transfer-encoding" in headers else number(headers.get("content-length", ""))
        return 0, None if total is None else total - 1, total
    if status != 206:
        raise Unresumable(f"{_status.reason(status)} is no download")
    part = parse(headers.get("content-range", ""))
    if part is None or part.first is None:
        raise Unresumable("the reply does not say which one range of bytes it has")
    return part.first, part.last, part.total


def verify(part: Part, received: int, status: int, headers: "Mapping[str, str]") -> int:
    """Check that a reply goes on with `part` exactly after `received` bytes; how many it will then be in all.

    `headers` has lower-case names. Raises Unresumable with the reason if it does not; its body must not be used then.
    """
    if status == 200:
        raise Unresumable("the server sent the whole object instead of the rest: it changed, or ranges are not served")
    if status != 206:
        raise Unresumable(f"the server answered {_status.reason(status)} instead of sending the rest")
    got = parse(headers.get("content-range", ""))
    if got is None or got.first != part.first + received:
        raise Unresumable(f"the rest does not begin at byte {part.first + received}")
    if part.total is not None and got.total not in (None, part.total):
        raise Unresumable(f"the object has {got.total} bytes now and had {part.total}")
    end = got.total - 1 if part.last is None and got.total is not None else part.last
    if end is None or got.last != end:
        raise Unresumable("the reply does not have all of the rest")
    _verify_object(part, headers)
    return end + 1 - part.first


def _verify_object(part: Part, headers: "Mapping[str, str]") -> None:
    etag, generation, encoding = (headers.get(name) for name in ("etag", "x-goog-generation", "content-encoding"))
    if part.etag is not None and etag not in (None, part.etag):
        raise Unresumable("the object has another ETag now")
    if part.generation is not None and generation not in (None, part.generation):
        raise Unresumable("the object has another generation now")
    same_bytes = part.etag is not None and etag is not None
    if not same_bytes and (part.generation is None or generation is None):
        raise Unresumable("the reply does not say of which object it is")
    # A strong ETag stands for one encoding; a generation does not.
    if (encoding or "") != part.encoding and not (same_bytes and encoding is None):
        raise Unresumable("the object comes in another encoding now")


def number(text: str) -> int | None:
    """A count of bytes, None where the text is none that anybody could mean."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
