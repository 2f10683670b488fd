"""Find what objects hold, and what code can reach of them: items, attributes, cells.

No code of the user runs: instances are read by their dict and their slots, containers only if they are Python's own.
"""

import threading
from collections import deque
from contextvars import ContextVar, copy_context
from functools import partial
from gc import get_referents
from itertools import chain, islice
from opcode import opmap
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType

from forbear.core.chain import entries_of
from forbear.evidence.sent import WHOLE, classes_of, dict_of, get_own, is_stream, top_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

IS_FUNCTION = 1  # CO_OPTIMIZED: the variables of a module or a class are the real ones, and must not be cleared

MOST_OBJECTS = 10_000
_MOST_ITEMS = 1000
_STEPS = 4
_HELPERS = 2
"""The steps within which the globals of functions count, too: those of helpers, and of helpers of helpers."""
LEAVES = frozenset({str, int, float, bool, bytes, type(None), CodeType})
_CLOSED = frozenset({
    "asyncio", "dbutils", "forbear", "logging", "psycopg", "psycopg_pool", "pymongo", "pymysql", "sqlalchemy",
    "sqlite3",
})  # fmt: skip
"""Packages whose objects are not looked into: a pool holds what began in the attempt, and a table all other tables."""
_SCOPES = frozenset({"scoped_session", "async_scoped_session", "ScopedRegistry", "ThreadLocalRegistry"})
"""The classes of SQLAlchemy that hold a session for everybody."""

_SEQUENCES: "tuple[Any, ...]" = (list, tuple, set, frozenset, deque)
_VALUES: "Any" = vars(dict)["values"]
ITEMS: "dict[type, Callable[[Any], Iterable[Any]]]" = {dict: _VALUES, **{each: each.__iter__ for each in _SEQUENCES}}
"""The methods of containers that run no code of a subclass."""
PARTS: "dict[type, Callable[[Any], Iterable[Any]]]" = {
    **ITEMS,
    MethodType: lambda method: (method.__self__, method.__func__),
    partial: lambda call: (call.func, *call.args, *call.keywords.values()),
    ContextVar: lambda variable: (variable.get(None),),
}
"""The functions that return what lies in containers, and in Python's own objects that hold something else."""


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
        if kind in LEAVES or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if step < _HELPERS and kind is FunctionType and isinstance(value, FunctionType):
            names.update(value.__code__.co_names)
            waiting += ((each, step + 1) for each in pick(value.__globals__, value.__code__.co_names))
        if kind is ModuleType or threading.local in kind.__mro__ or kind.__name__ in _SCOPES:
            waiting.extendleft((each, step) for each in list_held(value, kind, names))
        elif step < _STEPS:
            waiting += ((each, step + 1) for each in list_held(value, kind, names))


def find_roots(*traces: "TracebackType | None") -> "tuple[list[Any], set[str]]":
    """Return what the code of tracebacks can reach: globals that it names, and context variables; and those names."""
    places: dict[CodeType, Mapping[str, Any]] = {}
    for entry in chain.from_iterable(map(entries_of, traces)):
        places[entry.tb_frame.f_code] = entry.tb_frame.f_globals
    values, names = list(copy_context().values()), set[str]()
    for code, known in places.items():
        is_function = code.co_flags & IS_FUNCTION  # a script's own variables are no others than its globals
        if is_function and top_of(str(known.get("__name__"))) not in _CLOSED:
            values += pick(known, code.co_names)
            names.update(code.co_names)
    return values, names


