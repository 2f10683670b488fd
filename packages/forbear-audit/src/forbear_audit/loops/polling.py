"""Loops that look like retries and are none: polling for a state, prompts, and calls that differ each time."""

import ast
from itertools import takewhile

from forbear_audit.libraries.http import request_of
from forbear_audit.loops.loop_exits import failures, statements_after, statements_below
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Loop, parameters, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    functions_in,
    join_bodies,
    names_in,
    names_stored,
    plain_names_in,
    statements_of_handlers,
    texts_in,
)

_ABSENT = ("KeyError", "IndexError", "LookupError", "StopIteration")
_PICKS = ("pop", "popleft", "popitem", "choice", "next", "get_nowait")
"""The functions and methods that return another item each time."""

_OPTIONS = ("timeout", "attempt", "retr", "deadline", "delay", "tries", "wait", "count", "error")
"""Words in names that limit or count attempts: what they hold does not make another call."""


def is_polling(
    module: Module, loop: Loop, attempt: ast.Try | None, errors: tuple[str, ...], *, by_name: bool = True
) -> bool:
    """Return whether a loop waits for a state: its errors, its name (`by_name`), its messages or its call say so."""
    function = module.function_of(loop)
    name = function.name if function is not None else ""
    if errors and all(map(patterns.NOT_YET_ERRORS.search, errors)):
        return True
    taken = {one.arg for one in parameters(function)} if function is not None and attempt is not None else set[str]()
    if patterns.RETRIES.search(name) or any(call in taken for call in functions_in(attempt.body if attempt else [])):
        return False  # it repeats what it gets
    if by_name and (patterns.WAITS_FOR_STATE.search(name) or patterns.RECONNECTS.search(name)):
        return True
    if attempt is None:
        return False
    is_absent = bool(errors) and set(errors) <= set(_ABSENT)
    if is_absent and not any(map(patterns.LEAVES_PROCESS.search, functions_in(attempt.body))):
        return True
    if errors and all("timeout" in error.lower() for error in errors) and _waits_for_other(module, loop, attempt):
        return True
    if any(map(patterns.HEALTH_URLS.search, texts_in(attempt.body))):
        return True
    later = [*attempt.orelse, *statements_after(module, loop, attempt), *statements_below(module, loop)]
    texts = texts_in(join_bodies(attempt.handlers))
    says = any(map(patterns.SAYS_IT_WAITS.search, texts)) and not any(map(patterns.RETRIES.search, texts))
    used = set[str]().union(*map(names_in, later))
    kept = [node for node in find_all(attempt.body, ast.Assign) if not isinstance(node.value, ast.Constant)]
    returns = any(any(calls_in([node])) for node in find_all(attempt.body, ast.Return))
    gives = returns or any(used & names_stored(node.targets) for node in kept)  # what it gets is used
    return (says and not gives) or _looks_only(attempt, later)


def differs(module: Module, loop: Loop, attempt: ast.Try | None) -> bool:
    """Return whether the call is another one each time.

    So it is if a person answers, or an argument comes from a pool or from the number of the attempt. It is, too, if an
    attempt changes what the next one passes or tests: pages, fallbacks, questions that are corrected.
    """
    body = attempt.body if attempt is not None else loop.body
    failed = names_stored(attempt.handlers) if attempt is not None else set[str]()
    if any(map(patterns.PROMPTS.search, functions_in(loop.body))):
        return True
    handled = functions_in(join_bodies(attempt.handlers if attempt is not None else []))
    for name in (name.rpartition(".")[2].lower() for name in handled):
        if patterns.NEXT_ALTERNATIVE.search(name) and not patterns.NEXT_WAIT.search(name):
            return True  # it turns to another one, as by `next_server()`
    counted = _names_of_numbers(loop)
    assigns = [*find_all(loop.body, ast.Assign)]
    inner = [node for node in walk_inside(loop.body) if isinstance(node, Loop)]
    drained = {id(node) for each in inner for node in walk_inside(each.body)}  # an attempt works on all of a queue
    picked = [node for node in assigns if id(node) not in drained and _picks(node.value)]
    other = {t.id for node in picked for t in node.targets if isinstance(t, ast.Name)}
    other = counted | {name for name in other | _names_carried_on(module, loop, attempt) if not _is_option(name)}
    for node in walk_inside(body):
        if isinstance(node, ast.Call) and not patterns.LOCAL.search(ast.unparse(node.func)):
            options = [item for item in node.keywords if not _is_option(item.arg or "")]
            values = [*node.args, *(o.value for o in options if not patterns.IDEMPOTENCY_HEADERS.search(o.arg or ""))]
            values = [value for value in values if not patterns.IDEMPOTENCY_HEADERS.search(ast.unparse(value))]
            if any(plain_names_in(value) & other for value in values):
                return True
        if isinstance(node, ast.Subscript) and plain_names_in(node.slice) & counted:
            return True
        if isinstance(node, ast.If) and names_in(node.test) & other & failed:
            return True
    return False


