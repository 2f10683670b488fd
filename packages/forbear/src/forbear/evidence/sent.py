"""`Sent`, one request that an error shows; `get_own` and `was_read` run no user code."""

from functools import lru_cache
from io import BufferedRandom, BufferedReader, BytesIO, FileIO, StringIO, TextIOWrapper
from itertools import islice
from operator import itemgetter
from types import AsyncGeneratorType, GeneratorType, GetSetDescriptorType, MemberDescriptorType

from forbear.core.check import is_mapping
from forbear.core.dataclass import dataclass
from forbear.http.request import Request, join_headers, join_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

MOST_BODY = 64 * 1024
"""The bytes of a body that are read; a longer one counts as not known."""
MOST_HEADERS = 200
LONGEST_URL = 8192
UNEXECUTED = frozenset({307, 308})
"""Redirects that ask for the same request elsewhere: it was not executed here (RFC 9110, 15.4.8 and 15.4.9)."""


@dataclass(slots=True)
class Sent:
    """One request that an error shows.

    - `client` is the library that sent it ("httpx"), and `protocol` what it speaks: "http", "redis", "sql", "aws" or
      "grpc"; "named" stands for all that are known by a name only.
    - `method` is the HTTP method, the name of the RPC, the command, the operation ("dynamodb.PutItem") or the first
      word of the statement; "" if it is not known.
    - `subject` is the request in the form that its service judges: a `Request`, commands, a `Statement`, an `AwsCall`,
      a `GrpcCall` or a `NamedCall`. None if only the method is known.
    - `unread` says why the request could not be read, None if it was.
    - `unsent` is True if the error proves that no byte of it reached a server, False if one may have, None if no error
      says anything about it, which counts as False.
    - `service` is the service whose own client sent it, None for other clients.
    - `operation` is the SDK's own name of the request and the parameters that decide about it, None without an SDK.
    - `hop` is True for a request that was answered by a redirect; one of UNEXECUTED has executed nothing.
    - `status` is the HTTP status of its response, None without one.
    - `holders` has the ids of what holds the response that shows the request, if no client raised the error: that of
      the response if a variable of the failed function has it (`is_variable`), or an error of the user's, and those of
      objects with such an attribute. None for all else.
    - `watched` is True for commands that depend on a WATCH before them.
    - `cure` says what to do if it could not be read, None for the usual.
    - `streams` has what can be read once only in its body, or near it. `rewound`: its client begins them anew.

    It has bodies and headers, so it must not outlive the judgement.
    """

    client: str
    protocol: str
    method: str
    subject: "Any" = None
    unread: str | None = None
    unsent: bool | None = None
    hop: bool = False
    status: int | None = None
    service: str | None = None
    operation: "tuple[str, dict[str, Any]] | None" = None
    holders: "set[int] | None" = None
    is_variable: bool = False
    watched: bool = False
    cure: str | None = None
    streams: tuple[object, ...] = ()
    rewound: bool = False

    def __post_init__(self) -> None:
        if self.unread is None and self.subject is None and self.protocol == "http":
            self.unread = "its URL is not known"

    def __repr__(self) -> str:
        """Return client and method; all else may be secret."""
        return f"Sent({self.client!r}, {self.protocol!r}, {self.method!r})"

    @property
    def resource(self) -> str:
        """The URL without query and user, the operation or the command, for notes."""
        return self.subject.resource if isinstance(self.subject, Request) else ""


@dataclass(slots=True)
class Statement:
    """A statement of SQL, as a driver or SQLAlchemy has it.

    - `text` is the statement, "" if it is not known; "COMMIT" for the end of a transaction.
    - `autocommit` is True if each statement commits by itself, None if it is not known.
    - `connection` is the id of the connection and of what leads to it: cursor, session.
    - `still_open` is True if a transaction is open although the function has failed: it began outside, or a repeat
      would go on with it.
    - `unchanged` is True if the connection has not changed a row since it was opened.
    """

    text: str
    autocommit: bool | None
    connection: tuple[int, ...] = ()
    still_open: bool = False
    unchanged: bool = False


