"""Hand-written retries: loops that make the same call again after an error or a failed status.

A loop is a retry only if success ends it, a failure does not, and the call is the same each time. Pumps, reconnect
loops, periodic tasks, pages, mirrors and polling are none.
"""

import ast
import re

from forbear.audit.effects import effects
from forbear.audit.http import request_of
from forbear.audit.libraries.decorators import error_names
from forbear.audit.limits import read_limits
from forbear.audit.modules import Loop, Module, inside
from forbear.audit.uses import RetryUse
from forbear.audit.waits import read_waits, sleeps

_WORDS = re.compile(r"retr|attempt|tries|trial", re.IGNORECASE)
_STATUS = re.compile(r"status_code|\bstatus\b|\.ok\b|is_success|is_error|status\(\)")
_NOT_YET = ("Empty", "QueueEmpty", "QueueFull", "Full", "BlockingIOError", "InterruptedError", "WouldBlock")  # polling
_LOOKS = ("str", "repr", "type", "isinstance", "getattr", "hasattr", "len", "int", "float", "format", "bool")
_QUIET = re.compile(
    r"(?:^|\.)(?:sleep|print|debug|info|warning|warn|error|exception|log|uniform|random|randint|min|max|range|format|wait)$"
)


def read_loop(module: Module, loop: Loop) -> RetryUse | None:
    """Return the retry that a loop is, None if it is none."""
    if isinstance(loop, ast.AsyncFor) or not _counts(module, loop):
        return None
    use = RetryUse("loop", loop, region=loop.body, function=module.function_of(loop), loop=loop)
    attempts = [node for node in _statements(loop.body) if isinstance(node, ast.Try)]
    tries = [node for node in attempts if any(map(_continues, node.handlers)) and _success_ends(loop, node)]
    if tries:
        use.tries = tries[:1]
        _read_errors(module, tries[0], use)
        if use.errors and all(name.rpartition(".")[2] in _NOT_YET for name in use.errors):
            return None
        checked = tries[0].body
    elif _read_statuses(module, loop, use):
        checked = loop.body
    else:
        return None
    if _differs(loop, checked) or not _evidence(module, loop, checked):
        return None
    if tries and any(map(_delegates, tries[0].handlers)):
        use.selective = True  # another object knows errors, limits and waits
        return use
    read_limits(module, loop, use)
    read_waits(module, loop, use)
    return use


def _counts(module: Module, loop: Loop) -> bool:
    """Return whether a loop only counts: `while`, or `for` over numbers or delays."""
    if isinstance(loop, ast.While):
        return True
    source = loop.iter
    if isinstance(source, ast.Call):
        name = module.dotted(source.func).rpartition(".")[2]
        if name in ("reversed", "enumerate") and source.args and isinstance(source.args[0], ast.Call):
            name = module.dotted(source.args[0].func).rpartition(".")[2]
        return name in ("range", "count", "repeat")
    target = loop.target.id if isinstance(loop.target, ast.Name) else ""
    used = {n.id for c in sleeps(module, loop.body) for n in ast.walk(c) if isinstance(n, ast.Name)}
    return bool(target) and target in used


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


def _continues(handler: ast.ExceptHandler) -> bool:
    """Return whether the loop goes on after a handler, at least in some cases."""
    return not _exits(handler.body)


def _exits(body: list[ast.stmt]) -> bool:
    """Return whether a block always leaves the loop."""
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break)):
            return True
        if isinstance(statement, (ast.With, ast.AsyncWith)) and _exits(statement.body):
            return True
        if isinstance(statement, ast.If) and statement.orelse and _exits(statement.body) and _exits(statement.orelse):
            return True
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and ast.unparse(statement.value.func) in ("sys.exit", "exit", "os._exit")
        ):
            return True
    return False


def _leaves(module_loop: Loop, body: list[ast.stmt]) -> bool:
    """Return whether success leaves the loop at the end of `body`: always, by a status, or by a flag of its test."""
    flags = (
        {n.id for n in ast.walk(module_loop.test) if isinstance(n, ast.Name)}
        if isinstance(module_loop, ast.While)
        else set[str]()
    )
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Break)):
            return True
        if isinstance(statement, (ast.With, ast.AsyncWith)) and _leaves(module_loop, statement.body):
            return True
        if (
            isinstance(statement, ast.If)
            and _STATUS.search(ast.unparse(statement.test))
            and _leaves(module_loop, statement.body + statement.orelse)
        ):
            return True
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, bool)
        ) and any(isinstance(t, ast.Name) and t.id in flags for t in statement.targets):
            return True
    return False


