"""STATE: what one attempt changes and the next one does not reset (the class HOW of WASABI)."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import COUNTERS, PURE_FUNCTIONS, REWINDS
from forbear_audit.reading.retry_use import RepeatedCode, RetryUse
from forbear_audit.reading.scopes import Loop, following, from_package, list_passed, walk_inside
from forbear_audit.reading.syntax import calls_in, calls_method, find_all, functions_in, join_bodies, names_stored
from forbear_audit.rules.spent_inputs import changes, find_spent, find_streams

_GROWS = ("append", "extend", "insert", "appendleft", "add_attachment", "attach", "add_field")
"""The methods that add to a list, a mail or a form."""

_TAKES = ("pop", "popleft", "remove", "clear")
_PUTS = ("setdefault", "update")
_QUEUES = ("queue.Queue", "asyncio.Queue", "queue.SimpleQueue")


def leaves_behind(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where an attempt leaves something behind, and what it is."""
    is_part = use.policy.library == "webhook"  # the sender repeats all of the function
    own = names_stored(use.code.function.body if is_part and use.code.function is not None else use.code.region)
    body = use.code.attempt
    yield from ((node, f"`{target}` {what}") for node, target, what in _find_changes(module, use, own))
    for call in calls_in(body):
        yield from ((call, message) for message in _find_left_by_calls(module, use, call, own))
    yield from _find_popped_keys(module, body, own, use)
    yield from find_streams(module, use, own)
    yield from find_spent(module, use, body, own)
    yield from _find_failed_sessions(module, use, body, own)


