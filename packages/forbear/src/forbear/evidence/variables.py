"""Read what functions hold in variables: the responses to what they have sent, and what they reach from outside.

A function looks at a status and raises an error of its own, or does more with a response and fails then. Its frame
stands in the traceback, and the response is one of its variables, unless it came from outside. So may a connection.

No code of the user runs: instances are read by their dict and their slots, containers only if they are Python's own.
"""

from functools import cached_property, partial
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType

from forbear.core.chain import arguments_of, attributes_of
from forbear.core.report import SENT_BY_US, report_on
from forbear.evidence.look import NO_CALLERS, Look, client_of, space_of
from forbear.evidence.objects import (
    IS_FUNCTION,
    LEAVES,
    PARTS,
    codes_within,
    dict_of_slots,
    list_held,
    list_near,
    list_stored,
    pick,
)
from forbear.evidence.sent import Sent, dict_of, get_own, package, request_of, top_of
from forbear.evidence.table import CLIENTS, FRAMES, HELD, reader
from forbear.http.request import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

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
_KEEPING = frozenset({
    "add", "append", "appendleft", "extend", "insert", "put", "put_nowait", "set", "setdefault", "update",
})  # fmt: skip
"""Methods by which a function puts a response into a list, a dict, a queue or a context variable."""
_CALLED = ("__aenter__", "__call__", "__enter__")
"""Methods that are called without their names."""
_METHODS = ("method", "verb", "http_method")
_PLACES = ("url", "uri", "path", "endpoint")
_ACTING = frozenset({"POST", "PATCH", "PUT", "DELETE"})
_MOST_ATTRIBUTES = 20
_MOST_CODES = 5000
_MOST_FRAMES = 200
_MOST_VARIABLES = 1000

OF_CLIENT, _VARIABLES, _WORDS = 1, 2, 4
"""Bits for what is to be read of a function's frames: by the reader of a client; responses; method and URL."""

codes: "dict[int, int]" = {}
"""The bits for the frames of a function, by the id of its code: 0 for nothing, as of most."""
_stored: "dict[int, set[str]]" = {}
"""The names of the attributes and globals to which a function or its helpers store, by the id of its code."""
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
    stored: set[str] = set()
    if client_of(frame) not in NO_CALLERS:
        names = {*code.co_varnames, *code.co_cellvars}
        stored = _list_places(code)
        used = {name for each in (code, *codes_within(code)) for name in each.co_names}
        has_place = any("res" in name for name in (*names, *stored))
        helpers = [each for each in _list_helpers(frame, used) if not _SENDING.isdisjoint(each.co_names)]
        if helpers or has_place or not (names | used).isdisjoint(_SENDING | _USING | _RESPONSES):
            found |= _VARIABLES
            stored.update(*map(_list_places, helpers))
        if "-packages" in code.co_filename and any(name in names for name in _METHODS):
            found |= _WORDS
    if (count := len(_kept)) >= _MOST_CODES:
        codes.clear()
        _stored.clear()
        del _kept[:count]
    _stored[id(code)] = stored
    codes[id(code)] = found  # before the next line: another thread may clear both in between
    _kept.append(code)
    return found


def _list_places(code: "CodeType") -> "set[str]":
    """Return the names of the attributes and globals that code stores to; all variables of a script are globals.

    If it stores an item, or appends one, it may have done so to whatever it names.
    """
    found = list_stored(code)
    return set(code.co_names) if "" in found or not _KEEPING.isdisjoint(code.co_names) else found


def _list_helpers(frame: "FrameType", names: "set[str]") -> "Iterator[CodeType]":
    """Yield the code of the functions that a function names: also methods of its variables, and of what they hold.

    A function that is a variable may be another one at the next call, and has a frame of its own if it fails.
    """
    look = Look()
    values = [each for each in islice(look.open(frame).values(), _MOST_VARIABLES) if type(each) not in _WRAPPERS]
    look.close()
    for value in list_near([*values, *pick(frame.f_globals, names)], {*names, *_CALLED}, 2):
        yield from _unwrap(value)


def _unwrap(function: "Any") -> "Iterator[CodeType]":
    """Yield the code of a function of the user, of those that it wraps, and of those that it names."""
    for _ in range(10):
        if type(function) is FunctionType and top_of(str(function.__module__)) not in NO_CALLERS:
            yield function.__code__
            named = pick(function.__globals__, function.__code__.co_names)
            yield from (each.__code__ for each in named if type(each) is FunctionType)
        elif type(function) not in _WRAPPERS:
            return
        function = getattr(function, _WRAPPERS[type(function)], None)


_WRAPPERS: "dict[type, str]" = {
    FunctionType: "__wrapped__", MethodType: "__func__", classmethod: "__func__", staticmethod: "__func__",
    property: "fget", cached_property: "func", partial: "func",
}  # fmt: skip
"""The attribute in which Python's own wrappers have the function; reading it runs no code of the user."""