def _success_ends(loop: Loop, attempt: ast.Try) -> bool:
    if _leaves(loop, attempt.body) or _leaves(loop, attempt.orelse):
        return True
    retried = [handler for handler in attempt.handlers if _continues(handler)]
    if not all(isinstance(handler.body[-1], ast.Continue) for handler in retried):
        return False
    return attempt in loop.body and _leaves(loop, loop.body[loop.body.index(attempt) + 1 :])


def _read_errors(module: Module, attempt: ast.Try, use: RetryUse) -> None:
    names: list[str] = []
    before = False
    for handler in attempt.handlers:
        if not _continues(handler):
            others = error_names(module, handler.type) or ()
            before = before or any(
                name.rpartition(".")[2] not in ("KeyboardInterrupt", "CancelledError", "SystemExit") for name in others
            )
            continue
        use.error_node = handler.type or handler
        types = ("BaseException",) if handler.type is None else error_names(module, handler.type)
        if types is None:
            return
        use.selective = use.selective or before or _decides(handler)
        names += types
    use.errors = tuple(names)


def _decides(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler looks at the error, or calls something, to decide whether to go on."""
    for node in inside(handler.body):
        if isinstance(node, ast.If) and any(
            isinstance(n, (ast.Raise, ast.Return, ast.Break)) for n in inside([*node.body, *node.orelse])
        ):
            names = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
            if handler.name in names or any(
                isinstance(n, ast.Call) and "isinstance" in ast.unparse(n.func) for n in ast.walk(node.test)
            ):
                return True
    return False


def _delegates(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler passes its error to a function and uses the result: that function decides."""
    calls = [node for node in inside(handler.body) if isinstance(node, ast.Call)]
    if any(re.search(r"retr\w*\.\w+$", ast.unparse(call.func)) for call in calls):
        return True  # an object that counts the retries
    if handler.name is None:
        return False
    for node in inside(handler.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
            for call in (n for n in inside([node.value]) if isinstance(n, ast.Call)):
                names = {
                    n.id
                    for item in (*call.args, *(k.value for k in call.keywords))
                    for n in ast.walk(item)
                    if isinstance(n, ast.Name)
                }
                if handler.name in names and ast.unparse(call.func) not in _LOOKS:
                    return True
    return False


def _read_statuses(module: Module, loop: Loop, use: RetryUse) -> bool:
    """Return whether a loop without `try` goes on after failed statuses, and set these in `use`."""
    if not sleeps(module, loop.body):
        return False
    for index, statement in enumerate(loop.body):
        if not isinstance(statement, ast.If) or not re.search(
            r"status_code|\.ok\b|is_success", ast.unparse(statement.test)
        ):
            continue
        numbers = {
            n.value
            for n in ast.walk(statement.test)
            if isinstance(n, ast.Constant) and isinstance(n.value, int) and n.value is not True
        }
        repeated = isinstance(statement.body[-1], ast.Continue) and _exits(loop.body[index + 1 :])
        if repeated:
            use.statuses = tuple(sorted(numbers)) or (500,)
            return True
        if _exits(statement.body):
            use.statuses = (500,)
            return True
    return False


def _differs(loop: Loop, checked: list[ast.stmt]) -> bool:
    """Return whether the call is another one each time: its arguments depend on the number of the attempt."""
    if isinstance(loop, ast.While):
        return False
    tainted = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)} - {"_"}
    for node in inside(loop.body):
        if isinstance(node, ast.Assign) and any(
            isinstance(n, ast.Name) and n.id in tainted for n in ast.walk(node.value)
        ):
            tainted |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    for node in inside(checked):
        if isinstance(node, ast.Call) and not _QUIET.search(ast.unparse(node.func)):
            values = [*node.args, *(k.value for k in node.keywords if k.arg not in ("timeout", "attempt", "retry"))]
            direct = {n.id for value in values for n in ast.walk(value) if isinstance(n, ast.Name)}
            if direct & tainted:
                return True
        if isinstance(node, ast.Subscript) and any(
            isinstance(n, ast.Name) and n.id in tainted for n in ast.walk(node.slice)
        ):
            return True
    return False


def _evidence(module: Module, loop: Loop, checked: list[ast.stmt]) -> bool:
    """Return whether anything but the shape says "retry": a sleep, a name, or a call that leaves the process."""
    head = ast.unparse(loop.test if isinstance(loop, ast.While) else loop.target)
    handlers = [
        s for node in _statements(loop.body) if isinstance(node, ast.Try) for h in node.handlers for s in h.body
    ]
    names = {n.id for n in inside(handlers) if isinstance(n, ast.Name)}
    if any(isinstance(node, ast.Call) and ast.unparse(node.func) in ("input", "next") for node in inside(checked)):
        return False
    if sleeps(module, loop.body) or _WORDS.search(head) or any(map(_WORDS.search, names)):
        return True
    if any(isinstance(node, ast.Call) and request_of(module, node) for node in inside(checked)):
        return True
    return next(effects(module, checked), None) is not None
