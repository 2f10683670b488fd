"""Vouching: the user's word that a request may be executed twice, or that a status means it was not executed.

The tables judge strictly. `vouched` raises their judgement where the user said so for the method and origin of a
request, by patterns such as "POST https://api.example.com/v1/search*" or by a predicate.
"""

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from forbear.core.record import Record
from forbear.http.request import Request, method_overrides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forbear.core.service import Judgement

    Origin = tuple[str, str, int]
    Safe = str | Iterable[str] | Callable[[Request], bool]
    Refusals = Iterable[int] | Callable[[int, Mapping[str, str]], bool]
    NotExecuted = Mapping[str, Refusals]

_EXAMPLE = '"POST https://api.example.com/v1/search*"'
_TOKEN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'+-.^_`|~")
_DECODINGS = 3
"""How often a server and the proxies before it may decode a path."""


class Vouch(Record):
    """The user's word for one adapter, from its options `safe` and `not_executed`.

    - `safe`: the requests that may be executed twice. A pattern, several, or a function that takes the `Request`.
    - `not_executed`: the responses by which an origin refuses requests before it executes them, by origin. Statuses, or
      a function that takes the status and the headers (lower-case names): {"https://api.example.com": [429]}.

    TypeError or ValueError for wrong ones.
    """

    __slots__ = ("safe", "not_executed")

    safe: "tuple[Pattern, ...] | Callable[[Request], bool]"
    not_executed: "Mapping[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]]"

    def __init__(self, safe: "Safe" = (), not_executed: "NotExecuted | None" = None) -> None:
        self._set(safe=safe if callable(safe) else patterns(safe))
        self._set(not_executed={} if not_executed is None else _refusals_by_origin(not_executed))

    def is_refusal(self, judgement: "Judgement", request: Request, status: int, headers: "Mapping[str, str]") -> bool:
        """Return whether a response (status of 400 or more) means that the request was not executed.

        Never for batches, of which a part may have been executed, and for requests of upload sessions.
        """
        refusals = self.not_executed.get(request.origin) if self.not_executed else None
        if refusals is None or judgement.refused is not None or judgement.session or not _is_for_its_host(request):
            return False
        if not callable(refusals):
            return status in refusals
        return _flag("not_executed", refusals(status, headers))


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
        origin, path, query = _parts(text, url, parameter)
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


def patterns(safe: "str | Iterable[str]", parameter: str = "safe") -> tuple[Pattern, ...]:
    """Return the patterns in `safe`, one or several; TypeError or ValueError naming `parameter` for wrong ones."""
    listed = [safe] if isinstance(safe, str) else safe
    try:
        return tuple(Pattern(text, parameter) for text in listed)
    except TypeError as error:
        if "not iterable" not in str(error):
            raise
        raise TypeError(
            f"`{parameter}` must be a pattern such as {_EXAMPLE}, several of them, or a function of the request; "
            f"got {safe!r}"
        ) from None


def covers(patterns: "Iterable[Pattern]", request: Request) -> bool:
    """Return whether patterns cover a request: its method and every method of an override header.

    Nothing covers a request whose Host header differs from the host of its URL.
    """
    if not _is_for_its_host(request):
        return False
    origin, listed = request.origin, tuple(patterns)
    methods = {request.method, *method_overrides(request.headers)}
    return all(any(pattern.covers(method, origin, request.target) for pattern in listed) for method in methods)


def vouched(judgement: "Judgement", request: Request, vouch: Vouch) -> "Judgement":
    """Return the judgement, repeatable and `vouched` if the user vouches for the request; else return it as it is.

    A vouch only ever raises `repeatable`. It does not apply to batches and the like, which are refused, nor to requests
    of upload sessions. TypeError if a function of the user returns no bool.
    """
    safe = vouch.safe
    if safe == () or judgement.repeatable or judgement.refused is not None or judgement.session:
        return judgement
    covered = covers(safe, request) if isinstance(safe, tuple) else _flag("safe", safe(request))
    return judgement.replace(repeatable=True, vouched=True) if covered else judgement


