"""STATE: what one attempt changes and the next one does not reset (the class HOW of WASABI)."""

import ast
from collections.abc import Callable, Iterator

from forbear_audit.reading.modules import Module
from forbear_audit.reading.name_patterns import COUNTERS, PURE_FUNCTIONS, REWINDS, STREAMS
from forbear_audit.reading.retry_use import RetryUse
from forbear_audit.reading.scopes import walk_inside
from forbear_audit.reading.syntax import calls_in, functions_in, names_stored
from forbear_audit.reading.text_patterns import FILE_MODE

_GROWS = ("append", "extend", "insert", "appendleft")
"""The methods that add to a list."""

_TAKES = ("pop", "popleft", "remove", "clear")
_PUTS = ("setdefault", "update")
_BODIES = ("data", "content", "body", "fileobj", "Body", "Fileobj")
"""The options by which a body is sent."""

_SPENT = ("iter", "map", "filter", "zip", "reversed", "enumerate")
"""The builtins whose result can be read once."""


def leaves_behind(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where an attempt leaves something behind, and what it is."""
    region = use.code.region
    own = names_stored(region)
    body = [statement for attempt in use.code.tries for statement in attempt.body] if use.code.tries else region
    yield from _mutations(body, own, use)
    yield from _find_popped_keys(module, body, own, use)
    yield from _streams(use, own)
    if use.code.loop is not None:
        yield from _find_spent(module, use, own)


def _mutations(body: list[ast.stmt], own: set[str], use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    flat = list(_flat(body))
    for index, statement in enumerate(flat):
        target = _find_mutated(statement, own, is_loop=use.code.loop is not None)
        if not target or COUNTERS.search(target.lower()) or _changes(use, target, _TAKES.__contains__):
            continue  # a stack is popped again
        if any(map(_may_fail, flat[index + 1 :])):
            yield statement, f"`{target}` is changed before the call, once for each attempt"


def _find_popped_keys(
    module: Module, body: list[ast.stmt], own: set[str], use: RetryUse
) -> Iterator[tuple[ast.AST, str]]:
    """Yield the keys that an attempt takes out of a dictionary of the caller: the next attempt does not find them."""
    rest = use.code.function.args.kwarg if use.code.function is not None and use.code.loop is None else None
    for statement in _flat(body):
        for call in calls_in([statement]):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="pop"), args=[key]) if name not in own:
                    if rest is not None and rest.arg == name:
                        continue  # `**options` is a new dictionary for each call
                    if isinstance(module.constant(key), str) and not _changes(use, name, _PUTS.__contains__):
                        yield call, f"`{name}` lacks the key after the first attempt"
                case _:
                    pass


def _streams(use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the open files that the caller passes and an attempt reads, if nothing goes back to their begin."""
    if use.code.function is None:
        return
    spec = use.code.function.args
    passed = {each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if STREAMS.search(each.arg)}
    for call in (node for statement in use.code.region for node in ast.walk(statement) if isinstance(node, ast.Call)):
        reads = isinstance(call.func, ast.Attribute) and call.func.attr == "read"
        sent = [call.func.value] if reads and isinstance(call.func, ast.Attribute) else []
        sent += [option.value for option in call.keywords if option.arg in _BODIES]
        for item in sent:
            if isinstance(item, ast.Name) and item.id in passed - own and not _changes(use, item.id, REWINDS.search):
                passed.remove(item.id)
                yield call, f"the file `{item.id}` is at its end after the first attempt"


def _changes(use: RetryUse, target: str, is_method: Callable[[str], object]) -> bool:
    """Return whether the function of a retry calls such a method of `target`, or sets an item of it."""
    for node in walk_inside(use.code.function.body if use.code.function is not None else use.code.region):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if is_method(name):
                if ast.unparse(owner) == target:
                    return True
            case ast.Assign(targets=[ast.Subscript(value=owner)]) if ast.unparse(owner) == target:
                return True
            case _:
                pass
    return False


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield simple statements in order; those below `if` are left out, for they may not run."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _flat(statement.body)
        elif isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
            yield statement


def _find_mutated(statement: ast.stmt, own: set[str], *, is_loop: bool) -> str | None:
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
    return not all(map(PURE_FUNCTIONS.search, functions_in([statement])))


def _find_spent(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the files and iterators that are made before the loop and read by an attempt."""
    rewound = {
        ast.unparse(call.func.value)
        for call in calls_in(use.code.region)
        if isinstance(call.func, ast.Attribute) and REWINDS.search(call.func.attr)
    }
    seen: set[str] = set()
    for call in calls_in([statement for attempt in use.code.tries for statement in attempt.body]):
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
                    module.name_of(value.func) == "open"
                    or (isinstance(value.func, ast.Attribute) and value.func.attr == "open")
                )
                and _reads(module, value)
            ):
                yield item, f"the file `{item.id}` is at its end after the first attempt"


def _reads(module: Module, call: ast.Call) -> bool:
    modes = [module.constant(item) for item in call.args]
    return not any(isinstance(mode, str) and FILE_MODE.search(mode) and mode[0] in "wax" for mode in modes)
