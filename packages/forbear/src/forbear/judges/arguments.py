"""`Arguments`: what a run's function was called with, to tell what is the same in each attempt from what is new."""

import re
import sys
from itertools import islice
from types import FunctionType, MappingProxyType, MethodType

from forbear.core.chain import traceback_of
from forbear.core.check import is_mapping, lasting_text
from forbear.evidence.look import Look, space_of
from forbear.evidence.objects import MOST_OBJECTS, codes_within, find_roots, list_cells, names_of, reach
from forbear.evidence.sent import dict_of
from forbear.run.open_runs import keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from dis import Instruction
    from typing import Any

    from forbear.run.judge_slot import RunContext

_MOST = 100
_CONTAINERS = (dict, list, tuple, set, frozenset)
_DRAWN = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|[0-9]{10,}")
"""A UUID, 16 hexadecimal digits or 10 decimal ones: what an id looks like that was drawn, or made of the time."""


class Arguments:
    """The arguments of a run: those of the call, of a partial, and the cells of the function that nobody rebinds.

    With `started`, when the run began, its keys count too: those of `run_key`, and the value of the policy's `key`.
    Only exact texts, bytes and UUIDs of at least 8 characters, and numbers from 10^9 on are compared, by their text. So
    no code of the user runs, and nothing is equal by chance.
    """

    _known: "list[Any] | None" = None
    _globals: "Mapping[str, Any]" = MappingProxyType({})
    _cells = _globals

    def __init__(
        self, function: "Any", args: "tuple[Any, ...]", kwargs: "Mapping[str, Any]", started: float | None = None
    ) -> None:
        self._function, self._args, self._kwargs, self._started = function, args, kwargs, started
        self._function_itself: FunctionType | None = None  # without partials and methods around it

    @property
    def _values(self) -> "list[Any]":
        """The arguments; most failures do not ask for them."""
        if self._known is None:
            self._known = self._list_values(self._function)
        return self._known

    def _list_values(self, function: "Any") -> "list[Any]":
        values = [*self._args, *self._kwargs.values(), *(() if self._started is None else keys_of(self._started))]
        for _ in range(10):
            if type(function).__name__ == "partial" and type(function).__module__ == "functools":
                values += [*function.args, *function.keywords.values()]
                function = function.func
            elif type(function) is MethodType:
                values.append(function.__self__)
                function = function.__func__
            else:
                break
        if type(function) is not FunctionType:
            values.append(function)  # an instance that can be called
        else:
            self._function_itself, self._globals, self._cells = function, function.__globals__, list_cells(function)
            values += _list_fixed(function, self._cells)
        return values

    @classmethod
    def of(cls, context: "RunContext") -> "Arguments":
        """Return the arguments of the run that a failed call belongs to, with the run's keys."""
        return cls(context.function, context.args, context.kwargs, context.run.started)

    def keep(self, value: object) -> bool:
        """Return whether a value is one of the arguments, and so the same in each attempt."""
        text = lasting_text(value)
        return text is not None and any(lasting_text(each) == text for each in self._values)

    def lack_drawn(self, text: str) -> bool:
        """Return whether a text holds an id that looks drawn, and that no argument holds, one level deep."""
        drawn = _DRAWN.findall(text[:65536])
        if not drawn:
            return False
        values = self._values
        function = self._function_itself
        stored = set[str]() if function is None else names_of(function.__code__, "STORE_ATTR", "STORE_SUBSCR")
        texts = (each if type(each) is str else lasting_text(each) or "" for each in _deep(values, stored))
        known = " ".join(texts)
        return any(each not in known for each in drawn)

    def find_objects(self, error: BaseException) -> "set[int]":
        """Return the ids of the arguments; those of a block are the variables around it that nothing in it sets.

        What an argument holds does not count: the attempt may have put it there.
        """
        return {*map(id, self._values), *(_find_before(error) if self._function is None else ())}

    def reach_object(self, identities: "Collection[int]", errors: "Sequence[BaseException]") -> bool:
        """Return whether one of the objects with these ids is reached from outside of the attempt.

        That is from the arguments, the cells, the globals that the code of the function or of the errors names, and
        from context variables. If there is too much to look at, nobody can tell, and it counts as reached.
        """
        if not identities:
            return False
        held = [*self._values, *self._cells.values(), self._function_itself]
        roots, names = find_roots(*map(traceback_of, errors))
        if self._function_itself is not None:
            names.update(self._function_itself.__code__.co_names)
        roots += (*held, *(self._globals[name] for name in names if name in self._globals))
        found = list(reach(roots, names))
        known = {*map(id, found), *map(id, tuple(self._globals.values()))}
        return len(found) == MOST_OBJECTS or not known.isdisjoint(identities)


