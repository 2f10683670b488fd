"""The last attempt of a loop: whether it sleeps for nothing, and whether its error gets lost."""

import ast
import math
from collections.abc import Iterator

from forbear_audit.libraries.errors import error_names, is_conflict, is_doubtful, is_hopeless
from forbear_audit.loops.limits import counters, is_limit
from forbear_audit.loops.loop_exits import (
    continues,
    failures,
    may_leave,
    names_of_errors,
    statements_after,
    statements_below,
)
from forbear_audit.loops.paths import AGAIN, BREAK, ON, Walk, goes_on, is_exit
from forbear_audit.loops.statuses import truth
from forbear_audit.loops.waits import is_momentary, moves_only_files, sleeps
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import LOGS, SHOWS_ERRORS, TIMED_OUT
from forbear_audit.reading.retry_use import Flaw, RetryUse
from forbear_audit.reading.scopes import Loop, call_like, keyword, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    functions_in,
    has,
    join_bodies,
    names_in,
    names_stored,
    statements_of_handlers,
)

_LOST = "the last error is not the cause of this one"
_SILENT = "the last error is lost: nothing raises, returns or logs it"


def last_attempt(module: Module, use: RetryUse, loop: Loop) -> Iterator[Flaw]:
    """Yield what is wrong with the last attempt of a loop: the rule, the place, and the message."""
    counting = counters(loop)
    paths = [path for attempt in use.code.tries for path in failures(module, loop, attempt)]
    if not paths and use.code.statuses:
        paths = [_statements_taken(module, loop.body, use.code.statuses[-1])]
    made = set(map(ast.unparse, calls_in(use.code.tried)))
    if any(ast.unparse(call) in made for call in calls_in(statements_below(module, loop))):
        return  # the loop makes all attempts but the last one
    is_limited = not use.policy.limits.deadline and use.policy.limits.attempts != math.inf
    head = loop.test if isinstance(loop, ast.While) else None
    counts = head is None or has(head, ast.Compare) or bool(names_in(head) & counting)
    if is_limited and counts and not is_momentary(module, use):
        calls = (_sleep_of(module, loop, path, counting) for path in paths)
        for call in dict.fromkeys(call for call in calls if call is not None):
            yield "LAST-SLEEP", call, "it also sleeps after the last attempt"
    handlers = [handler for handler in use.code.handlers if continues(module, loop, handler)]
    shown = names_of_errors(handlers, join_bodies(handlers))
    for node in find_all(join_bodies(handlers), ast.Raise):
        hides = node.exc is not None and node.cause is not None and is_none(node.cause)
        if hides and not names_in(node) & shown and _is_final(module, loop, node, counting):
            yield "LOST-CAUSE", node, "`from None` hides the last error"
    for attempt in use.code.tries:
        if ON not in Walk(module, 200).ways([*attempt.body, *attempt.orelse]):
            for node in find_all(statements_after(module, loop, attempt), ast.Raise):
                is_final = _is_new(node, shown) and _is_final(module, loop, node, counting)
                if is_final and not _is_time_over(use, node):
                    yield "LOST-CAUSE", node, _LOST
    if not use.code.tries:
        return
    silent = _find_silent_end(module, use, loop, paths, counting)
    if silent is not None:
        yield "LOST-CAUSE", silent, _SILENT
    raised = _find_end(module, loop, names_stored(use.code.tried))
    is_lost = isinstance(raised, ast.Raise) and _is_new(raised, shown) and not _is_time_over(use, raised)
    if raised is not None and is_lost and _is_reached(module, loop, paths, counting):
        yield "LOST-CAUSE", raised, _LOST


