"""`goes_on`: whether code goes on after a status of HTTP, found by reading its conditions for that status."""

import ast
import re
from http import HTTPStatus

from forbear.audit.errors import is_status_error
from forbear.audit.libraries.decorators import error_names
from forbear.audit.modules import Loop, Module, following
from forbear.audit.packages import called

DOUBTFUL = (500, 502, 503, 504)
"""Statuses that leave open whether the request was executed. A 429 proves that it was not."""

_GOOD = (200, 201, 204)
ON, AGAIN, OUT = "on", "again", "out"
_RAISES = "raise "  # with the dotted name of the error behind it
_CODE = re.compile(r"^(?:(?:\w+_)?(?:status_code|http_status|http_code)|status|statusCode|code)$")
_BUSY = re.compile(r"rate_?limit|throttl|too_?many_?requests|TooManyRequests|RateLimit|quota", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)[1-5]\d\d(?!\d)")
_DEEPEST = 2  # functions within functions
_GROUPS = {
    "ok": range(200, 400), "is_success": range(200, 300), "is_error": range(400, 600),
    "is_client_error": range(400, 500), "is_server_error": range(500, 600),
}  # fmt: skip


def goes_on(module: Module, body: list[ast.stmt], status: int | None) -> bool:
    """Return whether code may reach its end, or the next round of its loop, after a response with this status.

    None stands for an error without a status, such as a lost connection. A condition that cannot be read may be
    true or false.
    """
    return bool(_block(module, body, status, 0) & {ON, AGAIN})


def survives(module: Module, loop: Loop, attempt: ast.Try, handler: ast.ExceptHandler, status: int | None) -> bool:
    """Return whether a loop may go on after an error with this status: past its handler, and past what follows it."""
    ways = _block(module, handler.body, status, 0)
    for parent in (attempt, *module.ancestors(attempt)):
        if parent is loop or ON not in ways:
            break
        if isinstance(parent, ast.stmt):
            ways = ways - {ON} | _block(module, following(module, parent), status, 0)
    return bool(ways & {ON, AGAIN})


def repeats(module: Module, loop: Loop, status: int) -> bool:
    """Return whether a loop surely ends after a success, and may go on after this status."""
    return any(not goes_on(module, loop.body, good) for good in _GOOD) and goes_on(module, loop.body, status)


def returned(module: Module, function: ast.AST, status: int | None) -> set[bool | None]:
    """Return what a predicate may return for a status: True, False, or None for what cannot be read."""
    if isinstance(function, ast.Lambda):
        return {_truth(module, function.body, status)}
    if not isinstance(function, ast.FunctionDef):
        return {None}
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    return {_truth(module, value, status) for value in values}


def _block(module: Module, body: list[ast.stmt], status: int | None, depth: int) -> set[str]:
    """Return the ways out of a block: to its end, to the next round, out of the loop, or by an error."""
    ways = {ON}
    for statement in body:
        ways = ways - {ON} | _ways(module, statement, status, depth)
        if ON not in ways:
            break
    return ways


def _ways(module: Module, statement: ast.stmt, status: int | None, depth: int) -> set[str]:
    match statement:
        case ast.Return() | ast.Break():
            return {OUT}
        case ast.Continue():
            return {AGAIN}
        case ast.Raise(exc=error):
            made = error.func if isinstance(error, ast.Call) else error
            return {_RAISES + module.dotted(made)}
        case ast.If():
            truth = _truth(module, statement.test, status)
            ways = _block(module, statement.body, status, depth) if truth is not False else set[str]()
            return ways | (_block(module, statement.orelse, status, depth) if truth is not True else set[str]())
        case ast.With() | ast.AsyncWith():
            return _block(module, statement.body, status, depth)
        case ast.For() | ast.AsyncFor() | ast.While():
            inner = _block(module, statement.body, status, depth)
            return {ON} | {way for way in inner if way.startswith(_RAISES)}
        case ast.Try():
            return _try(module, statement, status, depth)
        case ast.Expr(value=value):
            value = value.value if isinstance(value, ast.Await) else value
            return _call(module, value, status, depth) if isinstance(value, ast.Call) else {ON}
        case _:
            return {ON}


def _try(module: Module, attempt: ast.Try, status: int | None, depth: int) -> set[str]:
    ways = _block(module, [*attempt.body, *attempt.orelse], status, depth)
    for way in [way for way in ways if way.startswith(_RAISES)]:
        name = way.removeprefix(_RAISES)
        for handler in attempt.handlers:
            if _catches(module, handler, name):
                ways.discard(way)
                ways |= _block(module, handler.body, status, depth)
                break
    return ways


def _catches(module: Module, handler: ast.ExceptHandler, name: str) -> bool:
    types = ("BaseException",) if handler.type is None else error_names(module, handler.type) or ()
    last = name.rpartition(".")[2]
    return any(
        each in ("Exception", "BaseException")
        or (last and each.rpartition(".")[2] == last)
        or (is_status_error(name) and is_status_error(each))
        for each in types
    )


