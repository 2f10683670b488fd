"""Read what functions hold in variables: the responses to what they have sent, and what they reach from outside.

A function looks at a status and raises an error of its own, or does more with a response and fails then. Its frame
stands in the traceback, and the response is one of its variables, unless it came from outside. So may a connection.

No code of the user runs: instances are read by their dict and their slots, containers only if they are Python's own.
"""

import threading
from collections import deque
from contextvars import copy_context
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType

from forbear.core.chain import arguments_of, attributes_of
from forbear.core.report import SENT_BY_US
from forbear.evidence.look import IS_FUNCTION, NO_CALLERS, Look, client_of, list_stored
from forbear.evidence.sent import Sent, dict_of, get_own, package, request_of, top_of
from forbear.evidence.table import CLIENTS, FRAMES, HELD, reader
from forbear.http.request import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import FrameType, TracebackType
    from typing import Any

MOST_OBJECTS = 10_000
_MOST_ITEMS = 1000
_STEPS = 4
_HELPERS = 2
"""The steps within which the globals of functions count, too: those of helpers, and of helpers of helpers."""
_LEAVES = frozenset({str, int, float, bool, bytes, type(None), CodeType})
_CLOSED = frozenset({
    "asyncio", "dbutils", "forbear", "logging", "psycopg", "psycopg_pool", "pymongo", "pymysql", "sqlalchemy",
    "sqlite3",
})  # fmt: skip
"""Packages whose objects are not looked into: a pool holds what began in the attempt, and a table all other tables."""
_SCOPES = frozenset({"scoped_session", "async_scoped_session", "ScopedRegistry", "ThreadLocalRegistry"})
"""The classes of SQLAlchemy that hold a session for everybody."""

_SENDING = frozenset({
    "delete", "do", "fetch", "getresponse", "http_request", "open", "patch", "post", "put", "request", "send", "stream",
    "urlopen",
})  # fmt: skip
"""Names in the code of a function that sends a request itself."""
_USING = frozenset({
    "content", "getheader", "headers", "is_error", "is_success", "iter_bytes", "iter_content", "iter_lines", "json",
    "ok", "raise_for_status", "read", "reason", "status", "status_code", "text",
})  # fmt: skip
"""Names in the code of a function that uses a response."""
_RESPONSES = frozenset({"answer", "r", "reply", "ret"})
_METHODS = ("method", "verb", "http_method")
_PLACES = ("url", "uri", "path", "endpoint")
_ACTING = frozenset({"POST", "PATCH", "PUT", "DELETE"})
_MOST_ARGUMENTS = 10
_MOST_ATTRIBUTES = 20
_MOST_CODES = 5000
_MOST_FRAMES = 200
_MOST_VARIABLES = 1000

OF_CLIENT, _VARIABLES, _WORDS, _STORED = 1, 2, 4, 8
"""Bits for what is to be read of a function's frames: by the reader of a client; responses; method and URL; what it
stores in attributes and globals."""

codes: "dict[int, int]" = {}
"""The bits for the frames of a function, by the id of its code: 0 for nothing, as of most."""
_kept: "list[CodeType]" = []  # so that no other code gets the id of one


def learn(frame: "FrameType") -> int:
    """Return what is to be read of the frames of a function, and remember it.

    It is one of a client; or it names what sends, or a place for a response, or the method of a request.
    """
    code = frame.f_code
    found = codes.get(id(code))
    if found is not None:
        return found
    found = OF_CLIENT if code.co_name in FRAMES else 0
    if client_of(frame) not in NO_CALLERS:
        names = {*code.co_varnames, *code.co_cellvars}
        words, stored = {*code.co_names, *names}, list_stored(code)
        if not words.isdisjoint(_SENDING | _USING | _RESPONSES) or any("res" in name for name in (*names, *stored)):
            found |= _VARIABLES | (_STORED if stored else 0)
        if "-packages" in code.co_filename and any(name in names for name in _METHODS):
            found |= _WORDS
    if (count := len(_kept)) >= _MOST_CODES:
        codes.clear()
        del _kept[:count]
    codes[id(code)] = found  # before the next line: another thread may clear both in between
    _kept.append(code)
    return found