def _find_silent_end(
    module: Module, use: RetryUse, loop: Loop, paths: list[list[ast.stmt]], counting: set[str]
) -> ast.AST | None:
    """Return where a loop gives up and tells nobody why: it returns nothing, False or a default, or just ends."""
    function, limits = use.code.function, use.policy.limits
    handlers = [handler for handler in use.code.handlers if continues(module, loop, handler)]
    timed = limits.deadline and limits.attempts is None  # the time is over: that is the cause
    if function is None or timed or limits.unbounded:
        return None
    known = [e for e in use.policy.errors.names or () if ("." in e and e[:5] != "self.") or is_doubtful(e, "network")]
    if all(is_conflict(e) or is_hopeless(e) or TIMED_OUT.search(e.lower()) for e in known):
        return None  # it is clear what happened: a rival was faster, there is a bug, or the time is over
    if is_momentary(module, use) or moves_only_files(use):
        return None  # it is about something on this machine
    code = [*join_bodies(handlers), *(s for attempt in use.code.tries for s in statements_after(module, loop, attempt))]
    below = statements_below(module, loop)
    if not handlers or _tells_why(handlers, [*code, *below]):
        return None
    for node in find_all(join_bodies(handlers), ast.Return):
        if _says_nothing(node) and _is_final(module, loop, node, counting):
            return node
    if not _is_reached(module, loop, paths, counting):
        return None
    end = _find_end(module, loop, names_stored(use.code.tried))
    if end is not None:
        return end if isinstance(end, ast.Return) and _says_nothing(end) else None
    around = next(node for node in module.ancestors(loop) if not isinstance(node, (ast.With, ast.AsyncWith)))
    told = all(map(LOGS.search, functions_in(below))) or not goes_on(module, below, "any")  # no other way to do it
    return handlers[0] if told and around is function else None


def _tells_why(handlers: list[ast.ExceptHandler], code: list[ast.stmt]) -> bool:
    """Return whether code reads the error that a handler caught, raises it again, or tells all about it."""
    names = set[str]().union(*map(names_in, code))
    again = any(node.exc is None for node in find_all(code, ast.Raise))
    shown = any(SHOWS_ERRORS.search(ast.unparse(statement)) for statement in code)
    return again or shown or bool(names & {handler.name for handler in handlers})


def _says_nothing(node: ast.Return) -> bool:
    """Return whether a `return` has no value, or one that stands in the code."""
    match node.value:
        case None | ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=values) | ast.List(elts=values):
            return all(isinstance(value, ast.Constant) for value in values)
        case ast.Dict(keys=keys):
            return not keys
        case _:
            return False