def _names_of_numbers(loop: Loop) -> set[str]:
    """Return the names that a `for` sets to the number of the attempt, and those computed from them."""
    if isinstance(loop, ast.While):
        return set()
    result = plain_names_in(loop.target) - {"_"}
    for node in find_all(loop.body, ast.Assign):
        if plain_names_in(node.value) & result:
            result |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return result


def _names_carried_on(module: Module, loop: Loop, attempt: ast.Try | None) -> set[str]:
    """Return the names that a failure assigns, and that the next attempt reads before it assigns them anew."""
    paths = failures(module, loop, attempt) if attempt is not None else [loop.body]
    assigns = [
        node
        for path in paths
        for node in find_all(path, ast.Assign)
        if not isinstance(node.value, ast.BinOp)
        and (attempt is not None or {*map(ast.unparse, node.targets)} & plain_names_in(node.value))  # a rest of itself
    ]
    set_by = {t.id for n in assigns for t in n.targets if isinstance(t, ast.Name)}  # a sum only counts
    first: dict[str, bool] = {}
    for node in walk_inside(loop.body):
        for part in ast.walk(node.value) if isinstance(node, ast.Assign) else (node,):
            if isinstance(part, ast.Name):
                first.setdefault(part.id, isinstance(part.ctx, ast.Load))
    return {name for name in set_by if first.get(name)}


def is_service(module: Module, loop: Loop) -> bool:
    """Return whether a loop without end keeps a connection or a service alive: its function or a message says so.

    The name of a function says nothing about a loop that gets what the code below it uses.
    """
    function = module.function_of(loop)
    if any(isinstance(node, Loop) for node in takewhile(lambda node: node is not function, module.ancestors(loop))):
        return False  # the service is the loop around
    if function is not None and patterns.SERVICES.search(function.name):
        made = join_bodies(find_all(loop.body, ast.Try))
        used = set[str]().union(*map(plain_names_in, statements_below(module, loop)))
        if not used & names_stored(node for each in find_all(made, ast.Assign) for node in each.targets):
            return True
    return any("reconnect" in text.lower() for text in texts_in(statements_of_handlers(loop.body)))


def _is_option(name: str) -> bool:
    return any(word in name.lower() for word in _OPTIONS)


def _picks(value: ast.expr) -> bool:
    """Return whether an expression takes another item each time: from a pool, a queue or an iterator."""
    value = value.value if isinstance(value, ast.Await) else value
    if not isinstance(value, ast.Call) or any(
        isinstance(a, ast.Constant) and isinstance(a.value, str) for a in value.args
    ):
        return False  # pop("key") takes the same item
    return ast.unparse(value.func).rpartition(".")[2] in _PICKS


def _looks_only(attempt: ast.Try, later: list[ast.stmt]) -> bool:
    """Return whether an attempt begins with a call that only looks if something is there.

    Neither the attempt nor the code that runs later uses the result.
    """
    first = attempt.body[0]
    if isinstance(first, (ast.With, ast.AsyncWith)):
        item = first.items[0]
        made = item.context_expr if item.optional_vars is None else None
        return isinstance(made, ast.Call) and bool(patterns.PROBES.search(ast.unparse(made.func)))
    dropped = first.value if isinstance(first, ast.Expr) else None
    if isinstance(first, ast.Assign) and len(first.targets) == 1:
        rest = [statement for statement in attempt.body[1:] if not _checks_status(statement)]
        used = set[str]().union(*map(names_in, [*rest, *later]))
        dropped = first.value if not used & names_in(first.targets[0]) else None
    calls = [dropped, *(s.value for s in attempt.body[1:] if isinstance(s, ast.Expr) and not _checks_status(s))]
    calls = [_drop_check(call.value if isinstance(call, ast.Await) else call) for call in calls]
    names = [ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)]
    acts = any(patterns.ACTING_METHODS.search(name.rpartition(".")[2]) for name in names)
    return isinstance(calls[0], ast.Call) and not acts and any(map(patterns.PROBES.search, names))


def _waits_for_other(module: Module, loop: Loop, attempt: ast.Try) -> bool:
    """Return whether an attempt waits for a thread, a process, a future or a queue, for a while each time.

    What an attempt makes itself, as in `send(event).get()`, is no other.
    """
    calls = calls_in(attempt.body[:1])
    first = next(
        (c for c in calls if isinstance(c.func, ast.Attribute) and (c.args or c.keywords or c.func.attr == "accept")),
        None,
    )
    if first is None or not isinstance(first.func, ast.Attribute) or isinstance(first.func.value, ast.Call):
        return False
    if request_of(module, first) is not None or names_stored(loop.body) & plain_names_in(first.func.value):
        return False
    return first.func.attr in ("accept", "wait", "result", "join", "get", "acquire", "communicate")


def _drop_check(call: ast.expr | None) -> ast.expr | None:
    """Return the request in `request(...).raise_for_status()` and in `wait_for(request(...), 5)`, else the call."""
    match call:
        case ast.Call(func=ast.Attribute(value=inner, attr="raise_for_status")):
            return inner
        case ast.Call(func=ast.Attribute(attr="wait_for"), args=[ast.Call() as inner, *_]):
            return inner
        case _:
            return call


def _checks_status(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and "raise_for_status" in ast.unparse(statement)
