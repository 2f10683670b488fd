"""Hand-written retries: loops that make the same call again after an error or a failed status.

A loop is a retry only if success ends it, a failure does not, and the call is the same each time. Pumps, reconnect
loops, periodic tasks, pages, mirrors and polling are none.
"""

import ast
from dataclasses import replace

from forbear_audit.libraries.errors import error_names, is_doubtful
from forbear_audit.libraries.http import request_of
from forbear_audit.libraries.unsafe_calls import unsafe_calls_in
from forbear_audit.loops.generators import find_generator, is_counting
from forbear_audit.loops.limits import read_limits
from forbear_audit.loops.loop_exits import (
    continues,
    find_repeated_statuses,
    may_leave,
    names_of_errors,
    statements_after,
    success_leaves,
    survives,
)
from forbear_audit.loops.polling import differs, is_polling, is_service
from forbear_audit.loops.statuses import DOUBTFUL, FAILED
from forbear_audit.loops.waits import read_waits, sleeps
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode, RetriedErrors, RetryPolicy, Waits
from forbear_audit.reading.scopes import Loop, list_passed, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    functions_in,
    has,
    names_in,
    names_stored,
    plain_names_in,
    statements_of_handlers,
)

_MOST_TRIES = 50  # each is followed through the whole loop; no retry has more
_STATES = (404, 409, 423, 425)  # a loop that repeats only these waits for a state
_ONLY_INSPECT = ("str", "repr", "type", "isinstance", "getattr", "hasattr", "len", "int", "float", "format", "bool")
"""The functions that only look at an error: a loop that calls them decides itself."""


def read_loop(module: Module, loop: Loop) -> tuple[RetryPolicy, RepeatedCode] | None:
    """Return the retry that a loop is, and what it repeats; None if it is none."""
    if not _counts(module, loop) or (isinstance(loop, ast.While) and "redirect" in ast.unparse(loop.test)):
        return None
    tries = [node for node in _statements(loop.body) if isinstance(node, ast.Try)]
    if len(tries) > _MOST_TRIES:
        return None
    going_on = [node for node in tries if any(continues(module, loop, handler) for handler in node.handlers)]
    attempts = [node for node in going_on if success_leaves(module, loop, node)]
    if not attempts:
        return _read_status_loop(module, loop) or _read_result_loop(module, loop)
    for attempt in attempts:
        policy = _read_error_loop(module, loop, attempt)
        if policy is not None:
            return policy, RepeatedCode(loop.body, module.function_of(loop), loop, (attempt,))
    return None


def _read_error_loop(module: Module, loop: Loop, attempt: ast.Try) -> RetryPolicy | None:
    """Return the policy of a loop that repeats the body of a `try` after errors."""
    errors = _read_errors(module, loop, attempt)
    if not _is_same(module, loop, attempt, attempt.body, errors.names or ()):
        return None
    handlers = [(handler, status) for handler in attempt.handlers for status in (408, 429, *DOUBTFUL, None)]
    if not any(survives(module, loop, attempt, handler, status) for handler, status in handlers):
        return None  # it waits for an answer, such as `authorization_pending`
    if any(map(_delegates, attempt.handlers)):  # another object knows errors, limits and waits
        return RetryPolicy("loop", waits=Waits(reads_header=True), errors=replace(errors, has_predicate=True))
    limits = read_limits(module, loop)
    if limits.unbounded and is_service(module, loop):
        return None
    return RetryPolicy("loop", limits, read_waits(module, loop, (attempt,), limits.attempts), errors)


def _read_status_loop(module: Module, loop: Loop) -> tuple[RetryPolicy, RepeatedCode] | None:
    """Return the retry of a loop that repeats a request after failed statuses."""
    statuses = find_repeated_statuses(module, loop) if sleeps(module, loop.body) else ()
    if set(statuses) <= set(_STATES) or not _is_same(module, loop, None, loop.body, ()):
        return None
    limits = read_limits(module, loop)
    runs_program = any(node.attr == "returncode" for node in find_all(loop.body, ast.Attribute))
    if limits.unbounded and (is_service(module, loop) or (len(statuses) == len(FAILED) and not runs_program)):
        return None  # a loop that repeats a 401 for ever waits for a 200
    policy = RetryPolicy("loop", limits, read_waits(module, loop, (), limits.attempts))
    return policy, RepeatedCode(loop.body, module.function_of(loop), loop, (), statuses)


