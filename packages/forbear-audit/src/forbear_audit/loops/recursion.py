"""Retries without a loop: functions that call themselves, read as the loop that does the same, and second chances."""

import ast
import copy
from collections.abc import Iterator
from itertools import islice
from typing import cast

from forbear_audit.libraries.errors import error_names, is_doubtful
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import GIVES_BACK
from forbear_audit.reading.retry_use import Flaw, Limits, RepeatedCode, RetriedErrors, RetryPolicy, Waits
from forbear_audit.reading.scopes import Function, keyword, walk_inside
from forbear_audit.reading.syntax import calls_in, statements_of_handlers, texts_in

_TAKES = ("get", "pop", "popleft", "get_nowait", "lpop", "rpop")
_PUTS = ("append", "put", "put_nowait", "appendleft", "insert", "add", "lpush", "rpush", "extend")
_ENDLESS = "what fails goes back to its queue each time, and nothing counts how often"
_GIVES_BACK = ("basic_nack", "basic_reject")
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
                if names is not None and not any(is_doubtful(name, "network") for name in names):
                    continue
                policy = RetryPolicy("loop", Limits(2), errors=RetriedErrors(names, has_predicate=True))
                text = ast.unparse(again[-1])
                body = [s for s in attempt.body if any(ast.unparse(call) == text for call in calls_in([s]))]
                yield policy, RepeatedCode(body, module.function_of(attempt), by_call=True), attempt


def find_requeued(module: Module) -> Iterator[tuple[RetryPolicy, RepeatedCode, ast.Try]]:
    """Yield the retries of loops that put what failed back to where they take it from, or into what they read next.

    So does who gives a message back to its queue.
    """
    read = dict[Function, set[str]]()
    for attempt in module.tries:
        function = module.function_of(attempt)
        for handler in attempt.handlers if function is not None else ():
            # a message that is rejected with requeue=False does not come again
            calls = {call: module.constant(keyword(call, "requeue")) for call in calls_in(handler.body)}
            made = [call.func for call, back in calls.items() if back is not False]
            puts = [each.value for each in made if isinstance(each, ast.Attribute) and each.attr in _PUTS]
            if puts and function is not None and function not in read:
                read[function] = {*_list_read(function)}
            again = function is not None and {*map(ast.unparse, puts)} & read.get(function, set())
            if again or any(map(GIVES_BACK.search, (*map(ast.unparse, made), *texts_in(handler.body)))):
                names = ("Exception",) if handler.type is None else error_names(module, handler.type)
                errors = RetriedErrors(names, has_predicate=True)
                plain = calls_in(s for s in handler.body if isinstance(s, ast.Expr))
                flaws: list[Flaw] = [("UNBOUNDED", attempt, _ENDLESS) for call in plain if calls[call] is True]
                if any(is_doubtful(name, "network") for name in names or ()):
                    back = filter(_returns_at_once, calls_in(handler.body))
                    flaws += [("FIXED", call, "the broker sends it again at once") for call in islice(back, 1)]
                policy = RetryPolicy("loop", waits=Waits(reads_header=True), errors=errors, flaws=tuple(flaws))
                yield policy, RepeatedCode(attempt.body, function, by_call=True), attempt


def _returns_at_once(call: ast.Call) -> bool:
    """Return whether a call makes a broker of AMQP send a message again: `channel.basic_nack(tag)`."""
    name, again = getattr(call.func, "attr", ""), keyword(call, "requeue")
    if "super()" in ast.unparse(call.func):
        return False  # it is the broker's client itself
    if again is None:
        return name in _GIVES_BACK
    return isinstance(again, ast.Constant) and again.value is True and name in (*_GIVES_BACK, "nack", "reject")


def _list_read(function: Function) -> Iterator[str]:
    """Yield the queues and lists from which a function takes the next item, or that it passes on to itself."""
    nodes = [*walk_inside(function.body)]
    iterated = {ast.unparse(node.iter) for node in nodes if isinstance(node, ast.For)}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[]) if name in _TAKES:
                yield ast.unparse(owner)
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args) if name == function.name:
                yield from map(ast.unparse, args)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Name(kept)) if name in iterated:
                yield kept
            case _:
                pass


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
                inside = calls_in([statement])
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
