"""Patterns by which users vouch for requests: a method and a URL, "POST https://api.example.com/v1/search*"."""

from forbear.core.check import list_values
from forbear.core.record import Record
from forbear.core.service import OperationSet
from forbear.http.request import Request, find_similar_method, method_overrides
from forbear.text.redact import HIDDEN, hide, printable, without_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Origin = tuple[str, str, int]

EXAMPLE = '"POST https://api.example.com/v1/search*"'
_TOKEN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'+-.^_`|~")
_DECODINGS = 3
"""The most times that a server and the proxies before it decode a path."""

FILL = "<fill in>"
"""The mark of a secret in a suggested pattern; a pattern with it is refused."""

_LONGEST_WORD = 24


class Pattern(Record):
    """A method and a URL: "POST https://api.example.com/v1/search*" covers the requests that are equal to it.

    `*` stands for any characters of one segment of the path: it stops at "/", and a segment of its own is never empty.
    A request with a query is covered only by a pattern with a query, where `*` stands for any characters. Method, path
    and query are compared as they go over the wire. A path that a server might read in another way is never covered:
    dot segments, and encoded slashes and backslashes.
    """

    __slots__ = ("text", "method", "origin", "segments", "query")

    text: str
    method: str
    origin: tuple[str, str, int]
    segments: tuple[tuple[str, ...], ...]
    query: tuple[str, ...] | None

    def __init__(self, text: str, parameter: str = "safe") -> None:
        method, url = _words(text, parameter)
        origin, path, query = parts(text, url, parameter)
        segments = tuple(tuple(segment.split("*")) for segment in path.split("/"))
        self._set(text=text, method=method, origin=origin, segments=segments)
        self._set(query=None if query is None else tuple(query.split("*")))

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("text",)  # the others follow from it

    def covers(self, method: str, origin: tuple[str, str, int], target: str) -> bool:
        """Return whether this pattern covers a method, an origin, and a raw path with its query."""
        if method != self.method or origin != self.origin:
            return False
        path, mark, query = target.partition("?")
        if (self.query is None) is bool(mark) or (self.query is not None and not _matches(self.query, query)):
            return False
        segments = path.split("/", len(self.segments))  # one more than needed is enough to differ
        return len(segments) == len(self.segments) and all(map(_covers, self.segments, segments))


Cover = Pattern | OperationSet
"""A pattern or a named set, which may vouch for a request."""


def patterns(safe: "str | Iterable[str]", parameter: str = "safe") -> tuple[Cover, ...]:
    """Return the patterns in `safe`, one or several; TypeError or ValueError naming `parameter` for wrong ones."""
    rule = f"`{parameter}` must be a pattern such as {EXAMPLE}, several of them, or a function of the request"
    listed = list_values(safe, rule)
    return tuple(text if isinstance(text, OperationSet) else Pattern(text, parameter) for text in listed)


def covers(covering: "Iterable[Cover]", request: object) -> bool:
    """Return whether patterns cover a request: its method and every method of an override header.

    A named set may hold it, or what is no request of HTTP. No pattern covers a request whose Host header differs from
    the host of its URL.
    """
    every = tuple(covering)
    if not every:
        return False
    if any(isinstance(each, OperationSet) and each(request) for each in every):
        return True
    listed = [each for each in every if isinstance(each, Pattern)]
    if not listed or not isinstance(request, Request) or not is_for_its_host(request):
        return False
    origin = request.origin
    methods = {request.method, *method_overrides(request.headers)}
    return all(any(pattern.covers(method, origin, request.target) for pattern in listed) for method in methods)


def suggest_patterns(request: Request) -> tuple[str, ...]:
    """Return patterns that cover a request and no other, () if no pattern can.

    What may be a secret is `<fill in>`, which users replace: whatever reports hide, long segments, and queries.
    There is a pattern for the method, and one for each other method that an override header names.

    >>> suggest_patterns(Request("POST", "api.example.com", "/search"))
    ('POST https://api.example.com/search',)
    """
    scheme, host, port = request.origin
    origin = f"{scheme}://{f'[{host}]' if ':' in host else host}"
    if port != (80 if scheme == "http" else 443):
        origin += f":{port}"
    methods = tuple(dict.fromkeys((request.method, *method_overrides(request.headers))))
    try:
        literal = patterns(f"{method} {origin}{request.target}" for method in methods)
    except ValueError:
        return ()
    if "*" in request.target or not covers(literal, request):
        return ()
    path, mark, query = request.target.partition("?")
    shown = hide(printable(f"{host}{path}")).partition(HIDDEN)[0].removeprefix(host)
    known = len(path.split("/")) if shown == path else shown.count("/")
    segments = [_hide_secret(each) if at < known else each and FILL for at, each in enumerate(path.split("/"))]
    url = origin + "/".join(segments) + mark + (query and FILL)
    return tuple(f"{method} {url}" for method in methods)