def _read_result_loop(module: Module, loop: Loop) -> tuple[RetryPolicy, RepeatedCode] | None:
    """Return the retry of a loop that calls a function until its result says that no error was swallowed."""
    awaited = loop.test if isinstance(loop, ast.While) else None
    for statement in (*([awaited] if awaited is not None else []), *loop.body):
        test = statement.test if isinstance(statement, ast.If) else statement if statement is awaited else None
        value = statement.value if isinstance(statement, ast.Assign) else test
        call = next(calls_in([value]), None) if value is not None else None
        home, function = module.resolve_call(call) if isinstance(call, ast.Call) else (module, None)
        names = _find_swallowed(home, function.body) if function is not None else ()
        is_lost = any("." in name or patterns.NETWORK_ERRORS.search(name) for name in names)
        sends = function is not None and any(map(patterns.LEAVES_PROCESS.search, functions_in(function.body)))
        if not names or call is None or not (sends or is_lost):
            continue
        results = names_stored([statement]) or ({ast.unparse(call)} if test is not None else set[str]())
        shown = [False, *([True] if len(results) > 1 else [])]  # also of `reply, error = ...` that there is no error
        tests = [n.test for n in loop.body if isinstance(n, ast.If) and may_leave(n.body)]
        leaves = [test for test in tests if any(_shows(test, results, is_missing=way) for way in shown)]
        tested = isinstance(awaited, (ast.UnaryOp, ast.Compare)) and _shows(awaited, results, is_missing=True)
        if not (leaves or tested) or is_polling(module, loop, None, ()) or differs(module, loop, None):
            return None
        limits = read_limits(module, loop, asks=statement is awaited)
        if patterns.PROBES.search(ast.unparse(call.func)) or (limits.unbounded and is_service(module, loop)):
            return None
        errors = RetriedErrors(names, call, has_predicate=True)  # the helper decides
        policy = RetryPolicy("loop", limits, read_waits(module, loop, (), limits.attempts), errors)
        asked: list[ast.stmt] = [ast.copy_location(ast.Expr(call), call)] if statement is awaited else []
        return policy, RepeatedCode([*asked, *loop.body], module.function_of(loop), loop)
    return None


def _shows(test: ast.expr, results: set[str], *, is_missing: bool = False) -> bool:
    """Return whether a test only says that there is a result, or that it `is_missing`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return is_missing and ast.unparse(inner) in results
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(value=None)]):
            left = left.target if isinstance(left, ast.NamedExpr) else left
            return ast.unparse(left) in results and isinstance(operator, ast.Is) is is_missing
        case _:
            return not is_missing and ast.unparse(test) in results


def _find_swallowed(home: Module, body: list[ast.stmt]) -> tuple[str, ...]:
    """Return the errors of clients after which a function returns nothing, False or None, or a tuple that begins so."""
    found: list[str] = []
    for handler in (handler for attempt in find_all(body, ast.Try) for handler in attempt.handlers):
        results = [node.value for node in find_all(handler.body, ast.Return) if node.value is not None]
        firsts = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in results]
        tells = any(find_all(handler.body, ast.Raise)) or any(home.constant(one) not in (None, False) for one in firsts)
        names = error_names(home, handler.type) or ()
        if not tells and any(is_doubtful(name, "network") for name in names):
            found += names
    return tuple(found)


def _is_same(
    module: Module, loop: Loop, attempt: ast.Try | None, checked: list[ast.stmt], errors: tuple[str, ...]
) -> bool:
    """Return whether a loop makes the same call again, and does not wait for a state."""
    if differs(module, loop, attempt):
        return False
    acts = next(unsafe_calls_in(module, checked), None) is not None
    is_lost = any(is_doubtful(name, "network") for name in errors) and read_limits(module, loop).unbounded
    if not acts and is_polling(module, loop, attempt, errors, by_name=not is_lost):
        return False
    return acts or _evidence(module, loop, checked, errors)


def _counts(module: Module, loop: Loop) -> bool:
    """Return whether a loop only counts: `while`, or `for` over numbers, delays or a generator of attempts."""
    if isinstance(loop, ast.While) or find_generator(module, loop) is not None:
        return True
    if isinstance(loop, ast.AsyncFor):
        return False
    names = plain_names_in(loop.target)
    slept = any(names & plain_names_in(call) for call in sleeps(module, loop.body))
    return slept or is_counting(module, loop)


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body and of the blocks within, without those of inner loops and functions."""
    result: list[ast.stmt] = []
    for statement in body:
        result.append(statement)
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.If)):
            result += _statements(statement.body)
            result += _statements(statement.orelse) if isinstance(statement, ast.If) else []
        elif isinstance(statement, ast.Try):
            result += _statements(statement.body) + _statements(statement.orelse)
    return result