@dataclass(slots=True)
class AwsCall:
    """A call of an operation of AWS: its full name, "dynamodb.PutItem", botocore's model of it, and the parameters.

    The parameters are {} if they are not known.
    """

    operation: str
    model: "Any"
    parameters: "dict[str, Any]"


@dataclass(slots=True)
class NamedCall:
    """A call that its name stands for, such as "kafka.Produce", and the parameters that decide about it."""

    name: str
    parameters: "dict[str, Any]"


def get_own(thing: object, name: str) -> "Any":
    """Return what the instance itself keeps as `name`, None without it; no property and no method is run."""
    kept = dict_of(thing)
    return kept[name] if name in kept else _read_slot(thing, name)


def _read_slot(thing: object, name: str) -> "Any":
    for kind in type(thing).__mro__:
        slot = kind.__dict__.get(name)
        if type(slot) is MemberDescriptorType:
            try:
                return slot.__get__(thing)
            except AttributeError:
                return None
    return None


_own: "dict[type, Callable[[object], dict[str, Any]]]" = {}
_MOST_KINDS = 1000


def dict_of(thing: object) -> "dict[str, Any]":
    """Return the dict of attributes that an instance keeps, {} without one; no property called `__dict__` is run."""
    kind = type(thing)
    return (_own.get(kind) or _find_dict(kind))(thing)  # one look: another thread may clear it


def _find_dict(kind: type) -> "Callable[[object], dict[str, Any]]":
    """Return the function that reads the dict of an instance of a class, and remember it."""
    if len(_own) >= _MOST_KINDS:
        _own.clear()
    descriptor: Any = next((each.__dict__["__dict__"] for each in kind.__mro__ if "__dict__" in each.__dict__), None)
    is_real = type(descriptor) in (GetSetDescriptorType, MemberDescriptorType)
    found = _own[kind] = descriptor.__get__ if is_real else lambda _: {}
    return found


def classes_of(thing: object) -> "tuple[type, ...]":
    """Return the class of an instance and its bases, of a class itself and its bases; `object` is not among them."""
    kind = type(thing)
    mro: tuple[type, ...] = _MRO.__get__(thing) if type in kind.__mro__ else kind.__mro__
    return mro[:-1]


_MRO: "Any" = vars(type)["__mro__"]


def package(thing: object) -> str:
    """Return the top package of the class of `thing`, "httpx" for an httpx.Request; that of a known base is first."""
    own_name = top_of(str(type(thing).__module__))
    if own_name == "builtins" or own_name in _LIBRARIES:  # most errors, whose bases are builtins, too
        return own_name
    for kind in type(thing).__mro__:
        name = top_of(str(kind.__module__))
        if name in _LIBRARIES:
            return name
    return own_name


@lru_cache(maxsize=512)
def top_of(module: str) -> str:
    """Return the top package of a module by its name."""
    return module.partition(".")[0]


_LIBRARIES = frozenset({
    "httpx", "httpx2", "requests", "urllib3", "aiohttp", "yarl", "grpc", "botocore", "multidict", "niquests", "redis",
    "twilio", "valkey",
})  # fmt: skip


def request_of(
    method: object, url: object, headers: "dict[str, str] | None" = None, body: bytes | None = b""
) -> Request | None:
    """Return the request with this method and URL, None if one of them is no text."""
    if type(method) is not str or type(url) is not str or len(url) > LONGEST_URL:
        return None
    scheme, mark, rest = url.partition("://")
    if not mark:
        return None
    before, question, query = (rest.partition("#")[0] if "#" in rest else rest).partition("?")
    host, _, path = before.partition("/")
    if "@" in host:
        host = host.rpartition("@")[2]
    return Request(method, host, f"/{path}{question}{query}", headers, body, scheme.lower())