def read_variables(look: Look) -> None:
    """Read the responses among the variables of functions; if there are none, method and URL."""
    look.current = None
    frames = list(look.frames.items())[-_MOST_FRAMES:]
    found: dict[int, tuple[object, set[int]]] = {}
    for frame, kind in frames:
        if kind & _VARIABLES:
            values = list(islice(look.open(frame).values(), _MOST_VARIABLES))
            for name in list_stored(frame.f_code) if kind & _STORED else ():
                _find_responses(found, [frame.f_globals.get(name), *(get_own(each, name) for each in values)])
            _find_responses(found, values, in_objects=True)
    for response, holders in found.values():
        _read(look, response, holders, is_variable=True)
    if any(each.client == "http.client" and each.subject and each.method in READS for each in look.sent.values()):
        reader("urllib:before")(look, [frame for frame, _ in frames])
    for frame, kind in () if look.sent else reversed(frames):
        if kind & _WORDS and _read_words(look, frame):
            break


def read_kept(look: Look, error: BaseException) -> None:
    """Read the responses among what an error holds: its arguments, and attributes of any name.

    Of a client's own error, the frames show more.
    """
    if top_of(str(type(error).__module__)) not in CLIENTS:
        found: dict[int, tuple[object, set[int]]] = {}
        kept = islice(attributes_of(error).values(), _MOST_ATTRIBUTES)
        _find_responses(found, [*arguments_of(error)[:_MOST_ARGUMENTS], *kept])
        for response, holders in found.values():
            _read(look, response, holders, is_variable=False)


def _find_responses(
    found: "dict[int, tuple[object, set[int]]]", values: "list[object]", *, in_objects: bool = False
) -> None:
    """Find the responses among values, by the names of their classes and bases, also in lists, tuples and dicts.

    Each is added by its id, with the id of what tells where it is from: itself, or the object in whose attribute it is.
    """
    for value in values:
        waiting: list[tuple[object, object]] = [(value, None)]
        left = _MOST_VARIABLES
        while waiting and left:
            left -= 1
            each, holder = waiting.pop()
            kind = type(each)
            nature = _natures.get(kind)
            if nature is None:
                nature = _learn_nature(kind)
            if nature == _RESPONSE:
                found.setdefault(id(each), (each, set()))[1].add(id(each if holder is None else holder))
            elif nature == _CONTAINER:
                waiting += [(item, holder) for item in islice(_ITEMS[kind](each), left)]
            elif nature == _OBJECT and holder is None and in_objects:
                waiting += [(held, each) for held in islice(_list_held(each, kind, ()), left)]


_CONTAINER, _OBJECT, _RESPONSE = 1, 2, 3
_natures: "dict[type, int]" = {}


def _learn_nature(kind: type) -> int:
    """Find out whether an instance of a class is a response, or may hold one, and remember it."""
    if len(_natures) >= _MOST_CODES:
        _natures.clear()
    tops = {top_of(str(each.__module__)) for each in kind.__mro__[:-1]}
    is_closed = type in kind.__mro__ or kind in _PASSIVE or not tops.isdisjoint(CLIENTS)
    is_response = any(base.__name__.endswith("Response") for base in kind.__mro__)
    found = _RESPONSE if is_response else _CONTAINER if kind in _ITEMS else 0 if is_closed else _OBJECT
    _natures[kind] = found
    return found


_PASSIVE = _LEAVES | {FunctionType, MethodType, ModuleType, partial}
"""The kinds that hold nothing, or values of before: they are made with them."""

_SEQUENCES: "tuple[Any, ...]" = (list, tuple, set, frozenset, deque)
_VALUES: "Any" = vars(dict)["values"]
_ITEMS: "dict[type, Callable[[Any], Iterable[Any]]]" = {dict: _VALUES, **{each: each.__iter__ for each in _SEQUENCES}}
"""The methods of containers that run no code of a subclass."""


def _read(look: Look, response: object, holders: "set[int]", *, is_variable: bool) -> None:
    """Read a response; what knows no method is none to a request, or of a kind that nobody knows."""
    found = HELD.get(package(response))
    if found is None or _is_ours(response):
        return
    before = set(look.sent)
    try:
        reader(found)(look, BaseException(), response)
    except Exception as broken:
        look.add(id(response), Sent(package(response), "", "", unread=f"{type(broken).__name__} in its reader"))
        return
    for key in look.sent.keys() - before:
        sent = look.sent[key]
        sent.holders, sent.is_variable = holders, is_variable
        if not (sent.method or sent.hop):
            del look.sent[key]


def _is_ours(response: object) -> bool:
    """Return whether an adapter of ours has sent the request; then its ledger counts, which knows the user's word."""
    adapter = get_own(response, "connection")  # of requests
    return bool(get_own(response, SENT_BY_US)) or any(
        kind.__module__.startswith("forbear.") for kind in type(adapter).__mro__
    )


