"""STATE: what one attempt changes and the next one does not reset (the class HOW of WASABI)."""

import ast
import re
from collections.abc import Iterator

from forbear.audit.modules import Module, inside
from forbear.audit.uses import RetryUse

_GROWS = ("append", "extend", "insert", "appendleft")
_COUNTS = re.compile(r"attempt|tries|retr|count|stat|metric|log|err|call|fail|num|_n$|history|warn|seen|time|elapsed")
_PURE = re.compile(
    r"(?:^|\.)(?:len|str|int|print|repr|range|isinstance|format|join|list|dict|tuple|float|min|max|sum|debug|info|warning|error|exception|monotonic|time|perf_counter|append|extend|insert|get|items|keys|values|copy)$"
)
_SPENT = ("iter", "map", "filter", "zip", "reversed", "enumerate")


def leaves_behind(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where an attempt leaves something behind, and what it is."""
    region = use.region
    own = {n.id for n in inside(region) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    body = [statement for attempt in use.tries for statement in attempt.body] if use.tries else region
    yield from _mutations(body, own, use)
    if use.loop is not None:
        yield from _spent(module, use, own)


def _mutations(body: list[ast.stmt], own: set[str], use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    flat = list(_flat(body))
    for index, statement in enumerate(flat):
        target = _mutated(statement, own, is_loop=use.loop is not None)
        if target and not _COUNTS.search(target.lower()) and any(map(_may_fail, flat[index + 1 :])):
            yield statement, f"`{target}` grows before the call, once for each attempt"


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield simple statements in order; those below `if` are left out, for they may not run."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _flat(statement.body)
        elif isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
            yield statement


def _mutated(statement: ast.stmt, own: set[str], *, is_loop: bool) -> str | None:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=name), args=args)) if name in _GROWS:
            if any(isinstance(node, (ast.Call, ast.Await)) for item in args for node in ast.walk(item)):
                return None  # the call comes first
        case ast.AugAssign(target=target, op=ast.Add()):
            if isinstance(target, ast.Name):
                return None
        case _:
            return None
    root = target
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in own or not (isinstance(target, ast.Attribute) or is_loop):
        return None
    return ast.unparse(target)


def _may_fail(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and not _PURE.search(ast.unparse(node.func)) for node in inside([statement]))


def _spent(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the files and iterators that are made before the loop and read by an attempt."""
    text_of = [node for attempt in use.tries for node in inside(attempt.body)]
    rewound = {
        ast.unparse(node.func.value)
        for node in inside(use.region)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "seek"
    }
    seen: set[str] = set()
    for call in (node for node in text_of if isinstance(node, ast.Call)):
        for item in (*call.args, *(k.value for k in call.keywords)):
            if not isinstance(item, ast.Name) or item.id in own | rewound | seen:
                continue
            value = module.value(item)
            seen.add(item.id)
            if isinstance(value, ast.GeneratorExp):
                yield item, f"the generator `{item.id}` is spent after the first attempt"
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _SPENT:
                yield item, f"the iterator `{item.id}` is spent after the first attempt"
            elif (
                isinstance(value, ast.Call)
                and (
                    module.dotted(value.func) == "open"
                    or (isinstance(value.func, ast.Attribute) and value.func.attr == "open")
                )
                and _reads(module, value)
            ):
                yield item, f"the file `{item.id}` is at its end after the first attempt"


def _reads(module: Module, call: ast.Call) -> bool:
    modes = [module.constant(item) for item in call.args]
    return not any(
        isinstance(mode, str) and re.fullmatch(r"[rwaxbt+]{1,3}", mode) and mode[0] in "wax" for mode in modes
    )
