"""STATE: what one attempt changes and the next one does not reset (the class HOW of WASABI)."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import COUNTERS, MEASURES, PURE_FUNCTIONS, RESUMES, REWINDS
from forbear_audit.reading.retry_use import RepeatedCode, RetryUse
from forbear_audit.reading.scopes import Loop, following, list_passed, walk_inside
from forbear_audit.reading.syntax import calls_in, calls_method, find_all, functions_in, join_bodies, names_in
from forbear_audit.rules.spent_inputs import changes, find_mode, find_spent
from forbear_audit.rules.used_up import find_kept_counters, takes

_GROWS = ("append", "extend", "insert", "appendleft", "add_attachment", "attach", "add_field")
"""The methods that add to a list, a mail or a form."""

_WRITES = ("write", "writelines", "writerow", "writerows", "writestr", "add", "addfile", "update")
_SINKS = ("csv.writer", "csv.DictWriter", "zipfile.ZipFile", "tarfile.open", "io.BytesIO", "io.StringIO")
_TAKES = ("pop", "popleft", "popitem", "remove")
_PUTS = (*_GROWS, "put", "put_nowait", "setdefault", "update")
_KEEPS = "keeps what a failed attempt did to it"
_LACKS = "lacks the key after the first attempt"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change by an attempt: `what` happens to `target`. If it `is_risky`, a failure may follow."""

    node: ast.AST
    target: str
    what: str
    is_risky: bool


def leaves_behind(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where an attempt leaves something behind, and what it is."""
    is_part = use.policy.library == "webhook"  # the sender repeats all of the function
    own = _list_anew(use.code.function.body if is_part and use.code.function is not None else use.code.region)
    seen = set[str]()
    for change in _find_changes(module, use, use.code.attempt, own):
        if change.is_risky and change.target not in seen:
            seen.add(change.target)
            yield change.node, f"`{change.target}` {change.what}"
    yield from find_spent(module, use, use.code.attempt, own)
    yield from _find_failed_sessions(module, use, use.code.attempt, own)
    yield from find_kept_counters(module, use)


def _find_changes(module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]) -> Iterator[_Change]:
    """Yield what code does to things that were there before: it adds to them, takes from them, counts or writes."""
    shared = {name for node in walk_inside(body) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    (risky, failing), shared = _find_risky(module, body), shared - own
    rest = use.code.function.args.kwarg if use.code.function is not None and use.code.loop is None else None
    fresh = own | ({rest.arg} if rest is not None else set[str]())  # `**options` is a new dictionary for each call
    for node in walk_inside(body):
        is_risky, fails = id(node) in risky, isinstance(node, ast.Call) and id(node) in failing
        found = [*_list_changed(module, node, shared, is_loop=use.code.loop is not None)]
        if isinstance(node, ast.Call):
            found += [(sink, _KEEPS, False) for sink in _find_sinks(module, node, fresh, body)]
            for change in _find_left_by_call(module, use, node, fresh):
                yield replace(change, is_risky=change.is_risky or is_risky or fails)
        for target, what, is_taken in found:
            is_log = COUNTERS.search(target.lower()) and not _is_sent(body, target)
            resets = _PUTS.__contains__ if is_taken else _is_reset
            sets = what != _LACKS and not isinstance(node, ast.Assign)
            is_reset = changes(use, target, resets, sets=sets) or _is_emptied(use, node)
            is_own = re.split(r"[.\[]", target)[0] in fresh or _puts_back(use, node, target)
            if not (is_own or is_log or is_reset):
                yield _Change(node, target, what, is_risky or (fails and (is_taken or not _grows(node))))


def _puts_back(use: RetryUse, node: ast.AST, target: str) -> bool:
    """Return whether a retry sets the key again that it takes out of a dictionary."""
    key = next(iter(node.args), None) if isinstance(node, ast.Call) else None
    text = f"{target}[{ast.unparse(key)}]" if key is not None else ""
    items = find_all(use.code.region, ast.Subscript)
    return any(isinstance(item.ctx, ast.Store) and ast.unparse(item) == text for item in items)


def _list_changed(module: Module, node: ast.AST, shared: set[str], *, is_loop: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield what a piece of code changes, what happens to it, and whether something is taken away."""
    match node:
        case ast.AugAssign(target=ast.Name(name), op=op, value=value):
            adds = isinstance(op, ast.Add) and not isinstance(value, ast.Constant) and is_loop
            if name in shared or adds:
                yield name, _KEEPS, False
        case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as owner, op=ast.Add()):
            yield ast.unparse(owner), _KEEPS, False
        case ast.Assign([ast.Subscript(ast.Name(name)) as item], ast.BinOp(left=left)):
            if ast.unparse(left).startswith((ast.unparse(item), f"{name}.get(")):
                yield name, _KEEPS, False
        case ast.Delete([ast.Subscript(ast.Name(name), key)]) if isinstance(module.constant(key), str):
            yield name, _LACKS, True
        case ast.Call(func=ast.Attribute(owner, "pop"), args=[key, *_]) if isinstance(module.constant(key), str):
            yield ast.unparse(owner), _LACKS, True
        case ast.Call(func=ast.Name("next"), args=[owner, *_]) if takes(module, node):
            yield ast.unparse(owner), _KEEPS, True
        case ast.Call(func=ast.Attribute(owner, name), args=args) if takes(module, node) or (name in _GROWS and args):
            yield ast.unparse(owner), _KEEPS, name not in _GROWS
        case _:
            pass