def list_held(value: "Any", kind: "Any", names: "Collection[str]") -> "list[Any]":
    """Return what a value of this class holds: items, attributes, cells."""
    for each, items_of in ITEMS.items():
        if each in kind.__mro__:
            return [*islice(items_of(value), _MOST_ITEMS), *dict_of(value).values()]
    if threading.local in kind.__mro__:
        return list(threading.local.__getattribute__(value, "__dict__").values())  # those of this thread
    if kind is ModuleType:
        return pick(dict_of(value), names)
    if kind in PARTS:
        return list(PARTS[kind](value))
    if kind is FunctionType:
        by_name: dict[str, Any] = value.__kwdefaults__ or {}
        return [*list_cells(value).values(), *by_name.values(), *dict_of(value).values(), *(value.__defaults__ or ())]
    if type in kind.__mro__:
        return [held for each in classes_of(value) for held in pick(each.__dict__, names)]
    if top_of(str(kind.__module__)) in _CLOSED and kind.__name__ not in _SCOPES:
        return []
    of_classes = (held for each in kind.__mro__[:-1] for held in pick(each.__dict__, names))
    return [*dict_of(value).values(), *of_classes, *dict_of_slots(value).values()]


def dict_of_slots(value: object) -> "dict[str, Any]":
    """Return what an instance keeps in slots, by their names."""
    spaces = [each.__dict__ for each in type(value).__mro__ if "__slots__" in each.__dict__]
    slots = [name for space in spaces for name, each in list(space.items()) if type(each) is MemberDescriptorType]
    return {name: get_own(value, name) for name in slots}


def pick(known: "Mapping[str, Any]", names: "Collection[str]") -> "list[Any]":
    """Return the values of those names that are known; many names should be a set."""
    if len(known) < len(names):
        return [value for name, value in list(known.items()) if name in names]
    return [known[name] for name in names if name in known]


def list_near(values: "list[Any]", names: "Collection[str]", steps: int) -> "list[Any]":
    """Return values, and what code names of them in a few steps: attributes, also of their classes, and items of dicts.

    All that something with a method `read` holds counts, too.
    """
    found, names = values, frozenset(names)
    for _ in range(steps):
        values = [held for each in values if type(each) not in WHOLE for held in _list_named(each, names)][:_MOST_ITEMS]
        found = [*found, *values]
    return found


def _list_named(value: "Any", names: "Collection[str]") -> "list[Any]":
    if is_stream(value):
        return list(dict_of(value).values())
    spaces: list[Any] = [each.__dict__ for each in classes_of(value)]
    spaces.append(value if type(value) is dict else dict_of(value))
    return [held for space in spaces for held in pick(space, names)]


def list_cells(function: "Any") -> "dict[str, Any]":
    """Return the values of the cells that are filled, by their names."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: held[0] for name, cell in cells if (held := get_referents(cell))}  # an empty cell holds nothing


def codes_within(code: "CodeType", sharing: str = "") -> "Iterator[CodeType]":
    """Yield the code of each function within `code`, by default of all, else of those that share a variable of it."""
    for inner in code.co_consts:
        if type(inner) is CodeType and (not sharing or sharing in inner.co_freevars):
            yield inner
            yield from codes_within(inner, sharing)


def list_stored(code: "CodeType") -> "set[str]":
    """Return the names of the attributes and globals that code stores to, and the empty name if it stores items.

    All variables of a script are globals. It does without `dis`, which a forked child must not load.
    """
    units, high, found = code.co_code, 0, set[str]()
    for operation, low in () if _STORING.isdisjoint(units[::2]) else zip(units[::2], units[1::2], strict=True):
        if operation in _STORING:
            found.add("" if operation == _STORES_ITEM else code.co_names[high | low])
        high = (high | low) << 8 if operation == _EXTENDED else 0
    return found


_STORES_ITEM, _EXTENDED = opmap["STORE_SUBSCR"], opmap["EXTENDED_ARG"]
_STORING = frozenset({_STORES_ITEM, opmap["STORE_ATTR"], opmap["STORE_GLOBAL"], opmap["STORE_NAME"]})


def names_of(code: "CodeType", *operations: str) -> "set[str]":
    """Return the names that operations of code have, and the empty name for one that has none."""
    from dis import get_instructions  # few failures get here

    return {each.argval or "" for each in get_instructions(code) if each.opname in operations}
