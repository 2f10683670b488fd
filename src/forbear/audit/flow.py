"""The ways through a loop: what leaves it, which statuses repeat it, and what runs after a failure.

It reads statements, never values: a test that cannot be decided goes both ways.
"""

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Literal, cast

from forbear.audit.modules import Loop, Module, inside

End = Literal["leaves", "repeats", "goes on"]

FAILED_STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504)
"""The statuses that a loop is tried with."""

_STATUS_NAMES = ("status_code", "status", "code", "http_status")
_EXITS = ("sys.exit", "exit", "os._exit", "quit")
_WAITS = re.compile(r"sleep|wait|backoff|delay|pause")
_RAISES = re.compile(r"(?:^|[._])raise_(?!for_status)\w+$")
_RAISING = ("raise_for_status", "fail_json", "fail", "abort")


def operands(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the conditions that `and`, `or` and `not` join in a test."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from operands(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from operands(test.operand)
    else:
        yield test


def names_in(node: ast.AST) -> set[str]:
    """Return the names and the dotted attributes in a piece of code."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def is_exit(statement: ast.stmt) -> bool:
    """Return whether a statement leaves the loop: `return`, `raise`, `break`, or a call that ends the program."""
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    return name in _EXITS or bool(_RAISES.search(name))


def may_leave(nodes: list[ast.stmt], *kinds: type[ast.stmt]) -> bool:
    """Return whether code has a statement that leaves the loop (one of `kinds`, if given), or a call that raises."""
    for node in inside(nodes):
        if isinstance(node, kinds) if kinds else isinstance(node, ast.stmt) and is_exit(node):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RAISING:
            return True
    return False


def has(node: ast.AST, kind: type[ast.AST]) -> bool:
    """Return whether code has a node of this kind, outside of functions within."""
    return any(isinstance(part, kind) for part in inside([node]))


def continues(loop: Loop, handler: ast.ExceptHandler) -> bool:
    """Return whether the loop may go on after a handler."""
    return _Walk(None, None, _flags(loop)).ends(handler.body) != {"leaves"}


def about_errors(handlers: list[ast.ExceptHandler], code: list[ast.stmt]) -> set[str]:
    """Return the names that hold an error of these handlers, or something that `code` computes from it."""
    names = {handler.name for handler in handlers if handler.name}
    nodes = [*inside(code)]
    for _ in range(2):  # a name of a name
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                about = names_in(node.value) & names or "exc_info" in ast.unparse(node.value)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {ast.unparse(target) for target in targets} if about else set()
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                names |= {ast.unparse(node.func.value)} if names_in(node) & names else set()
    return names


def after(module: Module, loop: Loop, node: ast.AST) -> list[ast.stmt]:
    """Return the statements that follow `node` within an attempt, to the end of the loop."""
    rest: list[ast.stmt] = []
    while node is not loop:
        parent = module.parents[node]
        for name in ("body", "orelse", "finalbody"):
            statements = block(parent, name)
            if node in statements:
                rest += statements[next(i for i, s in enumerate(statements) if s is node) + 1 :]
        node = parent
    return rest


def failures(module: Module, loop: Loop, attempt: ast.Try) -> list[list[ast.stmt]]:
    """Return what runs after each error that does not leave the loop: the handler, and all that follows it."""
    rest = after(module, loop, attempt)
    return [[*handler.body, *rest] for handler in attempt.handlers if continues(loop, handler)]


def success_leaves(module: Module, loop: Loop, attempt: ast.Try) -> bool:
    """Return whether an attempt without an error leaves the loop, while one with an error may not."""
    walk = _Walk(module, 200, _flags(loop))
    rest = after(module, loop, attempt)
    ends = walk.ends([*attempt.body, *attempt.orelse, *rest])
    if "leaves" not in ends or "goes on" in ends:
        return False
    if "repeats" in ends and not any(
        isinstance(n, ast.Call) and _WAITS.search(ast.unparse(n.func)) for n in inside(loop.body)
    ):
        return False  # it goes on after a success, too, without a wait: a pump
    failed = _Walk(module, None, _flags(loop))  # an error may carry any status
    return any(failed.ends(path) != {"leaves"} for path in failures(module, loop, attempt))


def repeated_statuses(module: Module, loop: Loop) -> tuple[int, ...]:
    """Return the failed statuses of HTTP that repeat a loop, empty if a status 200 may repeat it, too."""
    flags = _flags(loop)
    if _Walk(module, 200, flags).ends(loop.body) != {"leaves"}:
        return ()
    walks = ((status, _Walk(module, status, flags)) for status in FAILED_STATUSES)
    return tuple(status for status, walk in walks if walk.ends(loop.body) != {"leaves"})


def decide(module: Module | None, test: ast.expr, status: int | None) -> bool | None:
    """Return the value of a test if the response has this status, None if it depends on something else."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.BoolOp():
            values = [decide(module, value, status) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            return decisive if decisive in values else None if None in values else not decisive
        case ast.UnaryOp(op=ast.Not()):
            value = decide(module, test.operand, status)
            return None if value is None else not value
        case ast.Attribute(attr="ok" | "is_success") if status is not None:
            return status < 400
        case ast.Attribute(attr="is_error") if status is not None:
            return status >= 400
        case ast.Compare() if module is not None and status is not None:
            sides = [test.left, *test.comparators]
            pairs = zip(sides, test.ops, sides[1:], strict=False)
            values = [_compare(module, left, op, right, status) for left, op, right in pairs]
            return False if False in values else None if None in values else True
        case _:
            return None


def block(parent: ast.AST, name: str) -> list[ast.stmt]:
    """Return the statements in a field of a node, none where the field has something else."""
    value: object = getattr(parent, name, None)
    return [s for s in cast("list[object]", value) if isinstance(s, ast.stmt)] if isinstance(value, list) else []


def _compare(module: Module, left: ast.expr, op: ast.cmpop, right: ast.expr, status: int) -> bool | None:
    first, second = _value(module, left, status), _value(module, right, status)
    if not (_is_status(left) or _is_status(right)):
        return None
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(second, tuple):
        return (first in second) is isinstance(op, ast.In)
    if isinstance(op, (ast.In, ast.NotIn)) and status == 200 and not isinstance(right, ast.Constant):
        good = any(word in ast.unparse(right).lower() for word in ("ok", "success", "accept", "expected", "good"))
        return good is isinstance(op, ast.In)  # a list that cannot be read: of failures, unless its name says success
    if not isinstance(first, int) or not isinstance(second, int):
        return None
    table: dict[type[ast.cmpop], bool] = {
        ast.Eq: first == second,
        ast.NotEq: first != second,
        ast.Lt: first < second,
        ast.LtE: first <= second,
    }
    table |= {ast.Gt: first > second, ast.GtE: first >= second, ast.Is: first == second, ast.IsNot: first != second}
    return table.get(type(op))


def _is_status(expr: ast.expr) -> bool:
    if isinstance(expr, ast.Call):
        return ast.unparse(expr.func).endswith(("status_code", "getcode", "get_status"))
    return (isinstance(expr, ast.Attribute) and expr.attr in _STATUS_NAMES) or (
        isinstance(expr, ast.Name) and expr.id in _STATUS_NAMES
    )


def _value(module: Module, expr: ast.expr, status: int) -> object:
    """Return the status, a constant, or the number that a name of HTTPStatus or requests.codes stands for."""
    if _is_status(expr):
        return status
    if isinstance(expr, (ast.Tuple, ast.List, ast.Set)):
        return tuple(_value(module, item, status) for item in expr.elts)
    name = expr.attr.upper() if isinstance(expr, ast.Attribute) else ""
    return HTTPStatus[name].value if name in HTTPStatus.__members__ else module.constant(expr)


def _flags(loop: Loop) -> frozenset[str]:
    """Return the names in the test of a `while`: a constant assigned to one of them is a way out."""
    return frozenset(names_in(loop.test)) if isinstance(loop, ast.While) else frozenset()


class _Walk:
    """All ways through statements that a response with `status` may take."""

    def __init__(self, module: Module | None, status: int | None, flags: frozenset[str]) -> None:
        self._module = module
        self._status = status
        self._flags = flags

    def ends(self, body: list[ast.stmt]) -> set[End]:
        """Return how statements may end: they leave the loop, repeat it by `continue`, or go on at their end."""
        result: set[End] = set()
        for statement in body:
            result.discard("goes on")
            ends = self._step(statement)
            result |= ends
            if "goes on" not in ends:
                return result
        return result or {"goes on"}

    def _step(self, statement: ast.stmt) -> set[End]:
        match statement:
            case ast.Continue():
                return {"repeats"}
            case ast.If():
                way = decide(self._module, statement.test, self._status)
                taken = [statement.body] if way is not False else []
                taken += [statement.orelse] if way is not True else []
                return {end for branch in taken for end in self.ends(branch)}
            case ast.With() | ast.AsyncWith():
                return self.ends(statement.body)
            case ast.Try():
                return self.ends([*statement.body, *statement.orelse, *statement.finalbody])
            case ast.For() | ast.AsyncFor() | ast.While():
                return {"goes on", "leaves"} if may_leave(statement.body, ast.Return) else {"goes on"}
            case ast.Assign(value=ast.Constant(value=bool())) if self._flags & {
                ast.unparse(t) for t in statement.targets
            }:
                return {"leaves"}
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="raise_for_status"))) if (self._status or 0) >= 400:
                return {"leaves"}
            case _:
                return {"leaves"} if is_exit(statement) else {"goes on"}
