"""The objects in a file: of which class of the package they are, and what defines their attributes."""

import ast
from collections.abc import Iterator
from typing import Self, cast

from forbear_audit.reading.names import DEEPEST, Names, choose_only, is_none
from forbear_audit.reading.scopes import Function, defaults, from_package
from forbear_audit.reading.sources import parse
from forbear_audit.reading.syntax import group

_MOST_FIELDS = 100  # of a class
_MOST_BASES = 20  # of a class, and classes that one is made of
_MOST_BEHAVIOURS = 8  # functions of which a call runs one
_COMMON = frozenset((*dir(dict), *dir(list), *dir(str), *dir(set), "get", "post", "put", "patch", "delete",
    "request", "send", "close", "open", "run", "start", "stop", "execute", "write", "read", "connect", "commit", "call",
))  # fmt: skip
"""The names of methods that may be of any object."""

_WRAPPED = ("Optional", "Annotated", "Final", "ClassVar", "Iterator", "Generator", "AsyncIterator", "Type", "type")


class Objects(Names):
    """One file, with the classes of its objects."""

    def definition(self, expr: ast.expr) -> tuple[Self, ast.AST | None]:
        """Return the module and the definition of an expression: a function, a class, or a value elsewhere."""
        return self.find_once(self._defined, expr, self._define, (self, None))

    def _define(self, expr: ast.expr) -> tuple[Self, ast.AST | None]:
        home = self.home_of(expr)
        if isinstance(expr, ast.Name):
            if expr.id in ("self", "cls"):
                return home, None
            given = home.values(expr) if home._bound else []
            inner = home.find_local(expr)
            if inner is not None:
                return home, inner
            named = [one for one in given if isinstance(one, (ast.Name, ast.Attribute))]
            if len(named) == len(given) == 1 and home.home_of(named[0]) is not home:
                return self.definition(self.adopt(home.home_of(named[0]), named[0]))
        dotted = home.local_name(expr)
        own, _, rest = dotted[1:].partition(".")
        place = home
        node: ast.AST | None = home.top.get(own) if dotted.startswith(".") else None
        if node is None and "." in dotted and not home.is_own(expr, dotted):
            place, node, rest = home.trace(dotted)
            rest = rest.removeprefix(".")
        if not rest and node is not None:
            return place, node
        if isinstance(node, ast.ClassDef) and "." not in rest:
            return place.find_member(node, rest)
        if not isinstance(expr, ast.Attribute):
            return place, None
        owner = self.type_of(expr.value) or home.find_only_class(expr)
        if owner is None:
            return place, None
        place, node = owner[0].find_member(owner[1], expr.attr)
        made = self.value(expr.value)
        if isinstance(made, ast.Call) and (node is None or isinstance(node, ast.expr)):
            passed = self._find_made_with(owner[0], owner[1], made, expr.attr, node)
            if passed is not None:
                return self.home_of(passed), passed
        return (place, node) if node is not None else owner[0].find_delegated(owner[1], expr)

    def find_only_class(self, expr: ast.Attribute) -> tuple[Self, ast.ClassDef] | None:
        """Return the only class of this module with a method of this name, for an object that nothing is known of."""
        made = self.value(expr.value)
        if expr.attr in _COMMON or not isinstance(made, (ast.Name, ast.Attribute)):
            return None
        if not self.is_given(made) or self.note_of(made) is not None:
            return None
        owners = self.keep(_index_methods).get(expr.attr, [])
        return (self, owners[0]) if len(owners) == 1 and self.class_of(expr) is not owners[0] else None

    def find_delegated(self, owner: ast.ClassDef, wanted: ast.Attribute) -> tuple[Self, ast.AST | None]:
        """Return what `__getattr__` of a class returns for a name: a call, in which its parameter is the name."""
        home, function = self.find_member(owner, "__getattr__")
        if not isinstance(function, ast.FunctionDef) or len(function.args.args) != 2:
            return home, None
        found, name = home.value(home.find_returned(function)), function.args.args[1].arg
        if not isinstance(found, ast.Call):
            return home, None
        text = ast.copy_location(ast.Constant(wanted.attr), found)
        args = [text if isinstance(item, ast.Name) and item.id == name else item for item in found.args]
        return home, home.locate(ast.Call(found.func, args, found.keywords), found)

    def _find_made_with(
        self, place: Self, owner: ast.ClassDef, made: ast.Call, name: str, node: ast.expr | None
    ) -> ast.expr | None:
        """Return what the call that made an object passes for one of its attributes, None if it passes nothing."""
        init = place.find_member(owner, "__init__")
        if isinstance(init[1], Function):
            names = [node.id] if isinstance(node, ast.Name) else []
            passed = init[0].pass_arguments(init[1], made, self)
            return next((passed.get(one) or defaults(init[1]).get(one) for one in names), None)
        notes = [s.target for s in owner.body[:_MOST_FIELDS] if isinstance(s, ast.AnnAssign)]
        fields = [target.id for target in notes if isinstance(target, ast.Name)]
        given = dict(zip(fields, made.args, strict=False)) | {
            item.arg: item.value for item in made.keywords if item.arg
        }
        return self.adopt(self.home_of(made), given[name]) if name in given else None

    def type_of(self, expr: ast.expr) -> tuple[Self, ast.ClassDef] | None:
        """Return the class of this package that an object is of, by its maker or its annotation; None if unknown."""
        return self.find_once(self._typed, expr, self._find_type, None)

    def _find_type(self, expr: ast.expr) -> tuple[Self, ast.ClassDef] | None:
        home = self.home_of(expr)
        made = self.value(expr)
        if (isinstance(expr, ast.Name) and expr.id in ("self", "cls")) or (
            isinstance(made, ast.Name) and made.id == "self"
        ):
            owner = self.class_of(made or expr)
            return (self.home_of(made or expr), owner) if owner is not None else None
        if made is None:
            return None
        if isinstance(made, ast.Call) and isinstance(made.func, (ast.Name, ast.Attribute)):
            if isinstance(made.func, ast.Name) and made.func.id == "cls":
                owner = self.class_of(made)
                return (self.home_of(made), owner) if owner is not None else None
            place, node = self.definition(made.func)
            if isinstance(node, ast.ClassDef):
                return place, node
        note = self.note_of(made)
        place, node = self.definition(note) if note is not None else (home, None)
        return (place, node) if isinstance(node, ast.ClassDef) else None

    def note_of(self, expr: ast.expr) -> ast.expr | None:
        """Return the type that annotations give to a name, an attribute or a result; None without one."""
        home, note = self.home_of(expr), None
        match expr:
            case ast.Name(id=name):
                around: ast.AST = expr
                while note is None and around is not home.tree:
                    around = home.scope(around)
                    note = home.notes.get((around, name))
                    if (around, name) in home.assigned:
                        break  # it hides the names around it
            case ast.Attribute(value=owner, attr=name):
                known = self.type_of(owner)
                home, note = known[0].find_note(known[1], name) if known is not None else (home, None)
            case ast.Call(func=(ast.Name() | ast.Attribute()) as made):
                home, node = self.definition(made)
                note = node.returns if isinstance(node, Function) else None
            case _:
                pass
        if note is not None and note not in home._notes:
            home._notes[note] = _open_note(note)
        found = home._notes.get(note) if note is not None else None
        return self.adopt(home, found) if found is not None else None

    def find_note(self, owner: ast.ClassDef, name: str) -> tuple[Self, ast.expr | None]:
        """Return the annotation of an attribute of a class, or of one that it is made of, with its module."""
        found = ((place, place.notes.get((each, name))) for place, each in self.list_bases(owner))
        return next((one for one in found if one[1] is not None), (self, None))

    def find_member(self, owner: ast.ClassDef, name: str) -> tuple[Self, ast.AST | None]:
        """Return what defines an attribute of a class, or of one that it is made of: a function, or a value."""
        for place, each in self.list_bases(owner):
            values = place.attributes.get((each, name)) or place.assigned.get((each, name), [])
            node = place.methods.get((each, name)) or choose_only(values)
            if node is not None:
                return place, node
        return self, None

    def list_bases(self, owner: ast.ClassDef) -> Iterator[tuple[Self, ast.ClassDef]]:
        """Yield a class and those that it is made of, each once."""
        seen, waiting = set[ast.AST](), [(self, owner)]
        while waiting and len(seen) < _MOST_BASES:
            place, each = waiting.pop()
            if each not in seen:
                seen.add(each)
                yield place, each
                bases = [place.definition(base) for base in each.bases[:_MOST_BASES]]
                waiting += [(home, node) for home, node in bases[::-1] if isinstance(node, ast.ClassDef)]

    def type_name(self, expr: ast.expr) -> str:
        """Return the dotted name of the type that annotations give to a name or an attribute, "" without one."""
        note = self.note_of(expr)
        return self.name_of(note) if note is not None else ""

    def is_function(self, expr: ast.expr) -> bool:
        """Return whether an expression is surely a function, a method or a partial."""
        made = self.value(expr)
        if isinstance(made, ast.Call):
            return from_package(self.name_of(made.func), "functools", "partial")
        if isinstance(expr, ast.Attribute) or isinstance(made, (ast.Lambda, ast.Attribute)):
            return True
        return isinstance(self.definition(expr)[1], Function)

    def resolve_call(self, call: ast.Call) -> tuple[Self, Function | None]:
        """Return the function that a call calls, in this module or another of its package, with its module."""
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            return self.home_of(call), None
        home, node = self.definition(call.func)
        return home, node if isinstance(node, Function) else None

    def find_callers(self, name: str) -> dict[ast.AST | None, list[ast.Call]]:
        """Return the calls of functions and classes with a name, by what they call: None if that is unknown."""
        if name not in self._callers:
            self._callers[name] = found = dict[ast.AST | None, list[ast.Call]]()
            with self.bind({}):
                for call in self.calls_of(name):
                    found.setdefault(self.definition(call.func)[1], []).append(call)
        return self._callers[name]

    def resolve_behaviour(self, call: ast.Call) -> tuple[Self, Function | None]:
        """Return the function that a call runs, if it is the only one; else the one that it names."""
        found = self.list_behaviours(call)
        return found[0] if len(found) == 1 else self.resolve_call(call)

    def list_behaviours(self, call: ast.Call) -> list[tuple[Self, Function]]:
        """Return the functions of which a call runs one: also those of a table, and of all classes below a base."""
        home, function = self.resolve_call(call)
        owner = home.parents.get(function) if function is not None else None
        match call.func:
            case ast.Attribute(value=ast.Name("self"), attr=name) if function is None:
                owner = home.class_of(call)  # a mixin calls what the classes below it have
            case _:
                name = function.name if function is not None else ""
        if isinstance(owner, ast.ClassDef) and (function is None or is_stub(function)):
            made = [(place, place.methods.get((each, name))) for place, each in home.list_below(owner)]
            found = [(place, one) for place, one in made if one is not None][:_MOST_BEHAVIOURS]
            return found or ([(home, function)] if function is not None else [])
        if function is not None:
            return [(home, function)]
        defined = [self.definition(item) for item in self._list_choices(call.func)[:_MOST_BEHAVIOURS]]
        return [(place, node) for place, node in defined if isinstance(node, Function)]

    def list_near(self) -> list[Self]:
        """Return this module, and those of the other files in its folder."""
        near = self._files.list_near(self.path) if self._files is not None and self.path is not None else []
        return [self, *cast("list[Self]", near)]

    def list_below(self, owner: ast.ClassDef) -> list[tuple[Self, ast.ClassDef]]:
        """Return the classes below one in its module and next to it; without any those with all of its methods."""
        known = self._below
        if owner not in known:
            places = self.list_near()
            others = [(p, c) for p in places for c in p.top.values() if isinstance(c, ast.ClassDef)]
            others = [(p, c) for p, c in others if c.name != owner.name]
            same = owner.name, self.path  # it may have been read twice
            made_of = [(place, one, [*place.list_bases(one)]) for place, one in others if one.bases]
            below = [(p, c) for p, c, up in made_of if any(b is owner or (b.name, h.path) == same for h, b in up)]
            wanted = {name for name in names_of(owner) if not name.startswith("__")}
            known[owner] = below or [(p, c) for p, c in others if wanted and wanted <= names_of(c)]
        return known[owner]

    def _list_choices(self, made: ast.expr) -> list[ast.expr]:
        """Return the items from which a function is taken: `SENDERS[kind]`, `for step in STEPS`."""
        value, place = self.value(made), None
        source = value.value if isinstance(value, ast.Subscript) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get":
            source = value.func.value
        if isinstance(value, ast.Name):
            home = self.home_of(value)
            source, place = home.iterated.get((home.scope(value), value.id), (None, None))
        items = self.value(source) if source is not None else None
        if items is None:
            return []
        found = items.values if isinstance(items, ast.Dict) else getattr(items, "elts", [])
        if place is not None:
            found = [each.elts[place] for each in found if isinstance(each, ast.Tuple) and len(each.elts) > place]
        return [self.adopt(self.home_of(items), each) for each in found if isinstance(each, (ast.Name, ast.Attribute))]

    def find_returned(self, function: Function) -> ast.expr | None:
        """Return what a function of this module returns."""
        return None


