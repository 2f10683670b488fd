"""`truth`: the value of a condition for one status of HTTP, found by reading it. No value is ever computed."""

import ast
import operator as operators
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Literal

from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module

Status = int | None | Literal["any"]
"""A status; None for an error without one, such as a lost connection; "any" if nothing is known of it."""

GOOD: Final = (200, 201, 204)
FAILED: Final = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504)
"""The statuses that a loop is tried with."""

DOUBTFUL: Final = (500, 502, 503, 504)
"""Statuses that leave open whether the request was executed. A 429 proves that it was not."""

_RPC_STATUSES = {
    "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504, "INTERNAL": 500, "UNKNOWN": 500, "RESOURCE_EXHAUSTED": 429,
    "ABORTED": 409, "ALREADY_EXISTS": 409, "PERMISSION_DENIED": 403, "UNAUTHENTICATED": 401, "INVALID_ARGUMENT": 400,
}  # fmt: skip
"""The codes of gRPC by the statuses that mean the same; OK and NOT_FOUND are named so by HTTP, too."""

_GROUPS = {
    "ok": range(200, 400), "is_success": range(200, 300), "is_error": range(400, 600),
    "is_client_error": range(400, 500), "is_server_error": range(500, 600),
}  # fmt: skip


_ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operators.lt, ast.LtE: operators.le, ast.Gt: operators.gt, ast.GtE: operators.ge,
}  # fmt: skip


def truth(module: Module, test: ast.expr, status: Status) -> bool | None:
    """Return the value of a condition for a status, None if it depends on something else."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.BoolOp(op=operator, values=values):
            parts = [truth(module, value, status) for value in values]
            decisive = isinstance(operator, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(module, operand, status)
            return None if inner is None else not inner
        case _ if status == "any":
            return None
        case ast.Compare():
            sides = [test.left, *test.comparators]
            pairs = zip(sides, test.ops, sides[1:], strict=False)
            known = [_compare(module, left, operator, right, status) for left, operator, right in pairs]
            return False if False in known else None if None in known else True
        case ast.Attribute(attr=name) if name in _GROUPS:
            return None if status is None else status in _GROUPS[name]
        case _ if _counts_failures(test):
            return status not in GOOD
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, named]) | ast.Call(func=named):
            is_busy = patterns.TOO_MANY_REQUESTS.search(ast.unparse(named))
            return status == HTTPStatus.TOO_MANY_REQUESTS if is_busy else None
        case _:
            return None


def _compare(module: Module, left: ast.expr, operator: ast.cmpop, right: ast.expr, status: int | None) -> bool | None:
    """Return the value of one comparison; None if it is not about the status, or a side cannot be read."""
    if isinstance(operator, ast.In) and isinstance(left, ast.Constant) and isinstance(left.value, str):
        return _is_in_text(left.value, status)  # `"429" in str(error)`
    if isinstance(right, ast.Constant) and isinstance(right.value, str) and isinstance(operator, (ast.Eq, ast.NotEq)):
        found = _is_in_text(right.value, status)  # `error.code == "ratelimited"`
        return found if found is None or isinstance(operator, ast.Eq) else not found
    if isinstance(right, ast.Constant) and right.value == 0 and ast.unparse(left).endswith("returncode"):
        return (status is not None and status < HTTPStatus.BAD_REQUEST) is isinstance(operator, (ast.Is, ast.Eq))
    if isinstance(right, ast.Constant) and right.value == 0 and _counts_failures(left):
        return (status in GOOD) is isinstance(operator, (ast.Is, ast.Eq, ast.LtE))
    if isinstance(right, ast.Constant) and right.value is None and patterns.RESPONSES.search(ast.unparse(left)):
        return (status is None) is isinstance(operator, (ast.Is, ast.Eq))
    listed = module.items(right) or (module.constant(right),)
    has_text = any(isinstance(each, str) and not patterns.STATUS_NUMBER.search(each) for each in listed)
    if not (is_status(module, left) or is_status(module, right)) or has_text:
        return None  # a text that is no number is the state of a job, say
    first, second = numbers(module, left, status), numbers(module, right, status)
    if second is None and status in GOOD and isinstance(operator, (ast.In, ast.NotIn)):
        # a list that cannot be read: of failures, unless its name says success
        return bool(patterns.SUCCESS_STATUSES.search(ast.unparse(right))) is isinstance(operator, ast.In)
    if first is None or second is None or len(first) != 1:
        return None
    if isinstance(operator, (ast.Eq, ast.Is, ast.In)):
        return first[0] in second
    if isinstance(operator, (ast.NotEq, ast.IsNot, ast.NotIn)):
        return first[0] not in second
    return None if None in (first[0], second[0]) else _ORDERS[type(operator)](first[0], second[0])


def _counts_failures(expr: ast.expr) -> bool:
    """Return whether an expression is the part of an answer about what failed: `answer["FailedRecordCount"]`."""
    match expr:
        case (
            ast.Subscript(slice=ast.Constant(value=str() as key))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as key), *_])
        ):
            return bool(patterns.FAILED_PARTS.search(key))
        case _:
            return False


def _is_in_text(text: str, status: int | None) -> bool | None:
    if patterns.STATUS_NUMBER.search(text):
        return status == int(text)
    return status == HTTPStatus.TOO_MANY_REQUESTS if patterns.TOO_MANY_REQUESTS.search(text.replace(" ", "_")) else None


def is_status(module: Module, expr: ast.expr) -> bool:
    """Return whether an expression is the status of a response, or of the response of an error."""
    match expr:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as name), *_]):
            return bool(patterns.STATUS_NAMES.search(name))
        case ast.Call(func=ast.Name(id="int" | "str"), args=[inner]):
            return is_status(module, inner)
        case ast.Call(func=func):
            return bool(patterns.STATUS_GETTERS.search(ast.unparse(func)))
        case ast.Name(id=name):
            value = module.value(expr)
            return bool(patterns.STATUS_NAMES.search(name)) or (
                isinstance(value, ast.Attribute) and is_status(module, value)
            )
        case ast.Attribute(attr=name):
            return bool(patterns.STATUS_NAMES.search(name))
        case _:
            return False


def numbers(module: Module, expr: ast.expr, status: int | None = None) -> tuple[int | None, ...] | None:
    """Return the statuses that an expression stands for: those of a constant, or `status`. None if unknown."""
    named = _number_of_name(expr)
    if named is not None:
        return (named,)
    if is_status(module, expr):
        return (status,)
    value = module.constant(expr)
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str) and patterns.STATUS_NUMBER.search(value):
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


def _number_of_name(expr: ast.expr) -> int | None:
    """Return the number of a named status: HTTPStatus.NOT_FOUND, requests.codes.ok, status.HTTP_404_NOT_FOUND."""
    if isinstance(expr, ast.Attribute) and expr.attr == "value":
        expr = expr.value
    if not isinstance(expr, ast.Attribute):
        return None
    name = expr.attr.upper()
    if name in _RPC_STATUSES and ast.unparse(expr.value).endswith("StatusCode"):
        return _RPC_STATUSES[name]
    digits = patterns.NAMED_STATUS.search(name)
    if digits:
        return int(digits[1])
    if name not in HTTPStatus.__members__ or not (expr.attr == name or ast.unparse(expr.value).endswith("codes")):
        return None
    return int(HTTPStatus[name])
