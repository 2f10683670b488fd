"""A parsed file and its names: which import, function, class or constant an expression stands for."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_WIDEST = 1000  # parts of a constant
_DEEPEST = 5  # steps from a name to its value: more are a circle, or nothing a reader would follow either


class Module:
    """One file: its tree, its imports, its definitions, and the parent of every node.

    `path` is the file, for imports from the same package; None for text that has no place. `follows` is whether calls
    into other files are followed.
    """

    def __init__(self, tree: ast.Module, path: Path | None = None, *, follows: bool = True) -> None:
        self.tree = tree
        self.path = path
        self.follows = follows
        self.followed: dict[Path, int] = {}
        """The files that were followed, with their sizes in bytes."""
        self.followed_bytes = 0
        self.parents: dict[ast.AST, ast.AST] = {}
        self.imports: dict[str, str] = {}
        self.functions: list[Function] = []
        self.calls: list[ast.Call] = []
        self.loops: list[Loop] = []
        self.configs: list[ast.Constant] = []
        """The texts that may be, or be a key of, a service config of gRPC."""
        self.top: dict[str, Function | ast.ClassDef] = {}
        self.methods: dict[tuple[ast.ClassDef, str], Function] = {}
        """The functions in the body of each class, by its class and name."""
        self.items_set: dict[tuple[ast.AST, str], list[ast.keyword]] = {}
        """The values of `options["key"] = value` in each function, by the function and the name of the dictionary."""
        self._values: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        self._attributes: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        level: list[ast.AST] = [tree]
        for parent in level:  # it grows while it is read
            children = list(ast.iter_child_nodes(parent))
            for child in children:
                self.parents[child] = parent
            level += children
            self._enter(parent)
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.top[node.name] = node

    def _enter(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    self.imports[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            case ast.ImportFrom():
                base = "." * node.level + (node.module or "")
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (
                        f"{base}.{alias.name}" if node.module else base + alias.name
                    )
            case ast.Constant(value=str() as text) if "retryPolicy" in text:
                self.configs.append(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.append(node)
                around = self.parents[node]
                if isinstance(around, ast.ClassDef):
                    self.methods.setdefault((around, node.name), node)
            case ast.Call():
                self.calls.append(node)
            case ast.For() | ast.AsyncFor() | ast.While():
                self.loops.append(node)
            case ast.Assign():
                for target in node.targets:
                    self._assign(node, target, node.value)
                match node.targets:
                    case [ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str() as key))]:
                        item = ast.keyword(arg=key, value=node.value)
                        self.items_set.setdefault((self.scope(node), owner), []).append(item)
                    case _:
                        pass
            case ast.AnnAssign(value=ast.expr() as value):
                self._assign(node, node.target, value)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._assign(node, target, node.context_expr)
            case ast.NamedExpr():
                self._assign(node, node.target, node.value)
            case _:
                pass

    def _assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault((self.scope(node), target.id), []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            owner = self.class_of(node)
            if owner is not None:
                self._attributes.setdefault((owner, target.attr), []).append(value)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around `node`, the nearest first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function, class or module whose names `node` sees."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, _SCOPES)), self.tree)

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the function around `node`, None at the top of the module."""
        return next(
            (parent for parent in self.ancestors(node) if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef))),
            None,
        )

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class around `node`, None if there is none."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, ast.ClassDef)), None)

    def values(self, name: ast.expr) -> list[ast.expr]:
        """Return the expressions that are assigned to a name, or to an attribute of `self`, where `name` stands."""
        if isinstance(name, ast.Name):
            for scope in (*(p for p in self.ancestors(name) if isinstance(p, _SCOPES)), self.tree):
                if (scope, name.id) in self._values:
                    return self._values[scope, name.id]
        elif isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id in ("self", "cls"):
            owner = self.class_of(name)
            if owner is not None:
                return self._attributes.get((owner, name.attr)) or self._values.get((owner, name.attr), [])
        return []

    def value(self, expr: ast.expr | None) -> ast.expr | None:
        """Return the expression behind `expr`: the value of a name with one assignment, else `expr`."""
        for _ in range(_DEEPEST):
            if not isinstance(expr, (ast.Name, ast.Attribute)):
                break
            values = self.values(expr)
            if len(values) != 1:
                break
            expr = values[0]
        return expr.value if isinstance(expr, ast.Await) else expr

    def name_of(self, expr: ast.expr | None, depth: int = 0) -> str:
        """Return the full dotted name of an expression, such as "tenacity.retry"; "" if it has none.

        A name that the module defines itself begins with ".", a builtin or an unknown name has no dot.
        """
        if isinstance(expr, ast.Name):
            if expr.id in self.imports:
                return self.imports[expr.id]
            values = self.values(expr)
            if len(values) == 1 and isinstance(values[0], (ast.Name, ast.Attribute)) and depth < _DEEPEST:
                inner = values[0]
                return "" if isinstance(inner, ast.Name) and inner.id == expr.id else self.name_of(inner, depth + 1)
            return f".{expr.id}" if expr.id in self.top or values else expr.id
        if isinstance(expr, ast.Attribute):
            base = self.name_of(expr.value, depth)
            return f"{base}.{expr.attr}" if base else ""
        return ""

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


def _small(value: object) -> object:
    """Return a value, or Ellipsis for a number that no float can hold."""
    return ... if isinstance(value, int) and value.bit_length() > 1000 else value


def _number(operator: ast.operator, left: object, right: object) -> object:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return ...
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div() if right:
            return left / right
        case ast.Pow() if 0 <= right <= 64 and abs(left) <= 64:
            return left**right
        case _:
            return ...


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """Return the value of the first of these keyword arguments that a call has, None if it has none."""
    return next((item.value for name in names for item in call.keywords if item.arg == name), None)


def has_unknown(call: ast.Call) -> bool:
    """Return whether a call passes keywords that cannot be read: `**options`."""
    return any(item.arg is None for item in call.keywords)


def walk_inside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes and all below them, in the order of the text, without the bodies of functions within."""
    stack = [*nodes][::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend([*ast.iter_child_nodes(node)][::-1])


def following(module: Module, statement: ast.AST) -> list[ast.stmt]:
    """Return the statements that follow one in its block, none if a node is no statement."""
    parent = module.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        value: object = getattr(parent, name, None)
        items = cast("list[ast.stmt]", value) if isinstance(value, list) else []  # a lambda's body is no list
        if statement in items:
            return items[next(i for i, item in enumerate(items) if item is statement) + 1 :]
    return []


def from_package(dotted: str, package: str, *names: str) -> bool:
    """Return whether a dotted name is one of `names` of a package or of its modules; without names, any of them."""
    if dotted != package and not dotted.startswith(f"{package}."):
        return False
    return not names or dotted.rpartition(".")[2] in names
