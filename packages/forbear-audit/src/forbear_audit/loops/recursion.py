"""Retries without a loop: functions that call themselves, read as the loop that does the same, and second chances."""

import ast
import copy
from collections.abc import Iterator
from itertools import islice
from typing import cast

from forbear_audit.libraries.errors import error_names
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import Limits, RepeatedCode, RetriedErrors, RetryPolicy
from forbear_audit.reading.scopes import Function, walk_inside
from forbear_audit.reading.syntax import calls_in, statements_of_handlers

_LARGEST = 400  # nodes of a function that is copied


def find_recursions(module: Module) -> list[ast.While]:
    """Return the loops that stand for functions of a module which call themselves in or after an error handler."""
    loops = list[ast.While]()
    for function in module.functions:
        calls = [call for call in module.calls_of(function.name) if module.function_of(call) is function]
        calls = [call for call in calls if module.resolve_call(call)[1] is function]
        if len(calls) != 1:
            continue
        tries = [node for node in function.body if isinstance(node, ast.Try)]
        tests = [node for node in function.body if isinstance(node, ast.If)]
        after = function.body[function.body.index(tries[-1]) + 1 :] if tries else tests
        again = [call for call in calls_in([*statements_of_handlers(tries), *after]) if call is calls[0]]
        nodes = (node for statement in function.body for node in ast.walk(statement))
        if again and len([*islice(nodes, _LARGEST)]) < _LARGEST:
            loops.append(_unroll(module, function, again[0], (tries or tests)[0]))
    return loops


def find_second_chances(module: Module) -> Iterator[tuple[RetryPolicy, RepeatedCode, ast.Try]]:
    """Yield the retries that make the same call once more in an error handler."""
    for attempt in module.tries:
        plain = [statement for statement in attempt.body if not hasattr(statement, "body")]
        made = {ast.unparse(call) for call in calls_in(plain) if call.args or call.keywords}
        for handler in attempt.handlers if made else ():
            again = [call for call in calls_in(handler.body) if ast.unparse(call) in made]
            if again and isinstance(module.parents[again[-1]], (ast.Expr, ast.Assign, ast.Return, ast.Await)):
                names = ("Exception",) if handler.type is None else error_names(module, handler.type)
                policy = RetryPolicy("loop", Limits(2), errors=RetriedErrors(names, has_predicate=True))
                body = [
                    statement
                    for statement in attempt.body
                    if any(ast.unparse(c) == ast.unparse(again[-1]) for c in calls_in([statement]))
                ]
                yield policy, RepeatedCode(body, module.function_of(attempt), by_call=True), attempt


def _unroll(module: Module, function: Function, again: ast.Call, place: ast.stmt) -> ast.While:
    """Return `while True` over a copy of a function, in which the call of itself sets the parameters and goes on."""
    passed = module.pass_arguments(function, again, module)
    steps = [
        _step(module, name, value)
        for name, value in passed.items()
        if ast.unparse(value) not in (name, f"{{**{name}}}", f"(*{name},)")
    ]
    loop = ast.copy_location(
        ast.While(ast.Constant(value=True), [*copy.deepcopy(function.body), ast.Return()], []), place
    )
    for parent in [*ast.walk(loop)]:
        for name in ("body", "orelse", "finalbody"):
            value: object = getattr(parent, name, None)
            block = cast("list[ast.stmt]", value) if isinstance(value, list) else []
            for at, statement in enumerate(block):
                inside = (node for node in walk_inside([statement]) if isinstance(node, ast.Call))
                if not hasattr(statement, "body") and any(_locate(node) == _locate(again) for node in inside):
                    parts = [ast.copy_location(part, statement) for part in (*steps, ast.Continue())]
                    block[at : at + 1] = parts
                    break
    ast.fix_missing_locations(loop)
    module.parents[loop] = function
    module.parents.update({child: node for node in ast.walk(loop) for child in ast.iter_child_nodes(node)})
    return loop


def _step(module: Module, name: str, value: ast.expr) -> ast.stmt:
    value = module.adopt(module.home_of(value), copy.deepcopy(value))
    match value:
        case ast.BinOp(left=ast.Name(id=left), op=(ast.Add() | ast.Sub()) as op, right=right) if left == name:
            return ast.AugAssign(ast.Name(name, ast.Store()), op, right)
        case _:
            return ast.Assign([ast.Name(name, ast.Store())], value)


def _locate(node: ast.Call) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