def _deep(values: "Iterable[Any]", stored: "set[str]") -> "Iterator[Any]":
    """Yield values, and what they hold: items of exact built-in containers, attributes of instances.

    Attributes whose names are in `stored` are left out, and all items if that has the empty name.
    """
    for value in values:
        yield value
        held: Any = value
        if type(value) not in _CONTAINERS:
            held = {name: each for name, each in dict(dict_of(value)).items() if name not in stored}
        elif "" in stored:
            held = ()
        items: Any = held.values() if is_mapping(held) else held
        kept: tuple[Any, ...] = tuple(islice(items, _MOST))  # at once: another thread may change them
        yield from kept


def _list_fixed(function: "Any", cells: "dict[str, Any]") -> "list[Any]":
    """Return the values of the cells that nobody stores to while the function runs.

    Any function that shares a cell could, such as a helper that draws a key. They all lie within the function that owns
    the cell. It is known if it is on the stack, and then it waits and stores nothing itself.
    """
    fixed: list[Any] = []
    frame = sys._getframe() if cells else None
    while frame is not None:
        for name in cells.keys() & set(frame.f_code.co_cellvars):
            sharing = list(codes_within(frame.f_code, name))
            stored = set[str]().union(*(names_of(code, "STORE_DEREF", "DELETE_DEREF") for code in sharing))
            if any(code is function.__code__ for code in sharing) and name not in stored:
                fixed.append(cells[name])
        frame = frame.f_back
    return fixed


def _find_before(error: BaseException) -> "Collection[int]":
    """Return the ids of what variables around a block have held since before it began."""
    trace = traceback_of(error)  # it begins in the function that has the block
    if trace is None:
        return ()
    from dis import get_instructions  # few failures get here

    look = Look()
    known = dict(look.names(trace) or space_of(trace.tb_frame))
    look.close()
    code = trace.tb_frame.f_code
    steps = list(get_instructions(code))
    heads: list[int] = []
    for place, head in enumerate(steps):
        jumps = (step.offset for step in steps if step.argval == head.offset and "JUMP" in step.opname)
        end = head.argval if head.opname == "FOR_ITER" else max(jumps, default=0) if head.opname == "GET_ANEXT" else 0
        if head.offset < trace.tb_lasti < end:
            names = next((set_here for step in steps[place + 1 :] if (set_here := _names_set(step))), ())
            if any(type(known.get(name)).__module__ == "forbear.run.iterate" for name in names):
                heads.append(head.offset)
    if not heads:
        return ()
    later = {name for step in steps if step.offset > heads[-1] for name in _names_set(step)}
    later.update(*(names_of(each, "STORE_DEREF", "STORE_GLOBAL") for each in codes_within(code)))
    return {id(value) for name, value in known.items() if name not in later}


def _names_set(step: "Instruction") -> "tuple[str, ...]":
    """Return the variables that an instruction sets; since Python 3.13 one may set one and load another."""
    names: Any = step.argval if step.opname.startswith("STORE_") else ()
    return (names,) if isinstance(names, str) else names
