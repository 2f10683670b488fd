"""A file among the others of its package: what an expression stands for, here or in the module that it comes from."""

import ast
import operator as operators
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from forbear_audit.reading.packages import Files
from forbear_audit.reading.scopes import Function, Scopes, walk_inside

_T = TypeVar("_T")
_WIDEST = 1000  # parts of a constant
_DEEPEST = 5  # steps from a name to its value: more are a circle, or nothing a reader would follow either
_KEPT = ("cache", "lru_cache", "fixture", "property", "cached_property", "staticmethod", "classmethod")
"""The decorators of functions whose calls still stand for what the functions return."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operators.add, ast.Sub: operators.sub, ast.Mult: operators.mul, ast.Pow: pow,
    ast.Div: lambda one, other: one / other,
}  # fmt: skip

Place = tuple["Module", ast.AST | None, str]
"""The end of a dotted name: a module, its definition or None, and the rest of the name."""


class Module(Scopes):
    """One file, with what it takes from others of its package. Of files that are not `follows` nothing is followed.

    An expression of another module that a method returns may be passed to all methods, as one of this module.
    """

    def __init__(self, tree: ast.Module, path: Path | None = None, *, follows: bool = True) -> None:
        self._files = Files(lambda tree, path: Module(tree, path, follows=False)) if follows and path else None
        self._homes: dict[ast.AST, Module] = {}
        self._traced: dict[tuple[int, str], Place] = {}
        self._returned: dict[ast.AST, ast.expr | None] = {}
        self._kept: dict[object, object] = {}
        self._defined: dict[ast.AST, tuple[Module, ast.AST | None]] = {}
        super().__init__(tree, path)

    def keep(self, make: Callable[["Module"], _T]) -> _T:
        """Return what a function makes of this module; it is made once, and kept as long as the module is."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return cast("_T", self._kept[make])

    def home_of(self, node: ast.AST) -> "Module":
        """Return the module in which a node stands."""
        return self._homes.get(node, self)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around `node`, the nearest first."""
        home = self.home_of(node)
        return super().ancestors(node) if home is self else home.ancestors(node)

    def values(self, name: ast.expr) -> list[ast.expr]:
        """Return the expressions that are assigned to a name, or to an attribute of `self`, where `name` stands."""
        home = self.home_of(name)
        return super().values(name) if home is self else [self._adopt(home, value) for value in home.values(name)]

    def _adopt(self, home: "Module", expr: ast.expr) -> ast.expr:
        if home is not self and expr not in self._homes:
            self._homes.update(dict.fromkeys(ast.walk(expr), home))
        return expr

    def value(self, expr: ast.expr | None) -> ast.expr | None:
        """Return the expression behind `expr`: the value of a name with one assignment, else `expr`.

        A call of a function of this package that only returns something stands for that, too.
        """
        returned = False
        for _ in range(_DEEPEST):
            inner = None
            if isinstance(expr, (ast.Name, ast.Attribute)):
                inner = self._find_assigned(expr)
            elif isinstance(expr, ast.Call) and not returned:
                inner, returned = self._find_result(expr), True
            if inner is None or inner is expr:
                break
            expr = inner
        return expr.value if isinstance(expr, ast.Await) else expr

    def _find_assigned(self, name: ast.Name | ast.Attribute) -> ast.expr | None:
        """Return the only expression that is assigned to a name, here or in its module; None if there is none."""
        home = self.home_of(name)
        values = home.values(name)
        if len(values) > 1:  # `client = None` only announces it
            values = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)]
            values = values if values and isinstance(values[0], ast.Call) else []
        if values:
            return self._adopt(home, values[0]) if len(values) == 1 else None
        if isinstance(name, ast.Name) and name.id not in home.imports:
            fixture = home.top.get(name.id)
            function = home.function_of(name) if isinstance(fixture, ast.FunctionDef) else None
            names = {argument.arg for argument in function.args.args} if function is not None else set[str]()
            return self._result(home, fixture) if isinstance(fixture, ast.FunctionDef) and name.id in names else None
        place, node = self.definition(name)
        if isinstance(node, ast.expr):
            return self._adopt(place, node)
        return self._result(place, node) if isinstance(node, ast.FunctionDef) and _is_property(node) else None

    def _find_result(self, call: ast.Call) -> ast.expr | None:
        """Return what a function of this package returns to a call, None if it is none or does more than that."""
        if call not in self._returned:
            self._returned[call] = None  # a circle ends here
            home, function = self.resolve_call(call)
            self._returned[call] = self._result(home, function) if function is not None else None
        return self._returned[call]

    def _result(self, home: "Module", function: Function) -> ast.expr | None:
        results = [node.value for node in walk_inside(function.body) if isinstance(node, (ast.Return, ast.Yield))]
        names = [home.local_name(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
        if len(results) != 1 or results[0] is None or any(n.rpartition(".")[2] not in _KEPT for n in names):
            return None
        return self._adopt(home, results[0])

    def local_name(self, expr: ast.expr | None, depth: int = 0) -> str:
        """Return the dotted name of an expression as this module says it, "" if it has none."""
        if isinstance(expr, ast.Name):
            if expr.id in self.imports:
                return self.imports[expr.id]
            values = self.values(expr)
            if len(values) == 1 and isinstance(values[0], (ast.Name, ast.Attribute)) and depth < _DEEPEST:
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
        if self._files is None or "." not in dotted or expr is None:
            return dotted
        place, node, rest = self._trace(home, dotted)
        if node is None:
            return rest
        if isinstance(node, (ast.Name, ast.Attribute)):
            return place.local_name(node) + rest
        return dotted

    def _trace(self, home: "Module", dotted: str) -> Place:
        """Return where a dotted name of a module leads, through the modules that only pass it on."""
        key = (id(home), dotted)
        if key not in self._traced:
            self._traced[key] = self._follow(home, dotted)
        return self._traced[key]

    def _follow(self, home: "Module", dotted: str) -> Place:
        for _ in range(_DEEPEST):
            found = self._files.find(home.path, dotted) if self._files is not None and home.path is not None else None
            if found is None or found[0] is home:
                break
            place, name, rest = cast("tuple[Module, str, str]", found)
            values = place.assigned.get((place.tree, name), [])
            if name in place.top:
                return place, place.top[name], rest
            if len(values) == 1 or (values and name not in place.imports):
                real = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)] or values
                return place, real[0] if len(real) == 1 else place.tree, rest
            if name not in place.imports:
                return place, place.tree, rest
            home, dotted = place, place.imports[name] + rest
        return home, None, dotted

    def definition(self, expr: ast.expr) -> tuple["Module", ast.AST | None]:
        """Return the module and the definition of an expression: a function, a class, or a value elsewhere."""
        if expr not in self._defined:
            self._defined[expr] = self, None  # a circle ends here
            self._defined[expr] = self._define(self.home_of(expr), expr)
        return self._defined[expr]

    def _define(self, home: "Module", expr: ast.expr) -> tuple["Module", ast.AST | None]:
        dotted = home.local_name(expr)
        own, _, rest = dotted[1:].partition(".")
        place: Module = home
        node: ast.AST | None = home.top.get(own) if dotted.startswith(".") else None
        if node is None and "." in dotted:
            place, node, rest = self._trace(home, dotted)
            rest = rest.removeprefix(".")
        if not rest and node is not None:
            return place, node
        if isinstance(node, ast.ClassDef) and "." not in rest:
            return place, self._find_in_class(place, node, rest)
        return self._member(self.value(expr.value), expr.attr) if isinstance(expr, ast.Attribute) else (place, None)

    def _member(self, made: ast.expr | None, name: str) -> tuple["Module", ast.AST | None]:
        """Return what defines an attribute of the object that a call of a class of this package makes."""
        if not isinstance(made, ast.Call) or not isinstance(made.func, (ast.Name, ast.Attribute)):
            return self, None
        place, node = self.definition(made.func)
        return place, self._find_in_class(place, node, name) if isinstance(node, ast.ClassDef) else None

    @staticmethod
    def _find_in_class(place: "Module", owner: ast.ClassDef, name: str) -> ast.AST | None:
        values = place.attributes.get((owner, name)) or place.assigned.get((owner, name), [])
        return place.methods.get((owner, name)) or (values[0] if len(values) == 1 else None)

    def resolve_call(self, call: ast.Call) -> tuple["Module", Function | None]:
        """Return the function that a call calls, in this module or another of its package, with its module."""
        home = self.home_of(call)
        function = home.method(call)
        if function is None and isinstance(call.func, (ast.Name, ast.Attribute)):
            home, node = self.definition(call.func)
            function = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        return home, function

    def constant(self, expr: ast.expr | None, depth: int = 0, width: int = 1) -> object:
        """Return the value of a constant expression: a number, text, or a collection of them. Ellipsis if unknown.

        `width` is the product of the numbers of parts around it: names that stand for each other twice would explode.
        """
        expr, depth = self.value(expr), depth + 1
        match expr:
            case _ if depth > 4 * _DEEPEST or width > _WIDEST:
                return ...  # a circle, or deeper than anybody writes
            case ast.Constant():
                return _small(expr.value)
            case ast.UnaryOp(op=ast.USub()):
                inner = self.constant(expr.operand, depth, width)
                return -inner if isinstance(inner, (int, float)) else ...
            case ast.List() | ast.Tuple() | ast.Set():
                width *= max(len(expr.elts), 1)
                return tuple(self.constant(item, depth, width) for item in expr.elts)
            case ast.Dict():
                pairs = zip(expr.keys, expr.values, strict=True)
                width *= max(2 * len(expr.keys), 1)
                return {
                    self.constant(key, depth, width) if key is not None else ...: self.constant(value, depth, width)
                    for key, value in pairs
                }
            case ast.BinOp():
                sides = (self.constant(side, depth, 2 * width) for side in (expr.left, expr.right))
                return _small(_number(expr.op, *sides))
            case ast.Call(func=ast.Name(id="frozenset" | "set" | "list" | "tuple"), args=[inner_expr]):
                return self.constant(inner_expr, depth, width)
            case _:
                return ...

    def items(self, expr: ast.expr | None) -> tuple[object, ...] | None:
        """Return the values of a constant list, tuple or set, None if it is none."""
        value = self.constant(expr)
        return cast("tuple[object, ...]", value) if isinstance(value, tuple) else None

    def method(self, call: ast.Call) -> Function | None:
        """Return the function of this module that `call` calls: by its name, or as a method of `self`."""
        match call.func:
            case ast.Name(id=name):
                target = self.top.get(name)
                return target if isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                owner = self.class_of(call)
                return self.methods.get((owner, name)) if owner is not None else None
            case _:
                return None


def sets_constant(module: Module, name: str, value: object) -> bool:
    """Return whether a module assigns a constant to an attribute with this dotted name, as the module says it."""
    assigns = [node for node in module.tree.body if isinstance(node, ast.Assign)]
    found = [node.value for node in assigns if name in map(module.local_name, node.targets)]
    return any(module.constant(expr) == value for expr in found)


def _small(value: object) -> object:
    """Return a value, or Ellipsis for a number that no float can hold."""
    return ... if isinstance(value, int) and value.bit_length() > 1000 else value


def _number(operator: ast.operator, left: object, right: object) -> object:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)) or type(operator) not in _OPERATORS:
        return ...
    if isinstance(operator, ast.Pow) and not (0 <= right <= 64 and abs(left) <= 64):
        return ...
    return _OPERATORS[type(operator)](left, right) if right or not isinstance(operator, ast.Div) else ...


def _is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in function.decorator_list)
