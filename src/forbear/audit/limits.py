"""The limits of a loop: a number of attempts, a deadline, or a way out that cannot be judged."""

import ast
import math
import re

from forbear.audit.modules import Loop, Module, inside
from forbear.audit.uses import RetryUse

_TIME = re.compile(
    r"monotonic|\btime\(|\.time\(|perf_counter|\bnow\(|deadline|timeout|expire|elapsed|until|\bend\b|remaining|left\b"
)
_SCOPES = re.compile(r"(?:^|\.)(?:timeout|timeout_at|wait_for|fail_after|fail_at|move_on_after|move_on_at|Timeout)$")


def read_limits(module: Module, loop: Loop, use: RetryUse) -> None:
    """Set the limit of attempts and the deadline of a loop in `use`."""
    use.deadline = _has_scope(module, loop) or any(_is_time(test) for test in _tests(loop))
    if isinstance(loop, ast.While):
        use.attempts = _while_attempts(module, loop)
    else:
        use.attempts = _for_attempts(module, loop)


def _tests(loop: Loop) -> list[ast.expr]:
    """Return the conditions that may end a loop: its own, and those before a `raise`, `return` or `break`."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    return tests + [node.test for node in inside(loop.body) if isinstance(node, (ast.If, ast.Assert)) and _leaves(node)]


def _leaves(node: ast.If | ast.Assert) -> bool:
    blocks = [*node.body, *node.orelse] if isinstance(node, ast.If) else []
    return isinstance(node, ast.Assert) or any(
        isinstance(inner, (ast.Raise, ast.Return, ast.Break))
        or (isinstance(inner, ast.Call) and ast.unparse(inner.func) in ("sys.exit", "os._exit", "exit", "quit"))
        for inner in inside(blocks)
    )


def _is_time(test: ast.expr) -> bool:
    return any(isinstance(node, (ast.Compare, ast.Call)) and _TIME.search(ast.unparse(node)) for node in ast.walk(test))


def _has_scope(module: Module, loop: Loop) -> bool:
    for node in (*module.ancestors(loop), *inside(loop.body)):
        if (
            isinstance(node, (ast.With, ast.AsyncWith))
            and node not in loop.body
            and any(
                isinstance(i.context_expr, ast.Call) and _SCOPES.search(module.dotted(i.context_expr.func))
                for i in node.items
            )
        ):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False


def _for_attempts(module: Module, loop: ast.For | ast.AsyncFor) -> float | None:
    source = loop.iter
    if isinstance(source, ast.Call):
        name = module.dotted(source.func).rpartition(".")[2]
        if name == "count" or (name == "repeat" and len(source.args) == 1):
            return _compared(module, loop, math.inf)
        if name in ("reversed", "enumerate") and source.args and isinstance(source.args[0], ast.Call):
            source = source.args[0]
        numbers = [module.constant(item) for item in source.args]
        if all(isinstance(number, int) for number in numbers) and 1 <= len(numbers) <= 2:
            values = [number for number in numbers if isinstance(number, int)]
            return float(values[-1] - (values[0] if len(values) == 2 else 0))
    return None


def _while_attempts(module: Module, loop: ast.While) -> float | None:
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        return None  # a condition: a counter, or something that another thread changes
    return _compared(module, loop, math.inf)


def _compared(module: Module, loop: Loop, otherwise: float) -> float | None:
    """Return None if some condition in the loop may limit the attempts, else `otherwise`."""
    changed = {
        n.target.id for n in inside(loop.body) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }
    changed |= {n.id for n in inside(loop.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(loop, ast.For):
        changed |= {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    errors = {n.name for n in inside(loop.body) if isinstance(n, ast.ExceptHandler) and n.name}
    for test in _tests(loop):
        if re.search(r"status_code|\.ok\b|is_success", ast.unparse(test)):
            continue  # that is success, not a limit
        names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        compares = any(isinstance(n, (ast.Compare, ast.UnaryOp, ast.BoolOp)) for n in ast.walk(test))
        if (
            test is not getattr(loop, "test", None)
            and not names & errors
            and ((names & changed and compares) or "self." in ast.unparse(test) or _stops(test))
        ):
            return None
    for node in inside(loop.body):  # a counter or a schedule in the hands of somebody else
        if (
            isinstance(node, ast.Call)
            and not re.search(r"sleep|print|log|debug|info|warn|error|exception", ast.unparse(node.func))
            and (
                re.search(r"retry|retries|backoff|attempt|tries", ast.unparse(node.func).lower())
                or ast.unparse(node.func) == "next"
            )
        ):
            return None
    return otherwise


def _stops(test: ast.expr) -> bool:
    return bool(re.search(r"stop|closed|shutdown|cancel|running|is_set|exit|quit", ast.unparse(test).lower()))
