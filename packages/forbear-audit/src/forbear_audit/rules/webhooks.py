"""Webhooks: whoever sends an event sends it again after a status of 5xx, so what was done before that is done twice."""

import ast
from collections.abc import Iterator

from forbear_audit.loops.statuses import numbers
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import EVENT_KINDS, WEBHOOKS
from forbear_audit.reading.retry_use import RepeatedCode, RetriedErrors, RetryPolicy, Waits
from forbear_audit.reading.scopes import Function, keyword, walk_inside
from forbear_audit.reading.syntax import find_all

_FAILURES = ("HttpResponseServerError", "HTTPInternalServerError", "HTTPServiceUnavailable", "HTTPBadGateway")
_TAKE_A_STATUS = ("abort", "HTTPException", "Response")
_EVENTS = ("request", "req", "event", "payload")
_POLICY = RetryPolicy("webhook", waits=Waits(reads_header=True), errors=RetriedErrors(("webhook.Failed",)))


def find_webhooks(module: Module) -> Iterator[tuple[RetryPolicy, ast.AST, RepeatedCode]]:
    """Yield the policy of the sender, the last answer of 5xx, and what a webhook does up to that."""
    for function in module.functions:
        if [one.arg for one in function.args.args] == ["event", "context"]:
            yield from _read_batch(module, function)
        if not _is_webhook(module, function):
            continue
        nodes = [*walk_inside(function.body)]
        answers = [node for node in nodes if isinstance(node, ast.stmt) and _status(module, node, 500)]
        if answers and not any(_knows_the_event(module, node) for node in nodes):
            region = [statement for statement in function.body if statement.lineno <= answers[-1].lineno]
            yield _POLICY, answers[-1], RepeatedCode(region, function, by_call=True)


def _read_batch(module: Module, function: Function) -> Iterator[tuple[RetryPolicy, ast.AST, RepeatedCode]]:
    """Yield what a Lambda does for each record of an event: after an error it gets all of them again."""
    text = ast.unparse(function)
    if "batchItemFailures" in text or "idempot" in text:
        return
    for loop in find_all(function.body, ast.For):
        handlers = [*find_all(loop.body, ast.ExceptHandler)]
        swallows = any(not any(find_all(handler.body, ast.Raise)) for handler in handlers)
        is_known = swallows or any(_knows_the_event(module, node) for node in loop.body)
        if "Records" in ast.unparse(loop.iter) and not is_known:
            yield _POLICY, loop, RepeatedCode([loop], function, by_call=True)


def _is_webhook(module: Module, function: Function) -> bool:
    """Return whether a function gets the events of a webhook: its route says so, or its name and first parameter."""
    routes = [item for one in function.decorator_list if isinstance(one, ast.Call) for item in one.args]
    if any(isinstance(path := module.constant(item), str) and WEBHOOKS.search(path) for item in routes):
        return True
    owner = module.class_of(function)
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    is_named = WEBHOOKS.search(function.name if owner is None else f"{owner.name}.{function.name}")
    return bool(is_named) and names[:1] in [[name] for name in _EVENTS]


def _knows_the_event(module: Module, node: ast.AST) -> bool:
    """Return whether a test ends with a success before the work is done: the event was seen before.

    A test of the kind of the event says nothing about that.
    """
    if not isinstance(node, ast.If) or isinstance(node.test, ast.UnaryOp):
        return False
    if isinstance(node.test, ast.Compare) and (
        isinstance(node.test.ops[0], (ast.NotEq, ast.NotIn)) or EVENT_KINDS.search(ast.unparse(node.test.left))
    ):
        return False
    last = node.body[-1]
    return isinstance(last, ast.Return) and not _status(module, last, 400)


def _status(module: Module, statement: ast.stmt, least: int) -> bool:
    """Return whether a statement answers with a status from `least` on."""
    match statement:
        case ast.Return(value=ast.Tuple(elts=[_, status, *_])):
            return _is_from(module, status, least)
        case ast.Return(value=ast.Dict(keys=keys, values=values)):
            pairs = zip(keys, values, strict=True)
            return any(module.constant(k) == "statusCode" and _is_from(module, v, least) for k, v in pairs)
        case (
            ast.Return(value=ast.Call() as call)
            | ast.Raise(exc=ast.Call() as call)
            | ast.Expr(value=ast.Call() as call)
        ):
            name, given = ast.unparse(call.func), keyword(call, "status", "status_code")
            if given is None and name.endswith(_TAKE_A_STATUS) and call.args:
                given = call.args[0]
            return name.endswith(_FAILURES) or (given is not None and _is_from(module, given, least))
        case ast.Raise(exc=ast.expr() as error):
            return ast.unparse(error).endswith(_FAILURES)
        case _:
            return False


def _is_from(module: Module, expr: ast.expr, least: int) -> bool:
    branches = [expr.body, expr.orelse] if isinstance(expr, ast.IfExp) else [expr]
    return any((number or 0) >= least for branch in branches for number in numbers(module, branch) or ())
