"""The names in a file: what each stands for, here or in another file of the package, and what calls pass for it."""

import ast
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from forbear_audit.reading.packages import Files
from forbear_audit.reading.scopes import Function, Scopes, arguments
from forbear_audit.reading.syntax import group

_T = TypeVar("_T")
_K = TypeVar("_K")
_E = TypeVar("_E", bound=ast.expr)
DEEPEST = 5  # steps from a name to its value: more are a circle, or nothing a reader would follow either
_MOST_VALUES = 20  # of a name
_CACHES = ("_traced", "_returned", "_defined", "_typed", "_passed", "_whole")


class Names(Scopes):
    """One file, with the names that it takes from others of its package.

    An expression of another module that a method returns may be passed to all methods, as one of this module.
    """

    def __init__(self, tree: ast.Module, path: Path | None = None) -> None:
        self._files = Files(type(self)) if path else None
        self._homes: dict[ast.AST, Self] = {}
        self._bound: dict[tuple[ast.AST, str], ast.expr] = {}
        self._kept: dict[object, object] = {}
        self._callers: dict[str, dict[ast.AST | None, list[ast.Call]]] = {}
        self._below: dict[ast.AST, list[tuple[Self, ast.ClassDef]]] = {}
        self._notes: dict[ast.AST, ast.expr | None] = {}
        self._forget()
        super().__init__(tree, path)

    def _forget(self) -> None:
        self._traced: dict[str, tuple[Self, ast.AST | None, str]] = {}
        self._returned: dict[ast.expr, ast.expr | None] = {}
        self._defined: dict[ast.expr, tuple[Self, ast.AST | None]] = {}
        self._typed: dict[ast.expr, tuple[Self, ast.ClassDef] | None] = {}
        self._passed: dict[tuple[ast.AST, str], ast.expr | None] = {}
        self._whole: dict[ast.Call, ast.Call] = {}

    def attach(self, files: Files) -> None:
        """Follow the files that `files` follows, from now on: their number counts for all of them together."""
        if self._files is not files:
            self._files = files
            self._homes = {}
            self._forget()

    def keep(self, make: Callable[[Self], _T]) -> _T:
        """Return what a function makes of this module; it is made once, and kept as long as the module is."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return cast("_T", self._kept[make])

    def cache(self, owner: object) -> dict[Any, Any]:
        """Return what a function remembers of this module."""
        return cast("dict[Any, Any]", self._kept.setdefault((owner, "cache"), {}))

    def find_once(self, found: dict[_K, _T], key: _K, find: Callable[[_K], _T], unknown: _T) -> _T:
        """Return what `find` finds for a key, once; within it the key is `unknown`, so that a circle ends."""
        if key not in found:
            found[key] = unknown
            found[key] = find(key)
        return found[key]

    @contextmanager
    def bound(self, function: Function | None, call: ast.Call | None, caller: Self) -> Generator[None]:
        """Within this, the parameters of a function of this module stand for what a call in another one passes."""
        if function is None or call is None:
            yield
            return
        given = self.pass_arguments(function, call, caller)
        with self.bind(self._bound | {(function, name): value for name, value in given.items()}):
            yield

    @contextmanager
    def bind(self, bound: dict[tuple[ast.AST, str], ast.expr]) -> Generator[None]:
        """Within this, parameters stand for these values, and only for them."""
        if bound == self._bound:
            yield
            return
        before, saved = self._bound, [(name, getattr(self, name)) for name in _CACHES]
        self._bound = bound
        self._forget()
        try:
            yield
        finally:
            self._bound = before
            for name, cache in saved:
                setattr(self, name, cache)

    def pass_arguments(self, function: Function, call: ast.Call, caller: Self) -> dict[str, ast.expr]:
        """Return what a call in a module passes to the parameters of a function of this one."""
        kinds, whole = set(map(ast.unparse, function.decorator_list)), caller.whole(call)
        is_method = isinstance(self.parents.get(function), ast.ClassDef) and "staticmethod" not in kinds
        passes_self = isinstance(whole.func, ast.Attribute) and caller.is_class(whole.func.value)
        shifts = is_method and ("classmethod" in kinds or not passes_self)  # `Api.send(api, url)` passes the first one
        given = arguments(function, whole, is_method=shifts)
        home = caller.home_of(call)
        return {name: self.adopt(home, value) for name, value in given.items()}

    def home_of(self, node: ast.AST) -> Self:
        """Return the module in which a node stands."""
        return self._homes.get(node, self)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around `node`, the nearest first."""
        home = self.home_of(node)
        return super().ancestors(node) if home is self else home.ancestors(node)

    def values(self, name: ast.expr) -> list[ast.expr]:
        """Return the expressions that are assigned to a name, or to an attribute of `self`, where `name` stands."""
        home = self.home_of(name)
        if home is not self:
            return [self.adopt(home.home_of(value), value) for value in home.values(name)]
        given = self._find_given(name) if isinstance(name, ast.Name) and self._bound else None
        return super().values(name) if given is None else [given]

    def _find_given(self, name: ast.Name) -> ast.expr | None:
        """Return what a parameter is bound to, None if the name is none or is not bound."""
        around: ast.AST = name
        while (around := self.scope(around)) is not self.tree:
            if (around, name.id) in self.assigned:
                return None if self.assigned[around, name.id] else self._bound.get((around, name.id))
        return None

    def adopt(self, home: Self, expr: ast.expr) -> ast.expr:
        """Return an expression of another module, whose home is known from now on."""
        if home is not self and expr not in self._homes:
            self._homes.update({node: home for node in ast.walk(expr) if home._homes.get(node) is not self})
        return expr

    def take(self, home: Self, expr: ast.expr | None) -> ast.expr | None:
        """Return what a module found, as an expression that may be asked about here."""
        return self.adopt(home.home_of(expr), expr) if expr is not None else None

    def locate(self, made: _E, like: ast.expr) -> _E:
        """Return an expression that was written out, which from now on stands where another one stands."""
        home = self._homes.get(like, self)
        home.parents[ast.copy_location(made, like)] = home.parents.get(like, home.tree)
        if home is not self:
            part = made.func if isinstance(made, ast.Call) else made
            self.adopt(home, part)
            self._homes[made] = self._homes[part]
        return made

    def local_name(self, expr: ast.expr | None, depth: int = 0) -> str:
        """Return the dotted name of an expression as this module says it, "" if it has none."""
        if isinstance(expr, ast.Name):
            if expr.id in self.imports:
                return self.imports[expr.id]
            values = super().values(expr)
            if len(values) == 1 and isinstance(values[0], (ast.Name, ast.Attribute)) and depth < DEEPEST:
                inner = values[0]
                return "" if isinstance(inner, ast.Name) and inner.id == expr.id else self.local_name(inner, depth + 1)
            return f".{expr.id}" if expr.id in self.top or values else expr.id
        if isinstance(expr, ast.Attribute):
            base = self.local_name(expr.value, depth)
            return f"{base}.{expr.attr}" if base else ""
        return ""

    def name_of(self, expr: ast.expr | None) -> str:
        """Return the full dotted name of an expression, such as "tenacity.retry"; "" if it has none.

        A name that the module defines itself begins with ".", a builtin or an unknown name has no dot. Names that
        another module of the package only passes on have the name that they have there.
        """
        home = self.home_of(expr) if expr is not None else self
        dotted = home.local_name(expr)
        if self._files is None or "." not in dotted or expr is None or home.is_own(expr, dotted):
            return dotted
        place, node, rest = home.trace(dotted)
        if node is None:
            return rest
        if isinstance(node, (ast.Name, ast.Attribute)):
            return place.local_name(node) + rest
        return dotted

    def is_given(self, expr: ast.expr) -> bool:
        """Return whether a dotted name begins with a parameter or a variable of a function, such as `self.pool`."""
        home = self.home_of(expr)
        while isinstance(expr, ast.Attribute):
            expr = expr.value
        return isinstance(expr, ast.Name) and expr.id not in home.imports and home.function_of(expr) is not None

    def is_parameter(self, expr: ast.expr) -> bool:
        """Return whether an expression is a parameter of a function around it, and stands for nothing else."""
        around = self.owner_of(expr) if isinstance(expr, ast.Name) else None
        return isinstance(around, Function) and not self.values(expr)

    def is_own(self, expr: ast.expr, dotted: str) -> bool:
        """Return whether a dotted name begins with a name of this module; `shop` may also be a module next to it."""
        while isinstance(expr, ast.Attribute):
            expr = expr.value
        if not isinstance(expr, ast.Name) or expr.id in self.imports:
            return False
        return f"{dotted}.".lstrip(".").startswith(f"{expr.id}.")

    def trace(self, dotted: str) -> tuple[Self, ast.AST | None, str]:
        """Return where a dotted name of this module leads, through the modules that only pass it on."""
        return self.find_once(self._traced, dotted, self._follow, (self, None, dotted))

    def _follow(self, dotted: str) -> tuple[Self, ast.AST | None, str]:
        home = self
        for _ in range(DEEPEST):
            found = self._files.find(home.path, dotted) if self._files is not None and home.path is not None else None
            if found is None or found[0] is home:
                break
            place, name, rest = cast("tuple[Self, str, str]", found)
            place.attach(cast("Files", self._files))
            values = place.assigned.get((place.tree, name), [])
            if name in place.top:
                return place, place.top[name], rest
            if len(values) == 1 or (values and name not in place.imports):
                real = [v for v in values if not is_none(v)] or values
                return place, real[0] if len(real) == 1 else place.tree, rest
            if name not in place.imports:
                return place, place.tree, rest
            home, dotted = place, place.imports[name] + rest
        return home, None, dotted

    def find_local(self, name: ast.Name) -> Function | None:
        """Return the function within a function that a name of this module stands for, None if it is none."""
        around: ast.AST = name
        while (around := self.scope(around)) is not self.tree:
            found = self.local.get((around, name.id))
            if found is None and isinstance(around, ast.ClassDef) and self.scope(name) is around:
                found = self.methods.get((around, name.id))
            if found is not None:
                return found
        return None

    def calls_of(self, name: str) -> list[ast.Call]:
        """Return the calls in this module of functions or methods with a name."""
        return self.keep(_index_calls).get(name, [])

    def value(self, expr: ast.expr | None) -> ast.expr | None:
        """Return the expression behind `expr`."""
        return expr

    def is_class(self, expr: ast.expr) -> bool:
        """Return whether an expression is a class of the package itself, and no object of it."""
        home = self.home_of(expr)
        dotted = home.local_name(expr)
        if home.is_own(expr, dotted) or "." not in dotted:
            return isinstance(home.top.get(dotted[1:]), ast.ClassDef)
        _, node, rest = home.trace(dotted)
        return isinstance(node, ast.ClassDef) and not rest

    def whole(self, call: ast.Call) -> ast.Call:
        """Return a call with all that it passes written out."""
        return call