def find_hidden_ends(module: Module) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield where tenacity's RetryError, which holds the last error, is replaced by another error, or dropped.

    That is `from None`, or in a function for the end of the attempts.
    """
    if "tenacity" not in module.packages:
        return
    for call in module.calls:
        end = keyword(call, "retry_error_callback")
        if end is not None:
            yield from (("LOST-CAUSE", *found, "tenacity") for found in _read_callback(module, call, end))
    for handler in (node for node in module.parents if isinstance(node, ast.ExceptHandler)):
        if "tenacity.RetryError" not in (error_names(module, handler.type) or ()):
            continue
        for node in walk_inside(handler.body):
            if isinstance(node, ast.Raise) and isinstance(node.cause, ast.Constant):
                yield "LOST-CAUSE", node, "`from None` hides the last error", "tenacity"


def _read_callback(module: Module, call: ast.Call, end: ast.expr) -> Iterator[tuple[ast.AST, str]]:
    """Yield where a function for the end of the attempts raises an error without the last one, or tells nobody why."""
    home, defined = module.resolve_call(call_like(end, end))
    function = value if isinstance(value := module.value(end), ast.Lambda) else defined
    if function is None or home is not module or "outcome" in ast.unparse(function):
        return
    body: list[ast.stmt] = [ast.Return(function.body)] if isinstance(function, ast.Lambda) else function.body
    raises, returns = [*find_all(body, ast.Raise)], [*find_all(body, ast.Return)]
    for node in raises:
        if isinstance(node.exc, ast.Call) and node.cause is None:
            yield node, _LOST
    states = {one.arg for one in function.args.args}
    given = (name for name in find_all(body, ast.Name) if name.id in states)
    tells = any(not isinstance(module.parents[name], ast.Attribute) for name in given) or _tells_why([], body)
    errors = ast.unparse(keyword(call, "retry") or call)
    logs = {"after", "before_sleep"} & {option.arg for option in call.keywords} or "if_result" in errors
    if not (raises or tells or logs) and all(map(_says_nothing, returns)):
        yield end, _SILENT


def _is_time_over(use: RetryUse, raised: ast.Raise) -> bool:
    """Return whether a `raise` says that the time is over: that is the cause."""
    error = ast.unparse(raised).lower().partition("(")[0]
    return bool(use.policy.limits.deadline) and bool(TIMED_OUT.search(error))


def _is_final(module: Module, loop: Loop, node: ast.stmt, counting: set[str]) -> bool:
    """Return whether a `raise` or `return` in a loop ends the attempts: no test of something else is around."""
    around = next(part for part in module.ancestors(node) if isinstance(part, (ast.If, ast.ExceptHandler, Loop)))
    if around is loop:  # it stands below the handler, which goes on unless the attempts are used up
        handlers = statements_of_handlers(loop.body)
        return any(
            has(test, ast.Continue) and is_limit(loop, test.test, counting) for test in find_all(handlers, ast.If)
        )
    return is_limit(loop, around.test, counting) if isinstance(around, ast.If) else True


def _sleep_of(module: Module, loop: Loop, path: list[ast.stmt], counting: set[str]) -> ast.Call | None:
    """Return the sleep that a failure reaches on the last attempt, None if there is none or a test may prevent it."""
    for statement in path:
        if isinstance(statement, ast.If):
            if _guards(module, loop, statement, counting):
                return None
            branches = [_sleep_of(module, loop, branch, counting) for branch in (statement.body, statement.orelse)]
            sleep = next((call for call in branches if call is not None), None)
            if sleep is not None or (statement.orelse and _ends(statement.body) and _ends(statement.orelse)):
                return sleep
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            sleep = _sleep_of(module, loop, statement.body, counting)
            if sleep is not None or _ends(statement.body):
                return sleep
        elif is_exit(statement) or isinstance(statement, ast.Continue):
            return None
        elif calls := sleeps(module, [statement]):
            tests = [node.test for each in calls[0].args for node in ast.walk(each) if isinstance(node, ast.IfExp)]
            return None if any(is_limit(loop, test, counting) for test in tests) else calls[0]
    return None


def _guards(module: Module, loop: Loop, test: ast.If, counting: set[str]) -> bool:
    """Return whether an `if`, or one within it, may end the last attempt before it sleeps, or without that sleep."""
    for node in walk_inside([test]):
        acts = isinstance(node, ast.If) and (may_leave([node]) or sleeps(module, [node]) or has(node, ast.Continue))
        if isinstance(node, ast.If) and acts and is_limit(loop, node.test, counting):
            return True
    slept = [names_in(argument) for call in sleeps(module, test.body) for argument in call.args]
    return any(names_in(test.test) & names for names in slept)  # `if delay > 0`


def _statements_taken(module: Module, body: list[ast.stmt], status: int) -> list[ast.stmt]:
    """Return the statements that run when a response has this status: the blocks of decided tests are opened."""
    result: list[ast.stmt] = []
    for statement in body:
        way = truth(module, statement.test, status) if isinstance(statement, ast.If) else None
        if isinstance(statement, ast.If) and way is not None:
            result += _statements_taken(module, statement.body if way else statement.orelse, status)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            result += _statements_taken(module, statement.body, status)
        else:
            result.append(statement)
    return result


def _ends(body: list[ast.stmt]) -> bool:
    return bool(body) and (is_exit(body[-1]) or isinstance(body[-1], ast.Continue))


def _find_end(module: Module, loop: Loop, results: set[str]) -> ast.stmt | None:
    """Return what follows when the attempts are used up, also below a test that there is no result; None for calls."""
    first = next((s for s in statements_below(module, loop) if not isinstance(s, ast.Expr)), None)
    match first:
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)), body=[*_, last]) if name in results:
            return last
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]), body=[*_, last]) if name in results:
            return last
        case _:
            return first


def _is_reached(module: Module, loop: Loop, paths: list[list[ast.stmt]], counting: set[str]) -> bool:
    """Return whether a failure of the last attempt gets below the loop."""
    walk = Walk(module, "any", is_limit=lambda test: is_limit(loop, test, counting))
    ways = set[str]().union(*map(walk.ways, paths))
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
    return BREAK in ways or (not endless and bool(ways & {AGAIN, ON}))


def _is_new(raised: ast.Raise, shown: set[str]) -> bool:
    """Return whether a `raise` makes an error that neither has the last one as its cause nor shows it."""
    if not isinstance(raised.exc, (ast.Call, ast.Name)) or names_in(raised.exc) & shown:
        return False
    if isinstance(raised.exc, ast.Name) and not raised.exc.id[:1].isupper():
        return False
    return raised.cause is None or isinstance(raised.cause, ast.Constant)
