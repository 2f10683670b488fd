"""The last attempt of a loop: whether it sleeps for nothing, and whether its error gets lost."""

import ast
import math
from collections.abc import Iterator

from forbear_audit.loops.limits import counters, is_limit
from forbear_audit.loops.loop_exits import (
    continues,
    failures,
    may_leave,
    names_of_errors,
    statements_after,
    statements_below,
)
from forbear_audit.loops.paths import AGAIN, BREAK, ON, Walk, is_exit
from forbear_audit.loops.statuses import truth
from forbear_audit.loops.waits import is_momentary, sleeps
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import TIMED_OUT
from forbear_audit.reading.retry_use import Flaw, RetryUse
from forbear_audit.reading.scopes import Loop, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    has,
    join_bodies,
    names_in,
    names_stored,
    statements_of_handlers,
)

_LOST = "the last error is not the cause of this one"


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
    raised = _find_final_raise(module, loop, names_stored(use.code.tried))
    if raised is None or not use.code.tries or _is_time_over(use, raised):
        return
    if _is_reached(module, loop, paths, counting) and _is_new(raised, shown):
        yield "LOST-CAUSE", raised, _LOST


def _is_time_over(use: RetryUse, raised: ast.Raise) -> bool:
    """Return whether a `raise` says that the time is over: that is the cause."""
    error = ast.unparse(raised).lower().partition("(")[0]
    return bool(use.policy.limits.deadline) and bool(TIMED_OUT.search(error))


def _is_final(module: Module, loop: Loop, node: ast.Raise, counting: set[str]) -> bool:
    """Return whether a `raise` in a loop stands for the end of the attempts: no test of something else is around."""
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


def _find_final_raise(module: Module, loop: Loop, results: set[str]) -> ast.Raise | None:
    """Return the `raise` that follows when the attempts are used up, also below a test that there is no result."""
    first = next((s for s in statements_below(module, loop) if not isinstance(s, ast.Expr)), None)
    match first:
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)), body=[*_, last]) if name in results:
            first = last
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]), body=[*_, last]) if name in results:
            first = last
        case _:
            pass
    return first if isinstance(first, ast.Raise) else None


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
