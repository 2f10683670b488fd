"""The waits of a loop: its calls of sleep, and whether they grow, have jitter and a cap."""

import ast
import re
from collections.abc import Iterator

from forbear.audit.modules import Loop, Module, inside
from forbear.audit.uses import RetryUse, grows_to

_SLEEPS = ("time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep", "eventlet.sleep")
_RANDOM = re.compile(r"random|jitter|uniform|randint|secrets|gauss|expovariate")
_HEADER = re.compile(r"retry[-_]?after|retry_in|x-ratelimit", re.IGNORECASE)
_CAPPED = re.compile(r"\bmin\(|\bmax_|_max\b|\bcap\b|maximum|limit|clip")


def sleeps(module: Module, nodes: list[ast.stmt]) -> list[ast.Call]:
    """Return the calls of sleep in a piece of code."""
    calls = [node for node in inside(nodes) if isinstance(node, ast.Call)]
    return [call for call in calls if _sleeps(module, call)]


def _sleeps(module: Module, call: ast.Call) -> bool:
    dotted = module.dotted(call.func)
    if dotted in _SLEEPS or dotted.rpartition(".")[2] == "sleep":
        return True
    waits = isinstance(call.func, ast.Attribute) and call.func.attr == "wait"
    return (
        waits
        and bool(call.args)
        and bool(re.search(r"stop|event|shutdown|exit|quit|cancel", ast.unparse(call.func).lower()))
    )


def mentions_header(nodes: list[ast.AST]) -> bool:
    """Return whether code reads Retry-After, or passes on a name that is called like it."""
    return any(bool(_HEADER.search(ast.unparse(node))) for node in nodes)


def read_waits(module: Module, loop: Loop, use: RetryUse) -> None:
    """Set the waits of a loop in `use`, by its calls of sleep."""
    calls = sleeps(module, loop.body)
    if not calls:
        use.wait = "unknown" if any(_may_wait(node) for node in inside(loop.body)) else "none"
        return
    use.wait_node = calls[0]
    use.reads_header = mentions_header([loop])
    argument = calls[0].args[0] if calls[0].args else None
    if argument is None or len(calls) > 1 or mentions_header([argument]):
        return
    closure = [argument, *_behind(module, loop, argument)]
    texts = [ast.unparse(node) for node in closure]
    if any(_HEADER.search(text) for text in texts):
        return
    names = {node.id for node in ast.walk(argument) if isinstance(node, ast.Name)}
    changed = {node.id for node in inside([loop]) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    use.jitter = any(_RANDOM.search(text) for text in texts)
    has_calls = any(
        isinstance(node, ast.Call) and ast.unparse(node.func) not in ("min", "max", "float", "int", "pow")
        for part in closure
        for node in ast.walk(part)
    )
    if not names & changed and not any(isinstance(node, ast.Call) for node in ast.walk(argument)):
        use.wait = "fixed"
    elif use.jitter and not names & changed:
        use.wait = "growing" if any("**" in text for text in texts) else "fixed"
    elif names & changed and (not has_calls or use.jitter):
        use.wait = "growing"
        if not any(_CAPPED.search(text) for text in texts):
            _set_longest(module, loop, argument, use)


def _behind(module: Module, loop: Loop, argument: ast.expr) -> Iterator[ast.AST]:
    """Yield the expressions in the loop that the names in `argument` are computed from."""
    names = {node.id for node in ast.walk(argument) if isinstance(node, ast.Name)}
    for node in inside(loop.body):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id in names for target in targets):
            yield node.value


def _set_longest(module: Module, loop: Loop, argument: ast.expr, use: RetryUse) -> None:
    if any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) for node in ast.walk(argument)):
        use.longest = grows_to(1, 2, use.attempts)
        return
    for node in inside(loop.body):
        if not (
            isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult) and isinstance(node.target, ast.Name)
        ):
            continue
        if isinstance(argument, ast.Name) and node.target.id == argument.id:
            factor = module.constant(node.value)
            first = [v for v in map(module.constant, module.values(argument)) if isinstance(v, (int, float))]
            if isinstance(factor, (int, float)) and first:
                use.longest = grows_to(float(first[0]), float(factor), use.attempts)


def _may_wait(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(
        re.search(r"sleep|wait|backoff|delay|pause|throttle", ast.unparse(node.func).lower())
    )
