"""`check`: the rules, applied to the retries of one module."""

import ast
import math
import re
from collections.abc import Iterator
from typing import cast

from forbear.audit.errors import INTERRUPTS, is_hopeless, is_status_error
from forbear.audit.find import find_retries
from forbear.audit.modules import Module, inside
from forbear.audit.nesting import nested
from forbear.audit.repeats import blocking, retry_after, unsafe, unsafe_by_client
from forbear.audit.state import leaves_behind
from forbear.audit.uses import RetryUse, RetryUses
from forbear.audit.waits import sleeps

Hit = tuple[str, ast.AST, str, str]
"""A rule, the node to report, the message, and the library."""

_LONGEST = 120.0  # seconds: a single wait above this needs a reason
_RENAMES = re.compile(r"^(?:os|shutil)\.|\.(?:unlink|rename|replace|rmdir)$")


def check(module: Module) -> Iterator[Hit]:
    """Yield what the rules say of a module."""
    uses = RetryUses(find_retries(module))
    for use in uses:
        for rule, node, message in _of_use(module, use, uses):
            yield rule, node, message, use.library
    yield from unsafe_by_client(module)
    yield from blocking(module, uses)


def _of_use(module: Module, use: RetryUse, uses: RetryUses) -> Iterator[tuple[str, ast.AST, str]]:
    yield from use.flaws
    if use.attempts == 1:
        return  # the policy is off
    if not use.shared:
        yield from _limits(use)
        yield from _waits(use)
        yield from _errors(module, use)
    elif use.region:
        yield from _wrong_statuses(module, use)
    if use.region:
        yield from unsafe(module, use)
        yield from nested(module, use, uses)
        yield from retry_after(module, use)
        for node, message in leaves_behind(module, use):
            yield "STATE", node, message
    if use.loop is not None:
        yield from _loop_only(module, use, use.loop)


def _limits(use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    if use.unbounded:
        yield "UNBOUNDED", use.node, "no limit of attempts and no deadline: it may never end"
    elif use.deadline is False:
        yield "NO-DEADLINE", use.node, "no limit of time: slow attempts and long waits add up"


def _waits(use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    place = use.wait_node or use.node
    if use.attempts == 2 and use.wait in ("none", "fixed"):
        return  # a single retry brings no storm
    if use.wait == "none":
        yield "FIXED", place, "it does not wait between attempts"
    elif use.wait == "fixed":
        yield "FIXED", place, "every wait has the same length"
    elif use.wait == "growing" and use.jitter is False:
        yield "NO-JITTER", place, "the waits have no jitter: clients that fail together retry together"
    if use.wait == "growing" and use.longest is not None and use.longest > _LONGEST and use.deadline is not True:
        much = "without a limit" if use.longest == math.inf else f"to {use.longest:.0f} s"
        yield "NO-CAP", place, f"the waits grow {much}"


def _errors(module: Module, use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    place = use.error_node or use.node
    errors = use.errors or ()
    swallowed = [name for name in errors if name in INTERRUPTS]
    if swallowed and not (use.selective and "BaseException" not in swallowed and use.library != "loop"):
        yield "CATCH-ALL", place, f"it retries {_short(swallowed[0])}, and so swallows interrupts or cancellation"
    elif use.everything:
        yield "CATCH-ALL", place, "it retries every Exception, bugs included"
    wrong = [name for name in errors if is_hopeless(name) and not _is_lock(name, use)]
    if wrong:
        yield "WRONG-ERROR", place, f"another attempt does not cure {' or '.join(map(_short, wrong))}"
    else:
        yield from _wrong_statuses(module, use)


def _wrong_statuses(module: Module, use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    if use.selective or not any(map(is_status_error, use.errors or ())):
        return
    body = [node for attempt in use.tries for node in inside(attempt.body)] or [*inside(use.region)]
    raises = any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "raise_for_status"
        for n in body
    )
    if raises and not re.search(r"status_code|\.status\b", "".join(ast.unparse(s) for s in use.region)):
        yield (
            "WRONG-ERROR",
            use.error_node or use.node,
            "the error stands for every status from 400, and 4xx is permanent",
        )


def _is_lock(name: str, use: RetryUse) -> bool:
    """Return whether an error may pass: Windows refuses to move or remove a file that another program has open."""
    calls = [ast.unparse(node.func) for node in inside(use.region) if isinstance(node, ast.Call)]
    return name in ("PermissionError", "FileExistsError") and any(map(_RENAMES.search, calls))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _loop_only(module: Module, use: RetryUse, loop: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    assert isinstance(loop, (ast.For, ast.AsyncFor, ast.While))  # noqa: S101 - for type checkers
    for call in sleeps(module, loop.body):
        if use.attempts != math.inf and _sleeps_last(module, loop, call, use):
            yield "LAST-SLEEP", call, "it also sleeps after the last attempt"
    for node in inside([s for attempt in use.tries for handler in attempt.handlers for s in handler.body]):
        if isinstance(node, ast.Raise) and isinstance(node.cause, ast.Constant) and node.cause.value is None:
            yield "LOST-CAUSE", node, "`from None` hides the last error"
    after = _after(module, loop)
    if use.tries and isinstance(after, ast.Raise) and isinstance(after.exc, (ast.Call, ast.Name)):
        named = isinstance(after.exc, ast.Name) and not after.exc.id[:1].isupper()
        if not named and (after.cause is None or isinstance(after.cause, ast.Constant)):
            yield "LOST-CAUSE", after, "the last error is not the cause of this one"


def _after(module: Module, loop: ast.For | ast.AsyncFor | ast.While) -> ast.stmt | None:
    """Return the statement that follows when the attempts are used up."""
    if loop.orelse:
        return loop.orelse[0]
    parent = module.parents[loop]
    for name in ("body", "orelse", "finalbody"):
        block = _block(parent, name)
        if loop in block:
            rest = [s for s in block[block.index(loop) + 1 :] if not isinstance(s, ast.Expr)]
            return rest[0] if rest else None
    return None


def _sleeps_last(module: Module, loop: ast.For | ast.AsyncFor | ast.While, call: ast.Call, use: RetryUse) -> bool:
    """Return whether a sleep follows the last attempt: nothing before it leaves the loop by the number of attempts."""
    limited = isinstance(loop, ast.For) or (
        isinstance(loop, ast.While) and any(isinstance(n, ast.Compare) for n in ast.walk(loop.test))
    )
    if not limited or use.deadline:
        return False
    node: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.If) and not re.search(r"status|\.ok\b", ast.unparse(parent.test)):
            return False
        for name in ("body", "orelse"):
            block: list[ast.AST] = [*_block(parent, name)]
            if node in block:
                for statement in block[: block.index(node)]:
                    if isinstance(statement, ast.If) and any(
                        isinstance(n, (ast.Raise, ast.Return, ast.Break)) for n in inside([statement])
                    ):
                        return False
                if (
                    parent is loop
                    and not any(isinstance(s, ast.Try) or use.statuses for s in block[: block.index(node)])
                    and not isinstance(node, (ast.Try, ast.If))
                ):
                    return False
        if parent is loop:
            return True
        node = parent
    return False


def _block(parent: ast.AST, name: str) -> list[ast.stmt]:
    """Return the statements in a field of a node, none where the field has something else."""
    block: object = getattr(parent, name, None)
    return [s for s in cast("list[object]", block) if isinstance(s, ast.stmt)] if isinstance(block, list) else []
