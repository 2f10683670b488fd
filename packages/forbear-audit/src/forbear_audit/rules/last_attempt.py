"""The last attempt of a loop: whether it sleeps for nothing, and whether its error gets lost."""

import ast
import math
from collections.abc import Iterator
from itertools import takewhile

from forbear_audit.libraries.errors import is_conflict, is_doubtful, is_hopeless
from forbear_audit.loops.limits import counters, is_limit
from forbear_audit.loops.loop_exits import continues, failures, names_of_errors, statements_after, statements_below
from forbear_audit.loops.paths import AGAIN, BREAK, ON, Walk, goes_on
from forbear_audit.loops.statuses import Status, truth
from forbear_audit.loops.waits import is_momentary, moves_only_files, sleeps
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import LOGS, SHOWS_ERRORS, TIMED_OUT, WAITS
from forbear_audit.reading.retry_use import Flaw, RetryUse
from forbear_audit.reading.scopes import Loop, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    functions_in,
    has,
    join_bodies,
    names_in,
    names_stored,
    plain_names_in,
    statements_of_handlers,
)

LOST = "the last error is not the cause of this one"
SILENT = "the last error is lost: nothing raises, returns or logs it"
HIDDEN = "`from None` hides the last error"
_INSPECTS = ("str", "repr", "type", "isinstance", "getattr", "int")
_CHECKS = ("raise_for_status", "check_returncode")
Where = tuple[ast.AST, str]


def last_attempt(module: Module, use: RetryUse, loop: Loop) -> Iterator[Flaw]:
    """Yield what is wrong with the last attempt of a loop: the rule, the place, and the message."""
    counting = counters(loop)
    paths = [path for attempt in use.code.tries for path in failures(module, loop, attempt)]
    status: Status = "any"
    if not paths and use.code.statuses:
        paths, status = [loop.body], use.code.statuses[-1]
    made = set(map(ast.unparse, calls_in(use.code.tried)))
    if any(ast.unparse(call) in made for call in calls_in(statements_below(module, loop))):
        return  # the loop makes all attempts but the last one
    is_limited = not use.policy.limits.deadline and use.policy.limits.attempts != math.inf
    head = loop.test if isinstance(loop, ast.While) else None
    counts = head is None or has(head, ast.Compare) or bool(names_in(head) & counting)
    if is_limited and counts and not is_momentary(module, use):
        calls = (_find_sleep(module, loop, path, status, counting) for path in paths)
        for call in dict.fromkeys(call for call in calls if call is not None):
            yield "LAST-SLEEP", call, "it also sleeps after the last attempt"
    yield from (("LOST-CAUSE", *found) for found in find_lost_causes(module, use, loop, paths, status))


def _find_sleep(
    module: Module, loop: Loop, path: list[ast.stmt], status: Status, counting: set[str]
) -> ast.Call | None:
    """Return the sleep that a failure reaches on the last attempt, None if there is none or a test may prevent it."""
    reached = list[ast.stmt]()
    Walk(module, status, is_limit=lambda test: is_limit(loop, test, counting), reached=reached).ways(path)
    for call in sleeps(module, reached):
        names = set[str]().union(*map(names_in, call.args))
        around = takewhile(lambda node: node is not loop, module.ancestors(call))
        tests = [n.test for n in around if isinstance(n, ast.If) and truth(module, n.test, status) is None]
        guards = any(names_in(test) & names for test in tests)  # `if delay > 0`
        chosen = [node.test for each in call.args for node in ast.walk(each) if isinstance(node, ast.IfExp)]
        if not guards and not any(is_limit(loop, test, counting) for test in chosen):
            return call
    return None