def _read_words(look: Look, frame: "FrameType") -> bool:
    """Read the method and the URL that a function of an SDK has as texts, and return whether it has.

    It raised its error after a response, and nothing else shows the request.
    """
    names = look.open(frame)
    method = next((names[name] for name in _METHODS if name in names), None)
    if type(method) is not str or method.upper() not in _ACTING:
        return False
    subject = request_of(method.upper(), next((names[name] for name in _PLACES if name in names), None))
    unread = "its URL is not known" if subject is None else None
    sent = Sent(client_of(frame), "http", method.upper(), subject, unread=unread)
    sent.holders, sent.is_variable = {id(frame)}, True
    look.add(id(frame), sent)
    return True


def reach(roots: "Iterable[Any]", names: "Collection[str]") -> "Iterator[Any]":
    """Yield what can be reached from `roots` in four steps, the nearest first, and at most MOST_OBJECTS.

    Of modules and classes only what has one of the `names` counts, those that code uses. Modules, what a thread keeps
    and the registries of SQLAlchemy are no step.
    """
    seen: dict[int, Any] = {}
    waiting, names = deque[tuple[object, int]]((root, 0) for root in roots), set(names)
    while waiting and len(seen) < MOST_OBJECTS:
        value, step = waiting.popleft()
        kind = type(value)
        if kind in _LEAVES or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if step < _HELPERS and kind is FunctionType and isinstance(value, FunctionType):
            names.update(value.__code__.co_names)
            waiting += ((each, step + 1) for each in _pick(value.__globals__, value.__code__.co_names))
        if kind is ModuleType or threading.local in kind.__mro__ or kind.__name__ in _SCOPES:
            waiting.extendleft((each, step) for each in _list_held(value, kind, names))
        elif step < _STEPS:
            waiting += ((each, step + 1) for each in _list_held(value, kind, names))


def find_roots(*traces: "TracebackType | None") -> "tuple[list[Any], set[str]]":
    """Return what the code of tracebacks can reach: globals that it names, and context variables; and those names."""
    places: dict[CodeType, Mapping[str, Any]] = {}
    for entry in traces:
        trace = entry
        while trace is not None:
            places[trace.tb_frame.f_code] = trace.tb_frame.f_globals
            trace = trace.tb_next
    values, names = list(copy_context().values()), set[str]()
    for code, known in places.items():
        is_function = code.co_flags & IS_FUNCTION  # a script's own variables are no others than its globals
        if is_function and top_of(str(known.get("__name__"))) not in _CLOSED:
            values += _pick(known, code.co_names)
            names.update(code.co_names)
    return values, names


def _list_held(value: "Any", kind: "Any", names: "Collection[str]") -> "list[Any]":
    """Return what a value of this class holds: items, attributes, cells."""
    for each, items_of in _ITEMS.items():
        if each in kind.__mro__:
            return [*islice(items_of(value), _MOST_ITEMS), *dict_of(value).values()]
    if threading.local in kind.__mro__:
        return list(threading.local.__getattribute__(value, "__dict__").values())  # those of this thread
    if kind is ModuleType:
        return _pick(dict_of(value), names)
    if kind is MethodType:
        return [value.__self__, value.__func__]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.values()]
    if kind is FunctionType:
        by_name: dict[str, Any] = value.__kwdefaults__ or {}
        return [*list_cells(value).values(), *by_name.values(), *dict_of(value).values(), *(value.__defaults__ or ())]
    if type in kind.__mro__:
        own: Mapping[str, Any] = type.__dict__["__dict__"].__get__(value)
        return _pick(own, names)
    if top_of(str(kind.__module__)) in _CLOSED and kind.__name__ not in _SCOPES:
        return []
    held = list(dict_of(value).values())
    for each in kind.__mro__[:-1]:
        held += _pick(each.__dict__, names)
        if "__slots__" in each.__dict__:
            held += _list_slots(value, each)
    return held


def _pick(known: "Mapping[str, Any]", names: "Collection[str]") -> "list[Any]":
    return [known[name] for name in names if name in known]


def _list_slots(value: object, kind: type) -> "list[Any]":
    found: list[Any] = []
    for slot in list(kind.__dict__.values()):
        if type(slot) is MemberDescriptorType:
            try:
                found.append(slot.__get__(value))
            except AttributeError:
                continue
    return found


def list_cells(function: "Any") -> "dict[str, Any]":
    """Return the values of the cells that are filled, by their names."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _is_filled(cell: "Any") -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