def _open_note(note: ast.expr) -> ast.expr | None:
    """Return the type in an annotation: of a text, of `X | None`, and of `Optional[X]`."""
    for _ in range(DEEPEST):
        match note:
            case ast.Constant(value=str() as text):
                match parse(f"({text[:200]})".encode(errors="replace").decode()):
                    case ast.Module(body=[ast.Expr(value=inner)]):
                        note = ast.copy_location(inner, note)
                    case _:
                        return None
            case ast.BinOp(left=left, right=right):
                note = right if is_none(left) else left
            case ast.Subscript(value=owner, slice=inner) if ast.unparse(owner).rpartition(".")[2] in _WRAPPED:
                note = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
            case _:
                break
    return note if isinstance(note, (ast.Name, ast.Attribute)) else None


def is_stub(function: Function) -> bool:
    """Return whether a function does nothing: `...`, `pass`, a docstring, or NotImplementedError."""
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and s.exc is not None and "NotImplemented" in ast.unparse(s.exc))
        for s in function.body
    )


def _index_methods(module: Names) -> dict[str, list[ast.ClassDef]]:
    """Return the classes of a module by the names of their methods."""
    return group((name, owner) for owner, name in module.methods)


def names_of(owner: ast.ClassDef) -> set[str]:
    """Return the names of the methods of a class."""
    return {s.name for s in owner.body if isinstance(s, Function)}