def headers_of(headers: object) -> "dict[str, str]":
    """Return headers with lower-case names: of a dict, or of a mapping of the client's own library.

    A list has the lines that such a mapping keeps, each with name and value at its end.
    """
    if headers is None:
        return {}
    if type(headers) is list:
        return join_lines(map(_LAST_TWO, headers[:MOST_HEADERS]))  # pyright: ignore[reportUnknownArgumentType]
    if type(headers) is not dict and package(headers) not in _MAPPINGS:
        return {}
    return join_headers(headers, MOST_HEADERS)  # type: ignore[arg-type]


_LAST_TWO = itemgetter(slice(-2, None))
_MAPPINGS = frozenset({
    "azure", "botocore", "email", "http", "httpx", "httpx2", "multidict", "niquests", "requests", "urllib3",
})  # fmt: skip


def body_of(body: object) -> bytes | None:
    """Return a body as bytes: b"" for None; None if it is no bytes or text, or too long."""
    if body is None:
        return b""
    if type(body) is str:
        body = body.encode("utf-8", "surrogatepass") if len(body) <= MOST_BODY else body
    if (type(body) is bytes or type(body) is bytearray) and len(body) <= MOST_BODY:
        return bytes(body)
    return None


WHOLE = frozenset({bytes, str, bytearray, memoryview, int, float, bool, type(None)})
_LISTS = frozenset({dict, list, tuple})
_READERS = frozenset({"read", "__next__", "__anext__"})
_BUFFERED = frozenset({BufferedReader, BufferedRandom})
_FILES = frozenset({*_BUFFERED, FileIO, BytesIO, StringIO})
GENERATORS = frozenset({GeneratorType, AsyncGeneratorType})
SOURCES = frozenset({*_BUFFERED, *GENERATORS, FileIO, BytesIO, TextIOWrapper})
_MOST = 20
_LEVELS = 3
"""The levels of wrappers in which a stream may lie, such as a progress bar around a file; boto3 has two."""


def list_streams(*bodies: object) -> tuple[object, ...]:
    """Return what can be read once only among bodies, in lists and dicts of them, and in what wraps it."""
    if WHOLE.issuperset(map(type, bodies)):  # most bodies
        return ()
    return tuple(_find_streams(bodies, _LEVELS))


def _find_streams(things: "Iterable[object]", levels: int) -> "Iterator[object]":
    for thing in list(islice(things, _MOST)):
        kind = type(thing)
        if kind in WHOLE:
            continue
        if kind not in _LISTS and is_stream(thing):
            yield thing
        if levels:
            held: Any = thing if kind in _LISTS else dict_of(thing)
            yield from _find_streams(held.values() if is_mapping(held) else held, levels - 1)


def is_stream(thing: object) -> bool:
    """Return whether `thing` can be read once only, by what it is; no code of it runs."""
    if is_helper(thing) or "read" in dict_of(thing):
        return True
    return any(not _READERS.isdisjoint(each.__dict__) for each in type(thing).__mro__)


def is_helper(thing: object) -> bool:
    """Return whether `thing` is a temporary file, or a reader of csv, which have classes of their own."""
    return type(thing).__module__ in ("tempfile", "_csv")


def was_read(thing: object) -> bool:
    """Return whether something of a stream may have been read. Only Python's own files and generators can say no.

    A pipe cannot be asked: `tell` would wait for another thread that reads it.
    """
    if type(thing).__module__ == "_csv":
        return getattr(thing, "line_num", 0) > 0
    if is_helper(thing):
        thing = get_own(thing, "file") or get_own(thing, "_file")
    kind = type(thing)
    stream: Any = thing
    if kind is GeneratorType:
        return stream.gi_running or stream.gi_suspended or stream.gi_frame is None
    if kind is AsyncGeneratorType:
        return bool(stream.ag_running or stream.ag_frame is None or getattr(stream, "ag_suspended", True))  # 3.12
    try:
        if kind is TextIOWrapper:
            return was_read(stream.buffer)
        if kind not in _FILES or (kind in _BUFFERED and type(stream.raw) is not FileIO):
            return True
        return not stream.seekable() or stream.tell() > 0
    except (OSError, ValueError):  # it is closed
        return True