def _flag(parameter: str, answer: object) -> bool:
    """Return the answer of the user's function for `parameter`; TypeError if it is no bool."""
    if not isinstance(answer, bool):
        raise TypeError(f"`{parameter}` must return True or False, got {answer!r}")
    return answer


def _is_for_its_host(request: Request) -> bool:
    """Return whether the Host header, if there is one, names the host of the URL: either might decide who answers."""
    host = request.headers.get("host")
    return host is None or Request("", host, "", scheme=request.scheme).origin == request.origin


def _refusals_by_origin(
    listed: "NotExecuted",
) -> "dict[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]]":
    """Return `not_executed` with origins as in `Request.origin`; TypeError or ValueError for wrong ones."""
    rule = '`not_executed` must map origins to statuses, such as {"https://api.example.com": [429]}'
    try:
        items: list[tuple[object, Refusals]] = [*listed.items()]
    except AttributeError:
        raise TypeError(f"{rule}; got {listed!r}") from None
    refusals: dict[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]] = {}
    for url, statuses in items:
        if not isinstance(url, str) or "*" in url:
            raise TypeError(f"{rule}; got the origin {url!r}")
        origin, path, query = _parts(url, url if url.count("/") > 2 else f"{url}/", "not_executed")
        if path != "/" or query is not None:
            raise ValueError(f"{rule}, without a path; got {url!r}")
        if callable(statuses):
            refusals[origin] = statuses
            continue
        refusals[origin] = _statuses(statuses, rule)
    return refusals


def _statuses(listed: object, rule: str) -> frozenset[int]:
    """Return the listed statuses; TypeError or ValueError that states the rule for wrong ones."""
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"{rule}; got the statuses {listed!r}")
    statuses = set[int]()
    for status in listed:
        if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status <= 599:
            raise ValueError(f"{rule} from 400 to 599; got {status!r}")
        statuses.add(status)
    return frozenset(statuses)


def _words(text: object, parameter: str) -> tuple[str, str]:
    """Return the method and the URL of a pattern's text."""
    if not isinstance(text, str):
        raise TypeError(f"`{parameter}` must hold patterns such as {_EXAMPLE}, got {text!r}")
    method, space, url = text.partition(" ")
    if not space or not method or not _TOKEN.issuperset(method):
        raise ValueError(
            f"`{parameter}` must hold patterns of a method in upper case, a space and a URL, such as {_EXAMPLE}; "
            f"got {text!r}"
        )
    return method, url


def _parts(text: str, url: str, parameter: str) -> tuple[tuple[str, str, int], str, str | None]:
    """Return origin, path and query (None without one) of the URL of a pattern."""

    def wrong(rule: str) -> ValueError:
        return ValueError(f"`{parameter}` must hold patterns {rule}; got {text!r}")

    if not url.isascii() or not url.isprintable() or " " in url:
        raise wrong("as they go over the wire: ASCII, with %XX for any other character and xn-- names for hosts")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise wrong(f"with a valid URL ({error})") from None
    if parts.scheme not in ("http", "https") or not host:
        raise wrong("whose URL begins with http:// or https:// and a host")
    if "*" in parts.netloc or "@" in parts.netloc:
        raise wrong("whose host is written out, without `*`, user and password")
    if "#" in url:
        raise wrong("without a fragment (#), which is never sent")
    if not parts.path:
        raise wrong('with a path; "/" is the root')
    if "**" in url:
        raise wrong("in which `*` stands for one segment of the path; write one pattern for each depth")
    path, mark, query = url[url.index(parts.netloc) + len(parts.netloc) :].partition("?")
    if any(map(_is_ambiguous, path.split("/"))):
        raise wrong("without dot segments, encoded slashes and backslashes in the path")
    return Request("", host, "", scheme=parts.scheme, port=port).origin, path, query if mark else None


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


NO_VOUCH = Vouch()
"""The word of a user who vouches for nothing."""