def find_lost_causes(
    module: Module, use: RetryUse, loop: Loop, paths: list[list[ast.stmt]], status: Status
) -> Iterator[Where]:
    """Yield where a loop ends without its last error, and how; `paths` are what runs after a failure with a status."""
    counting = counters(loop)
    handlers = [handler for handler in use.code.handlers if continues(module, loop, handler)]
    shown = names_of_errors(handlers, join_bodies(handlers))
    for node in find_all(join_bodies(handlers), ast.Raise):
        hides = node.exc is not None and node.cause is not None and is_none(node.cause)
        if hides and not names_in(node) & shown and _is_final(module, loop, node, counting):
            yield node, HIDDEN
    for attempt in use.code.tries:
        if ON not in Walk(module, 200).ways([*attempt.body, *attempt.orelse]):
            for node in find_all(statements_after(module, loop, attempt), ast.Raise):
                is_final = _is_new(node, shown) and _is_final(module, loop, node, counting)
                if is_final and not _is_time_over(use, node):
                    yield node, LOST
    below, results = statements_below(module, loop), names_stored(use.code.tried or loop.body)
    end = find_end(module, below, results, status)
    silent = _find_silent_end(module, use, loop, paths, status, end)
    if silent is not None:
        yield silent, SILENT
    is_lost = isinstance(end, ast.Raise) and _is_new(end, shown) and not _is_time_over(use, end)
    if end is not None and is_lost and use.code.tries and _is_reached(module, loop, paths, status):
        yield end, LOST


def _find_silent_end(
    module: Module, use: RetryUse, loop: Loop, paths: list[list[ast.stmt]], status: Status, end: ast.stmt | None
) -> ast.AST | None:
    """Return where a loop gives up and tells nobody why: it returns nothing, False or a default, or just ends."""
    function, limits, counting = use.code.function, use.policy.limits, counters(loop)
    timed = limits.deadline and limits.attempts is None  # the time is over: that is the cause
    if function is None or timed or limits.unbounded or is_momentary(module, use) or moves_only_files(use):
        return None
    handlers = [handler for handler in use.code.handlers if continues(module, loop, handler)]
    known = [e for e in use.policy.errors.names or () if ("." in e and e[:5] != "self.") or is_doubtful(e, "network")]
    clear = all(is_conflict(e) or is_hopeless(e) or TIMED_OUT.search(e.lower()) for e in known)
    if (clear and not use.code.statuses) or not (handlers or use.code.statuses):
        return None  # it is clear what happened: a rival was faster, there is a bug, or the time is over
    below = statements_below(module, loop)
    after = [s for attempt in use.code.tries for s in statements_after(module, loop, attempt)]
    silent = [each for each in handlers if not _tells(module, loop, [*each.body, *after, *below], each)]
    if use.code.statuses:
        answers, reached = _list_answers(loop), list[ast.stmt]()
        Walk(module, status, reached=reached).ways(loop.body)
        if not answers or any(shows(each, answers) for each in (*reached, *below)):
            return None
    elif not silent:
        return None
    others = [each for each in find_all(loop.body, ast.ExceptHandler) if each not in handlers]
    succeeded = [each for attempt in use.code.tries for each in attempt.orelse]
    tried = {id(node) for node in walk_inside([*use.code.tried, *others, *succeeded])}
    for node in find_all(loop.body, ast.Return):
        is_end = id(node) not in tried and says_nothing(node.value) and not use.code.statuses
        if is_end and _is_final(module, loop, node, counting):
            return node
    if not _is_reached(module, loop, paths, status):
        return None
    defaults = _list_defaults(module, loop, names_stored(use.code.tried or loop.body))
    if end is not None:
        is_default = bool(defaults & plain_names_in(end)) and not isinstance(end, (ast.If, ast.Raise))
        is_silent = is_default or (isinstance(end, ast.Return) and says_nothing(end.value))
        return (end if isinstance(end, ast.Return) else [*silent, end][0]) if is_silent else None
    around = next(node for node in module.ancestors(loop) if not isinstance(node, (ast.With, ast.AsyncWith)))
    told = all(map(LOGS.search, functions_in(below))) or not goes_on(module, below, "any")  # no other way to do it
    return [*silent, loop][0] if told and around is function else None


def _tells(module: Module, loop: Loop, code: list[ast.stmt], handler: ast.ExceptHandler) -> bool:
    """Return whether code tells about the error of a handler, keeps it, or raises it in the end."""
    names = names_of_errors([handler], code)
    raised = [node for node in find_all(code, ast.Raise) if node.exc is None]
    again = any(_is_final(module, loop, node, counters(loop)) for node in raised)
    return again or any(SHOWS_ERRORS.search(ast.unparse(one)) or shows(one, names) for one in code)