def is_none(value: ast.expr) -> bool:
    """Return whether an expression is `None`."""
    return isinstance(value, ast.Constant) and value.value is None


def choose_only(values: list[ast.expr]) -> ast.expr | None:
    """Return the only value of a name, or the last of its calls of one function; None if there are others.

    `client = None` only announces a value.
    """
    real = [v for v in values if not is_none(v)] if len(values) > 1 else values
    if len(real) > _MOST_VALUES:
        return None
    if len(real) == len(values) == 1:
        return real[0]
    makers = {ast.unparse(v.func) if isinstance(v, ast.Call) else "" for v in real}
    return real[-1] if len(makers) == 1 and "" not in makers else None


def _index_calls(module: Names) -> dict[str, list[ast.Call]]:
    """Return the calls of a module by the last name of what they call."""
    return group((getattr(call.func, "attr", getattr(call.func, "id", "")), call) for call in module.calls)


def index_puts(module: Names) -> dict[tuple[ast.AST, str, object], list[ast.expr]]:
    """Return the values that a module puts into dictionaries, by owner, text and key: Ellipsis if it is no constant."""
    wanted = ((key.value if isinstance(key, ast.Constant) else ..., owner, value) for owner, key, value in module.puts)
    return group(((module.owner_of(owner), ast.unparse(owner), key), value) for key, owner, value in wanted)