def _call(module: Module, call: ast.Call, status: int | None, depth: int) -> set[str]:
    """Return the ways out of a call: `raise_for_status()`, an exit, or a function whose body can be read."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "raise_for_status":
        return {ON} if status is None or status < 400 else {f"{_RAISES}requests.HTTPError"}
    if module.dotted(call.func) in ("sys.exit", "exit", "os._exit"):
        return {OUT}
    home, function = called(module, call)
    if function is None or depth >= _DEEPEST or not any(isinstance(n, ast.Raise) for n in ast.walk(function)):
        return {ON}
    inner = _block(home, function.body, status, depth + 1)
    return {way for way in inner if way.startswith(_RAISES)} | ({ON} if inner & {ON, OUT} else set[str]())


def _truth(module: Module, test: ast.expr, status: int | None) -> bool | None:
    """Return the value of a condition for a status, None if it depends on something else."""
    match test:
        case ast.BoolOp(op=operator, values=values):
            parts = [_truth(module, value, status) for value in values]
            decisive = isinstance(operator, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _truth(module, operand, status)
            return None if inner is None else not inner
        case ast.Compare():
            return _compare(module, test, status)
        case ast.Constant(value=bool() as value):
            return value
        case ast.Attribute(attr=name) if name in _GROUPS:
            return None if status is None else status in _GROUPS[name]
        case ast.Call(func=func) if _BUSY.search(ast.unparse(func)):
            return status == HTTPStatus.TOO_MANY_REQUESTS
        case ast.Call(func=func, args=[ast.expr(), kind, *_]) if ast.unparse(func) == "isinstance":
            return status == HTTPStatus.TOO_MANY_REQUESTS if _BUSY.search(ast.unparse(kind)) else None
        case _:
            return None


def _compare(module: Module, test: ast.Compare, status: int | None) -> bool | None:
    sides = [test.left, *test.comparators]
    results: list[bool | None] = []
    for left, operator, right in zip(sides, test.ops, sides[1:], strict=False):
        if isinstance(operator, ast.In) and isinstance(left, ast.Constant) and isinstance(left.value, str):
            results.append(_in_text(left.value, status))  # `"429" in str(error)`
            continue
        if isinstance(right, ast.Constant) and right.value is None and ast.unparse(left).endswith("response"):
            results.append((status is None) is isinstance(operator, (ast.Is, ast.Eq)))
            continue
        if not (is_status(module, left) or is_status(module, right)):
            results.append(None)
            continue
        results.append(_order(operator, numbers(module, left, status), numbers(module, right, status), status))
    return False if False in results else None if None in results else True


def _in_text(text: str, status: int | None) -> bool | None:
    if _NUMBER.fullmatch(text):
        return status == int(text)
    return status == HTTPStatus.TOO_MANY_REQUESTS if _BUSY.search(text.replace(" ", "_")) else None


def _order(
    operator: ast.cmpop, left: tuple[int | None, ...] | None, right: tuple[int | None, ...] | None, status: int | None
) -> bool | None:
    """Return the value of one comparison; None if a side cannot be read."""
    if left is None or right is None or len(left) != 1:
        return None
    if isinstance(operator, (ast.Eq, ast.Is, ast.In)):
        return left[0] in right
    if isinstance(operator, (ast.NotEq, ast.IsNot, ast.NotIn)):
        return left[0] not in right
    if status is None or left[0] is None or right[0] is None:
        return None
    first, second = left[0], right[0]
    return (
        first < second
        if isinstance(operator, ast.Lt)
        else first <= second
        if isinstance(operator, ast.LtE)
        else (first > second if isinstance(operator, ast.Gt) else first >= second)
    )


def is_status(module: Module, expr: ast.expr) -> bool:
    """Return whether an expression is the status of a response, or of the response of an error."""
    if isinstance(expr, ast.Call):
        options = [a.value for a in expr.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        inner = ast.unparse(expr.func)
        return (inner == "getattr" and any(map(_CODE.search, options))) or (
            inner in ("int", "str") and len(expr.args) == 1 and is_status(module, expr.args[0])
        )
    if isinstance(expr, ast.Name):
        value = module.value(expr)
        return bool(_CODE.search(expr.id)) or (
            value is not expr and isinstance(value, ast.Attribute) and is_status(module, value)
        )
    return isinstance(expr, ast.Attribute) and bool(_CODE.search(expr.attr))


def numbers(module: Module, expr: ast.expr, status: int | None = None) -> tuple[int | None, ...] | None:
    """Return the statuses that an expression stands for: those of a constant, or `status`. None if unknown."""
    named = _named(module, expr)
    if named is not None:
        return (named,)
    if is_status(module, expr):
        return (status,)
    value = module.constant(expr)
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return (int(value),)
    if isinstance(expr, ast.Call) and ast.unparse(expr.func) == "range" and len(expr.args) == 2:
        bounds = [module.constant(item) for item in expr.args]
        if isinstance(bounds[0], int) and isinstance(bounds[1], int) and bounds[1] - bounds[0] <= 1000:
            return tuple(range(bounds[0], bounds[1]))
    source = module.value(expr)
    if isinstance(source, ast.Call) and len(source.args) == 1 and isinstance(source.func, ast.Name):
        source = source.args[0]  # set([429, 503])
    if isinstance(source, (ast.Tuple, ast.List, ast.Set)):
        parts = [numbers(module, item) for item in source.elts]
        return None if None in parts else tuple(number for part in parts for number in part or ())
    return None


def _named(module: Module, expr: ast.expr) -> int | None:
    """Return the number of a named status: HTTPStatus.NOT_FOUND, requests.codes.ok, status.HTTP_404_NOT_FOUND."""
    if isinstance(expr, ast.Attribute) and expr.attr == "value":
        expr = expr.value
    if not isinstance(expr, ast.Attribute):
        return None
    name = expr.attr.upper()
    digits = re.match(r"HTTP_(\d{3})", name)
    if digits:
        return int(digits[1])
    owner = module.dotted(expr.value).rpartition(".")[2]
    return int(HTTPStatus[name]) if owner in ("HTTPStatus", "codes") and name in HTTPStatus.__members__ else None