def shows(statement: ast.AST, names: set[str]) -> bool:
    """Return whether code passes, returns, raises or keeps one of these names: a test of it, or a wait, is none."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            kept = any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
            asks = isinstance(value, ast.Call) and ast.unparse(value.func) not in _INSPECTS
            return (kept or asks) and shows(value, names)
        case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            return False
        case ast.Call(func=function) if WAITS.search(ast.unparse(function)):
            return False
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            given = [*statement.args, *statement.keywords]
            checks = method in _CHECKS and ast.unparse(owner) in names
            return checks or any(shows(part, names) for part in (*given, *([owner] if has(owner, ast.Call) else [])))
        case ast.Name() | ast.Attribute():
            return bool(names_in(statement) & names)
        case ast.Compare():
            return False
        case _:
            tests = {id(getattr(statement, "test", None))}
            parts = (part for part in ast.iter_child_nodes(statement) if id(part) not in tests)
            return any(shows(part, names) for part in parts)


def _list_answers(loop: Loop) -> set[str]:
    """Return the names of what a loop asks for, whose status it tests, and of what is computed from it."""
    tested = set[str]().union(*(plain_names_in(node.test) for node in find_all(loop.body, ast.If)))
    names = names_stored(loop.body) & tested
    for node in find_all(loop.body, ast.Assign):
        names |= names_stored(node.targets) if plain_names_in(node.value) & names else set()
    return names


def _list_defaults(module: Module, loop: Loop, results: set[str]) -> set[str]:
    """Return the results of an attempt that have a value before a loop which says nothing: `rows = []`."""
    around = module.scope(loop)
    given = ((name, value) for name in results for value in module.assigned.get((around, name), []))
    return {name for name, value in given if value.lineno < loop.lineno and says_nothing(value)}


def says_nothing(value: ast.expr | None) -> bool:
    """Return whether a value is None, a constant, an empty collection, a default object, or made of these."""
    match value:
        case None | ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Tuple(elts=values) | ast.List(elts=values):
            return all(map(says_nothing, values))
        case ast.Dict(values=values):
            texts = [each for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            return not any(each.value for each in texts) and all(
                isinstance(v, ast.Name) or says_nothing(v) for v in values
            )
        case ast.Call(func=function, args=args, keywords=options):
            name = ast.unparse(function).rpartition(".")[2]
            is_made = name[:1].isupper() or name in ("dict", "list", "set", "tuple", "str", "bytes")
            return is_made and all(map(says_nothing, (*args, *(option.value for option in options))))
        case _:
            return False


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


def find_end(module: Module, below: list[ast.stmt], results: set[str], status: Status) -> ast.stmt | None:
    """Return what follows when the attempts are used up and there is no result; None for the end, and for calls."""
    for statement in below:
        match statement:
            case ast.Expr() | ast.Pass():
                pass
            case ast.If(test=test):
                missing = _is_missing(module, test, results, status)
                if missing is None:
                    return statement
                end = find_end(module, statement.body if missing else statement.orelse, results, status)
                if end is not None:
                    return end
            case ast.With() | ast.AsyncWith():
                return find_end(module, statement.body, results, status)
            case _:
                return statement
    return None


def _is_missing(module: Module, test: ast.expr, results: set[str], status: Status) -> bool | None:
    """Return whether a test is true when there is no result, None if it is about something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = _is_missing(module, inner, results, status)
            return None if found is None else not found
        case ast.Name(id=name) if name in results:
            return False
        case ast.Compare(left=ast.Name(id=name), ops=[operator], comparators=[ast.Constant(None | False)]) if (
            name in results
        ):
            return isinstance(operator, (ast.Is, ast.Eq))
        case ast.BoolOp(op=operator):
            parts = [_is_missing(module, part, results, status) for part in test.values]
            decisive = isinstance(operator, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        case _:
            return truth(module, test, status)


def _is_reached(module: Module, loop: Loop, paths: list[list[ast.stmt]], status: Status) -> bool:
    """Return whether a failure of the last attempt gets below the loop."""
    counting = counters(loop)
    walk = Walk(module, status, is_limit=lambda test: is_limit(loop, test, counting))
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