def read_variables(look: Look, read_error: "Callable[[Any], None]") -> None:
    """Read the responses and errors among the variables of functions; if there are none, method and URL."""
    look.current = None
    frames = list(look.frames.items())[-_MOST_FRAMES:]
    found: dict[int, tuple[object, set[int]]] = {}
    for frame, kind in frames:
        if kind & _VARIABLES:
            code, values = frame.f_code, list(islice(look.open(frame).values(), _MOST_VARIABLES))
            if stored := _stored.get(id(code)):
                named = pick(space_of(frame), code.co_names)
                values = values if code.co_flags & IS_FUNCTION else named
                near = list_near([*values, *named], code.co_names, 1)
                spaces = [dict_of(each) or dict_of_slots(each) for each in near if _nature_of(each) >= _OBJECT]
                _find_responses(found, [held for space in (space_of(frame), *spaces) for held in pick(space, stored)])
            _find_responses(found, values)
    for value, holders in found.values():
        if _nature_of(value) != _ERROR:
            _read(look, value, holders, is_variable=True)
        elif report_on(value) is None:
            _read(look, value, holders, is_variable=True, read_error=read_error)
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
        _find_responses(found, [*arguments_of(error), *attributes_of(error).values()][:_MOST_ATTRIBUTES], _LEVELS)
        for response, holders in found.values():
            _read(look, response, holders, is_variable=False)


def _find_responses(found: "dict[int, tuple[object, set[int]]]", values: "list[object]", level: int = 0) -> None:
    """Find the responses among values, by the names of their classes and bases, also in containers and objects.

    Each is added by its id, with the id of what tells where it is from: itself, or the object in whose attribute it is.
    `level` is that of the values, of the levels of objects.
    """
    for value in values:
        if _natures.get(type(value)) == 0:
            continue  # most hold nothing
        waiting: list[tuple[object, object, int]] = [(value, None, level)]
        left = _MOST_VARIABLES
        while waiting and left:
            left -= 1
            each, holder, level_here = waiting.pop()
            kind = type(each)
            nature = _natures.get(kind)
            if nature is None:
                nature = _nature_of(each)
            if nature == _RESPONSE or (nature == _ERROR and level < _LEVELS):
                found.setdefault(id(each), (each, set()))[1].add(id(each if holder is None else holder))
            elif nature == _CONTAINER:
                waiting += [(item, holder, level_here) for item in islice(PARTS[kind](each), left)]
            elif nature == _OBJECT and level_here < _LEVELS:
                first = each if holder is None else holder
                most = _MOST_ATTRIBUTES if level_here else left
                waiting += [(held, first, level_here + 1) for held in islice(list_held(each, kind, ()), most)]


_LEVELS = 2
_CONTAINER, _RESPONSE, _ERROR, _OBJECT, _CLASS = 1, 2, 3, 4, 5
_natures: "dict[type, int]" = {}


def _nature_of(value: object) -> int:
    """Find out whether a value is a response, or may hold one, and remember that of its class."""
    kind: type[Any] = type(value)
    known = _natures.get(kind)  # one look: another thread may clear them
    if known is not None:
        return known
    if len(_natures) >= _MOST_CODES:
        _natures.clear()
    if kind.__module__ == "_asyncio":
        PARTS[kind] = lambda future: (future._result, future._exception)
    if type in kind.__mro__:
        found = _CLASS
    elif BaseException in kind.__mro__:
        found = _ERROR
    elif any(base.__name__.endswith("Response") for base in kind.__mro__):
        found = _RESPONSE
    elif kind in PARTS:
        found = _CONTAINER
    else:
        is_closed = kind in LEAVES or kind in (FunctionType, ModuleType)
        is_of_client = any(top_of(str(each.__module__)) in CLIENTS for each in kind.__mro__)
        found = 0 if is_closed or is_of_client else _OBJECT
    _natures[kind] = found
    return found


def _read(
    look: Look, value: "Any", holders: "set[int]", *, is_variable: bool, read_error: "Callable[..., None] | None" = None
) -> None:
    """Read a response or an error; what knows no method is none to a request, or of a kind that nobody knows.

    Of an error that was caught only requests over HTTP count: what else it says depends on the error that was raised.
    """
    found = HELD.get(package(value))
    if read_error is None and (found is None or _is_ours(value)):
        return
    before = set(look.sent)
    try:
        if read_error is not None:
            read_error(value)
        elif found is not None:
            reader(found)(look, value)
    except Exception as broken:
        look.add(id(value), Sent(package(value), "", "", unread=f"{type(broken).__name__} in its reader"))
        return
    for key in look.sent.keys() - before:
        sent = look.sent[key]
        sent.holders, sent.is_variable = holders, is_variable
        if not (sent.method or sent.hop) or (read_error is not None and sent.protocol != "http"):
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
    sent = Sent(client_of(frame), "http", method.upper(), subject, holders={id(frame)}, is_variable=True)
    look.add(id(frame), sent)
    return True