def _read_errors(module: Module, loop: Loop, attempt: ast.Try) -> RetriedErrors:
    """Return the errors after which a loop goes on; their names are unknown from the first that cannot be read."""
    result = RetriedErrors(names=())
    before = False
    for handler in attempt.handlers:
        if not continues(module, loop, handler):
            others = error_names(module, handler.type) or ()
            before = before or any(
                name.rpartition(".")[2] not in ("KeyboardInterrupt", "CancelledError", "SystemExit") for name in others
            )
            continue
        place = handler.type or handler
        names = ("BaseException",) if handler.type is None else error_names(module, handler.type)
        if names is None:
            return replace(result, names=None, node=result.node or place)
        decides = _decides(module, loop, attempt, handler)
        result = RetriedErrors(
            (*(result.names or ()), *names),
            result.node or place,
            result.has_predicate or before or decides,
            {**result.places, **dict.fromkeys(names, place)},
            result.inspected.union(names if decides else ()),
            result.cured.union(names if decides or _changes_the_cause(attempt, handler) else ()),
        )
    return result


def _decides(module: Module, loop: Loop, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Return whether a test of the error decides if the loop goes on: in the handler, or after it."""
    path = [*handler.body, *statements_after(module, loop, attempt)]
    names = names_of_errors([handler], path)
    deciding = [test for test in find_all(path, ast.If) if may_leave([test]) or has(test, ast.Continue)]
    if any(names_in(t.test) & names or "isinstance(" in ast.unparse(t.test) for t in deciding):
        return True
    given = [(each, call) for call in calls_in(path) for each in list_passed(call) if isinstance(each, ast.Name)]
    passed = [call for each, call in given if each.id == handler.name]
    return not all(patterns.TELLS.search(ast.unparse(call.func)) for call in passed)  # one that is no log may raise it


def _changes_the_cause(attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Return whether a handler changes something that the attempt reads, or makes or removes something."""
    read = set[str]().union(*(names_in(statement) for statement in attempt.body))
    for node in walk_inside(handler.body):
        if isinstance(node, ast.Delete):
            return True
        if isinstance(node, ast.Assign) and any(ast.unparse(target) in read for target in node.targets):
            return True
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
            return True
        if isinstance(node, ast.Call) and patterns.CURES.search(ast.unparse(node.func)):
            return True
    return False


def _delegates(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler passes its error to a function and uses the result: that function decides."""
    if any(map(patterns.METHODS_OF_RETRIES.search, functions_in(handler.body))):
        return True  # an object that counts the retries
    if handler.name is None:
        return False
    for node in walk_inside(handler.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
            for call in calls_in([node.value]):
                passed = set[str]().union(*map(plain_names_in, list_passed(call)))
                if handler.name in passed and ast.unparse(call.func) not in _ONLY_INSPECT:
                    return True
    return False


def _evidence(module: Module, loop: Loop, checked: list[ast.stmt], errors: tuple[str, ...]) -> bool:
    """Return whether anything but the shape says "retry": a sleep, a name, or a call that leaves the process."""
    head = ast.unparse(loop.test if isinstance(loop, ast.While) else loop.target)
    names = {name.id for name in find_all(statements_of_handlers(loop.body), ast.Name)}
    lost = [name for name in errors if "." in name and is_doubtful(name, "network")]
    if lost or any(patterns.NETWORK_ERRORS.search(name.rpartition(".")[2]) for name in errors):
        return True
    owner = module.class_of(loop)
    named = (head, *names, *([owner.name] if owner is not None else []))
    if sleeps(module, loop.body) or head == "_" or any(map(patterns.RETRIES.search, named)):
        return True
    return any(request_of(module, call) for call in calls_in(checked))