def _find_changes(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield where an attempt changes what was there before, with its text and what happens to it."""
    yield from _mutations(use.code.attempt, own, use)
    yield from _find_outer_changes(module, use, use.code.attempt, own)


def _find_left_by_calls(module: Module, use: RetryUse, call: ast.Call, own: set[str]) -> Iterator[str]:
    """Yield what a function leaves behind that an attempt calls: in its own object, or in what it gets."""
    is_own = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
    given = [item for item in list_passed(call) if isinstance(item, ast.Name)]
    for home, function in module.list_behaviours(call) if is_own or given else ():
        inner = replace(use, code=RepeatedCode(function.body, function))
        found = home.find_once(home.cache(_find_left), function, lambda _: _find_left(home, inner), {})  # noqa: B023
        passed = home.pass_arguments(function, call, module)
        for target, what in found.items():
            if target.startswith("self.") and is_own and not changes(use, target, _TAKES.__contains__):
                yield f"`{target}` {what} (in {function.name}())"
                break
            outer = passed.get(target)
            if isinstance(outer, ast.Name) and outer.id not in own and not changes(use, outer.id, _TAKES.__contains__):
                yield f"`{outer.id}` {what} (in {function.name}())"


def _find_left(home: Module, use: RetryUse) -> dict[str, str]:
    """Return the attributes and parameters that a function leaves changed, and what happens to each."""
    return {target: what for _, target, what in _find_changes(home, use, names_stored(use.code.region))}


def _mutations(body: list[ast.stmt], own: set[str], use: RetryUse) -> Iterator[tuple[ast.AST, str, str]]:
    flat = list(_flat(body))
    for index, statement in enumerate(flat):
        target = _find_mutated(statement, own, is_loop=use.code.loop is not None)
        if not target or changes(use, target, _TAKES.__contains__):
            continue  # a stack is popped again
        later = [c for c in calls_in(flat[index + 1 :]) if not PURE_FUNCTIONS.search(ast.unparse(c.func))]
        is_sent = any(ast.unparse(given) == target for call in later for given in list_passed(call))
        if COUNTERS.search(target.lower()) and not is_sent:
            continue  # a log of the attempts
        if any(map(_may_fail, flat[index + 1 :])):
            yield statement, target, "is changed before the call, once for each attempt"


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
                    if isinstance(module.constant(key), str) and not changes(use, name, _PUTS.__contains__):
                        yield call, f"`{name}` lacks the key after the first attempt"
                case _:
                    pass


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
            if not args or any(isinstance(node, (ast.Call, ast.Await)) for item in args for node in ast.walk(item)):
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


def _find_failed_sessions(
    module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]
) -> Iterator[tuple[ast.AST, str]]:
    """Yield where an attempt writes by a session of SQLAlchemy that has failed, and that nobody rolled back."""
    if use.code.loop is None or not module.packages & {"sqlalchemy", "sqlmodel"}:
        return
    for call in calls_in(body):
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        writes = getattr(call.func, "attr", "") in ("flush", "commit") and "session" in owner.lower()
        region = use.code.function.body if use.code.function is not None else use.code.region
        is_outer = owner.partition(".")[0] not in own
        if writes and is_outer and not calls_method(region, "rollback", "begin_nested", "begin"):
            yield call, f"`{owner}` needs a rollback after a failure"
            return


def _may_fail(statement: ast.stmt) -> bool:
    return not all(map(PURE_FUNCTIONS.search, functions_in([statement])))


def _find_outer_changes(
    module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]
) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield where an attempt, before it may fail, adds to or takes from what was made before the first one."""
    shared = {name for node in walk_inside(body) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    loops = [node for node in walk_inside(body) if isinstance(node, Loop)]
    repeated = {id(inner) for loop in loops if _may_fail(loop) for inner in walk_inside([*loop.body])}
    before = [loop for loop in loops if any(map(_may_fail, following(module, loop)))]
    grown = repeated | {id(inner) for loop in before for inner in walk_inside([*loop.body])}
    flat = [*_flat(body)]
    early = {id(n) for at, one in enumerate(flat) if any(map(_may_fail, flat[at + 1 :])) for n in ast.walk(one)}
    nodes = [*walk_inside(use.code.region)]
    added = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    stored = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in added)
    anew = {node.id for node in stored}
    for node in walk_inside(body):
        target = None
        match node:
            case ast.AugAssign(target=ast.Name(id=name)) if name in shared:
                target = name
            case ast.AugAssign(target=ast.Attribute() as owner) if id(node) in repeated:
                target = ast.unparse(owner)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name not in anew:
                adds = id(node) in repeated or id(node) in early
                target = name if adds and use.code.loop is not None and not isinstance(value, ast.Constant) else None
                shared |= {name} if target else set()
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as item], value=ast.BinOp(left=left)) if id(
                node
            ) in repeated and ast.unparse(left).startswith((ast.unparse(item), f"{name}.get(")):
                target = name
            case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                made = module.value(owner)
                name = module.name_of(made.func) if isinstance(made, ast.Call) else ""
                filled = method in _GROWS and node.args and not node.keywords
                popped = _pops(module, node) and (id(node) in repeated or id(node) in early)
                written = (method == "write" and name == "open") or (method == "update" and name.startswith("hashlib."))
                taken = method in ("get", "get_nowait") and name in _QUEUES
                popped = popped or (method == "get_nowait" and id(node) in repeated)
                popped = popped and not isinstance(module.parents.get(node), ast.Yield)  # the caller has it
                is_changed = taken or popped or (id(node) in grown and (filled or written))
                target = ast.unparse(owner) if is_changed else None
            case ast.Call(func=ast.Name(id="next"), args=[ast.Name() | ast.Attribute() as owner, *_]):
                made = module.value(owner)
                name, text = module.name_of(made.func) if isinstance(made, ast.Call) else "", ast.unparse(owner)
                is_endless = from_package(name, "itertools", "count", "cycle")  # else it does not come back
                target = None if is_endless or COUNTERS.search(text.lower()) or "id" in text else text
            case _:
                pass
        if target is None or (re.split(r"[.\[]", target)[0] in own and target not in shared):
            continue
        resets = REWINDS.search if target not in shared else _TAKES.__contains__
        resets = _GROWS.__contains__ if isinstance(node, ast.Call) and _pops(module, node) else resets  # put back
        is_reset = _is_emptied(use, node) or (not isinstance(node, ast.Assign) and changes(use, target, resets))
        if not COUNTERS.search(target.lower()) and not is_reset:
            yield node, target, "keeps what a failed attempt did to it"
            return


def _is_emptied(use: RetryUse, node: ast.AST) -> bool:
    """Return whether an attempt empties something before a node or after a failure: at its end it would be too late."""
    tries = [*find_all(use.code.region, ast.Try)]
    after = {id(each) for each in walk_inside([s for t in tries for s in (*join_bodies(t.handlers), *t.finalbody)])}
    first = getattr(node, "lineno", 0)
    calls = (call for call in calls_in(use.code.region) if getattr(call.func, "attr", "") in ("clear", "truncate"))
    return any(call.lineno < first or id(call) in after for call in calls)


def _pops(module: Module, call: ast.Call) -> bool:
    """Return whether a call takes an item out of a list, from one of its ends."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = [module.constant(item) for item in call.args]
    return name in ("popleft", "popitem") or (name == "pop" and at in ([], [0], [-1]))
