"""Readers of a piece of code: its calls, names and texts. The bodies of functions within are left out."""

import ast
import operator as operators
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from forbear_audit.reading.scopes import walk_inside

_Node = TypeVar("_Node", bound=ast.AST)
_K = TypeVar("_K")
_V = TypeVar("_V")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operators.add, ast.Sub: operators.sub, ast.Mult: operators.mul, ast.Pow: pow,
    ast.Div: lambda one, other: one / other,
}  # fmt: skip


def group(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Return the values of pairs by their keys."""
    found = dict[_K, list[_V]]()
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def find_all(nodes: Iterable[ast.AST], kind: type[_Node]) -> Iterator[_Node]:
    """Yield the nodes of one kind in a piece of code, in the order of the text."""
    return (node for node in walk_inside(nodes) if isinstance(node, kind))


def calls_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls in a piece of code, in the order of the text."""
    return find_all(nodes, ast.Call)


def functions_in(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the texts of the functions that code calls, such as "self.client.post"."""
    return [_shorten(call.func) for call in calls_in(nodes)]


def _shorten(function: ast.expr) -> str:
    """Return the text of a function without what is passed to the calls in it: `client.query().result`."""
    match function:
        case ast.Attribute(value=owner, attr=name):
            return f"{_shorten(owner)}.{name}"
        case ast.Call(func=inner):
            return f"{_shorten(inner)}()"
        case _:
            return ast.unparse(function)


def calls_method(nodes: Iterable[ast.AST], *names: str) -> bool:
    """Return whether code calls a method with one of these names."""
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in names for call in calls_in(nodes))


def texts_in(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the texts that stand in code, such as messages; "{}" stands for each value in an f-string."""
    result: list[str] = []
    parts: set[int] = set()
    for node in walk_inside(nodes):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            result.append("".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            result.append(node.value)
    return result


def names_stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code assigns."""
    return {name.id for name in find_all(nodes, ast.Name) if isinstance(name.ctx, ast.Store)}


def targets_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and attributes that code assigns."""
    found = [node for node in walk_inside(nodes) if isinstance(node, (ast.Name, ast.Attribute))]
    return {ast.unparse(node) for node in found if isinstance(node.ctx, ast.Store)}


def plain_names_in(node: ast.AST) -> set[str]:
    """Return the names in a piece of code, without attributes."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def names_in(node: ast.AST) -> set[str]:
    """Return the names and the dotted attributes in a piece of code."""
    return plain_names_in(node) | {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def walk_assigned(nodes: Iterable[ast.AST], expr: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that code assigns to the names in `expr`, or adds to them."""
    names = plain_names_in(expr)
    for node in walk_inside(nodes):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(plain_names_in(target) & names for target in targets if not isinstance(target, ast.Subscript)):
                yield node.value


def statements_of_handlers(nodes: Iterable[ast.AST]) -> list[ast.stmt]:
    """Return the statements in the error handlers of a piece of code."""
    return join_bodies(find_all(nodes, ast.ExceptHandler))


def join_bodies(nodes: Iterable[ast.ExceptHandler | ast.Try]) -> list[ast.stmt]:
    """Return the statements in error handlers, or in attempts."""
    return [statement for node in nodes for statement in node.body]


def has(node: ast.AST, kind: type[ast.AST]) -> bool:
    """Return whether code has a node of this kind."""
    return any(isinstance(part, kind) for part in walk_inside([node]))


def operands(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the conditions that `and`, `or` and `not` join in a test."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from operands(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from operands(test.operand)
    else:
        yield test


def keep_simple(value: object) -> object:
    """Return a value, or Ellipsis for a complex number and one that no float can hold."""
    return ... if isinstance(value, complex) or (isinstance(value, int) and value.bit_length() > 1000) else value


def make_key(value: object) -> object:
    """Return the key of a dictionary, or Ellipsis for a collection: it may have no hash."""
    return ... if isinstance(value, (tuple, dict)) else value


def compute_number(operator: ast.operator, left: object, right: object) -> object:
    """Return what an operator makes of two numbers, or Ellipsis if they are none or the result may be huge."""
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)) or type(operator) not in _OPERATORS:
        return ...
    if isinstance(operator, ast.Pow) and not (0 <= right <= 64 and abs(left) <= 64):
        return ...
    return _OPERATORS[type(operator)](left, right) if right or not isinstance(operator, ast.Div) else ...