def _hide_secret(segment: str) -> str:
    """Return a segment of a path with `<fill in>` in place of its parts, divided by colons, that are long."""
    return ":".join(part if len(part) <= _LONGEST_WORD else FILL for part in segment.split(":"))


def is_for_its_host(request: Request) -> bool:
    """Return whether the Host header, if there is one, names the host of the URL: either might decide who answers."""
    host = request.headers.get("host")
    return host is None or Request("", host, "", scheme=request.scheme).origin == request.origin


def _words(text: object, parameter: str) -> tuple[str, str]:
    if not isinstance(text, str):
        raise TypeError(f"`{parameter}` must hold patterns such as {EXAMPLE}, got {without_user(repr(text))}")
    method, space, url = text.partition(" ")
    if not space or not method or not _TOKEN.issuperset(method):
        raise ValueError(
            f"`{parameter}` must hold patterns of a method in upper case, a space and a URL, such as {EXAMPLE}; "
            f"got {without_user(text)!r}"
        )
    near = find_similar_method(method)
    if near is not None:
        raise ValueError(
            f"`{parameter}` must hold patterns with a method of HTTP; got {without_user(text)!r}, did you mean {near}?"
        )
    return method, url


def parts(text: str, url: str, parameter: str) -> tuple[tuple[str, str, int], str, str | None]:
    """Return origin, path and query (None without one) of the URL of a pattern."""

    def wrong(rule: str) -> ValueError:
        return ValueError(f"`{parameter}` must hold patterns {rule}; got {without_user(text)!r}")

    if FILL in url:
        raise wrong(f"without {FILL}: write what your URL has there, or `*` for anything")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise wrong("as they go over the wire: ASCII, with %XX for any other character and xn-- names for hosts")
    from urllib.parse import urlsplit  # expensive to import, and only for those who vouch

    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError as error:
        raise wrong(f"with a valid URL ({error})") from None
    if split.scheme not in ("http", "https") or not host:
        raise wrong("whose URL begins with http:// or https:// and a host")
    if "*" in split.netloc or "@" in split.netloc:
        raise wrong("whose host is written out, without `*`, user and password")
    if "#" in url:
        raise wrong("without a fragment (#), which is never sent")
    if not split.path:
        raise wrong('with a path; "/" is the root')
    if "**" in url:
        raise wrong("in which `*` stands for one segment of the path; write one pattern for each depth")
    path, mark, query = url[url.index("//") + 2 + len(split.netloc) :].partition("?")
    if any(map(_is_ambiguous, path.split("/"))):
        raise wrong("without dot segments, encoded slashes and backslashes in the path")
    return Request("", host, "", scheme=split.scheme, port=port).origin, path, query if mark else None


def origin_of(url: object, rule: str) -> "Origin":
    """Return the origin of a URL without a path, as `Request.origin` does; TypeError or ValueError for other values."""
    if not isinstance(url, str):
        raise TypeError(f"{rule}; got the origin {url!r}")
    try:
        origin, path, query = parts(url, url if url.count("/") > 2 else f"{url}/", "")
    except ValueError:
        raise ValueError(f"{rule}; got the origin {without_user(url)!r}") from None
    if path != "/" or query is not None:
        raise ValueError(f"{rule}, without a path; got {url!r}")
    return origin


def _covers(pieces: tuple[str, ...], segment: str) -> bool:
    """Return whether one segment of a path equals the `pieces` with any characters between them."""
    if pieces == ("", "") and not segment:
        return False
    return _matches(pieces, segment) and not _is_ambiguous(segment)


def _matches(pieces: tuple[str, ...], text: str) -> bool:
    """Return whether `text` equals the `pieces` with any characters between them, in linear time."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return text == first
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in pieces[1:-1]:
        position = text.find(piece, position, end)
        if position < 0:
            return False
        position += len(piece)
    return True


def _is_ambiguous(segment: str) -> bool:
    """Return whether a server may read a segment as another path, after it decoded it up to three times."""
    from urllib.parse import unquote

    for _ in range(_DECODINGS):
        if "/" in segment or "\\" in segment or "\0" in segment or "\ufffd" in segment:
            return True
        if segment.partition(";")[0] in (".", ".."):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True