def _grows(node: ast.AST) -> bool:
    """Return whether a call adds to a list: what it adds is made before."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _GROWS


def _list_anew(body: list[ast.stmt]) -> set[str]:
    """Return the names that code assigns, without those to which it only adds."""
    nodes = [*walk_inside(body)]
    added = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    names = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {name.id for name in names if id(name) not in added}


def _find_risky(module: Module, body: list[ast.stmt]) -> tuple[set[int], set[int]]:
    """Return the nodes after which code may fail: before another statement, or in a loop; and those that may fail."""
    loops = [node for node in walk_inside(body) if isinstance(node, Loop)]
    grown = [loop for loop in loops if any(map(_may_fail, (loop, *following(module, loop))))]
    flat = [*_flat(body)]
    early = [one for at, one in enumerate(flat) if any(map(_may_fail, flat[at + 1 :]))]
    inside = (inner for loop in grown for inner in walk_inside([*loop.body]))
    failing = {id(node) for one in flat if _may_fail(one) for node in ast.walk(one)}
    return {id(node) for node in inside} | {id(node) for one in early for node in ast.walk(one)}, failing


def _is_reset(method: str) -> bool:
    return bool(REWINDS.search(method)) or method in _TAKES


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield simple statements in order; those below `if` are left out, for they may not run."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from (ast.copy_location(ast.Expr(item.context_expr), statement) for item in statement.items)
            yield from _flat(statement.body)
        elif isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete)):
            yield statement


def _may_fail(statement: ast.AST) -> bool:
    """Return whether code calls what may fail by a fault elsewhere."""
    names = [name for name in functions_in([statement]) if not PURE_FUNCTIONS.search(name)]
    return any(name.rpartition(".")[2] not in (*_TAKES, "next", "get_nowait") for name in names)


def _find_sinks(module: Module, call: ast.Call, fresh: set[str], body: list[ast.stmt]) -> Iterator[str]:
    """Yield the files and the like that a call writes to, if they were there before; or that it gets to append to."""
    function = ast.unparse(call.func)
    if PURE_FUNCTIONS.search(function) or function.endswith("dump") or module.name_of(call.func) in _SINKS:
        return
    owned = [call.func.value] if isinstance(call.func, ast.Attribute) and call.func.attr in _WRITES else []
    given = [item.value if isinstance(item, ast.Attribute) else item for item in list_passed(call)]
    for owner in (item for item in (*owned, *given) if isinstance(item, (ast.Name, ast.Attribute))):
        made = module.value(owner)
        mode = find_mode(module, made) if isinstance(made, ast.Call) else None
        name = module.name_of(made.func) if isinstance(made, ast.Call) else ""
        appends = mode is not None and mode[:1] == "a" and owner not in owned and isinstance(made, ast.Call)
        path = made if appends and isinstance(made, ast.Call) else owner
        is_written = owner in owned and (name in _SINKS or name.startswith("hashlib."))
        if appends and any(map(RESUMES.search, map(ast.unparse, body))):
            continue  # it goes on where it has stopped
        if (appends or is_written or (mode or "r")[0] in "wx") and not names_in(path) & fresh:
            yield ast.unparse(path)


def _find_left_by_call(module: Module, use: RetryUse, call: ast.Call, fresh: set[str]) -> Iterator[_Change]:
    """Yield what a function leaves behind that an attempt calls: in its own object, or in what it gets."""
    is_own = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
    given = [item for item in list_passed(call) if isinstance(item, (ast.Name, ast.Attribute))]
    for home, function in module.list_behaviours(call) if is_own or given else ():
        inner = replace(use, code=RepeatedCode(function.body, function))
        found = home.find_once(home.cache(_find_left), function, lambda _: _find_left(home, inner), [])  # noqa: B023
        passed = home.pass_arguments(function, call, module)
        for change in found:
            root = re.split(r"[.\[]", change.target)[0]
            outer = passed.get(root)
            text = ast.unparse(outer) if isinstance(outer, (ast.Name, ast.Attribute)) else root
            known = (root == "self" and is_own) or text != root or isinstance(outer, ast.Name)
            target = text + change.target.removeprefix(root)
            counts = isinstance(change.node, ast.AugAssign) and isinstance(change.node.value, ast.Constant)
            known = known and not MEASURES.search(function.name) and (change.is_risky or not counts)
            if known and target.partition(".")[0] not in fresh and not changes(use, target, _is_reset):
                what = change.what if "(in " in change.what else f"{change.what} (in {function.name}())"
                yield replace(change, node=call, target=target, what=what)


def _find_left(home: Module, use: RetryUse) -> list[_Change]:
    """Return what a function does to its parameters and to the attributes of its object."""
    return [*_find_changes(home, use, use.code.region, _list_anew(use.code.region))]


def _is_sent(body: list[ast.stmt], target: str) -> bool:
    """Return whether code passes something on to what may fail."""
    sent = (call for call in calls_in(body) if not PURE_FUNCTIONS.search(ast.unparse(call.func)))
    return any(ast.unparse(given) == target for call in sent for given in list_passed(call))


def _is_emptied(use: RetryUse, node: ast.AST) -> bool:
    """Return whether an attempt empties something before a node or after a failure: at its end it would be too late."""
    tries = [*find_all(use.code.region, ast.Try)]
    after = {id(each) for each in walk_inside([s for t in tries for s in (*join_bodies(t.handlers), *t.finalbody)])}
    first = getattr(node, "lineno", 0)
    calls = (call for call in calls_in(use.code.region) if getattr(call.func, "attr", "") in ("clear", "truncate"))
    return any(call.lineno < first or id(call) in after for call in calls)


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
