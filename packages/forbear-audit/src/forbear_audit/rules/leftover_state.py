"""STATE: what one attempt changes and the next one does not reset (the class HOW of WASABI)."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import COUNTERS, FILE_MODE, PURE_FUNCTIONS, REWINDS, STREAMS
from forbear_audit.reading.retry_use import RepeatedCode, RetryUse
from forbear_audit.reading.scopes import Loop, following, from_package, parameters, walk_inside
from forbear_audit.reading.syntax import calls_in, calls_method, find_all, functions_in, join_bodies, names_stored

_GROWS = ("append", "extend", "insert", "appendleft", "add_attachment", "attach", "add_field")
"""The methods that add to a list, a mail or a form."""

_TAKES = ("pop", "popleft", "remove", "clear")
_PUTS = ("setdefault", "update")
_BODIES = ("data", "content", "body", "files", "fileobj", "Body", "Fileobj")
"""The options by which a body is sent."""

_SENDS_FILES = (
    "upload_fileobj", "upload_from_file", "storbinary", "storlines", "putfo", "copy_expert", "copy_from", "upload_blob",
    "load_table_from_file", "upload_file_to_blob", "upload_from_stream", "put_from_stream",
)  # fmt: skip
"""The methods that read a file which they get."""

_QUEUES = ("queue.Queue", "asyncio.Queue", "queue.SimpleQueue")
_DISPLAYS = (ast.Dict, ast.Tuple, ast.List)
_SPENT = ("iter", "map", "filter", "zip", "reversed", "enumerate")
"""The builtins whose result can be read once."""


def leaves_behind(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places where an attempt leaves something behind, and what it is."""
    own, body = names_stored(use.code.region), use.code.attempt
    yield from ((node, f"`{target}` {what}") for node, target, what in _find_changes(module, use, own))
    for call in calls_in(body):
        yield from ((call, message) for message in _find_left_by_methods(module, use, call))
    yield from _find_popped_keys(module, body, own, use)
    yield from _streams(module, use, own)
    yield from _find_spent(module, use, body, own)
    yield from _find_failed_sessions(module, use, body, own)


def _find_changes(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield where an attempt changes what was there before, with its text and what happens to it."""
    yield from _mutations(use.code.attempt, own, use)
    yield from _find_outer_changes(module, use, use.code.attempt, own)


def _find_left_by_methods(module: Module, use: RetryUse, call: ast.Call) -> Iterator[str]:
    """Yield what another method of the same object leaves behind that an attempt calls."""
    if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != "self":
        return
    for home, function in module.list_behaviours(call):
        inner = replace(use, code=RepeatedCode(function.body, function))
        for _, target, what in _find_changes(home, inner, names_stored(function.body)):
            if target.startswith("self.") and not _changes(use, target, _TAKES.__contains__):
                yield f"`{target}` {what} (in {function.name}())"


def _mutations(body: list[ast.stmt], own: set[str], use: RetryUse) -> Iterator[tuple[ast.AST, str, str]]:
    flat = list(_flat(body))
    for index, statement in enumerate(flat):
        target = _find_mutated(statement, own, is_loop=use.code.loop is not None)
        if not target or COUNTERS.search(target.lower()) or _changes(use, target, _TAKES.__contains__):
            continue  # a stack is popped again
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
                    if isinstance(module.constant(key), str) and not _changes(use, name, _PUTS.__contains__):
                        yield call, f"`{name}` lacks the key after the first attempt"
                case _:
                    pass


def _rewinds(module: Module, call: ast.Call) -> bool:
    """Return whether a client goes back to the begin of the `files` that it sends, as httpx does."""
    packages = module.packages
    return isinstance(call.func, ast.Attribute) and "httpx" in packages and "requests" not in packages


def _streams(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the open files that the caller passes and an attempt reads, if nothing goes back to their begin."""
    if use.code.function is None:
        return
    taken = {each.arg for each in parameters(use.code.function)} - own
    for call in (node for statement in use.code.region for node in ast.walk(statement) if isinstance(node, ast.Call)):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        names = _BODIES if not _rewinds(module, call) else [name for name in _BODIES if name != "files"]
        bodies = [option.value for option in call.keywords if option.arg in names]
        sent = [node for body in bodies if not isinstance(body, ast.Call) for node in walk_inside([body])]
        sent += [*call.args] if method in _SENDS_FILES else []
        sent += [call.func.value] if isinstance(call.func, ast.Attribute) and method == "read" else []
        named = {part.id for part in sent if isinstance(part, ast.Name) and STREAMS.search(part.id)}
        named |= {
            ast.unparse(body.func.value) for body in bodies if _reads_all(body) and isinstance(body.func, ast.Attribute)
        }
        for name in sorted(named & taken):
            if not _changes(use, name, REWINDS.search):
                taken.remove(name)
                yield call, f"the file `{name}` is at its end after the first attempt"


def _reads_all(body: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(body, ast.Call) and not body.args and getattr(body.func, "attr", "") == "read"


def _changes(use: RetryUse, target: str, is_method: Callable[[str], object]) -> bool:
    """Return whether the function of a retry calls such a method of `target`, or sets an item of it."""
    whole = use.code.loop is None and use.code.function is not None
    for node in walk_inside(use.code.function.body if whole and use.code.function is not None else use.code.region):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if is_method(name):
                if ast.unparse(owner) == target:
                    return True
            case ast.Assign(targets=[ast.Subscript(value=owner) | (ast.Attribute() as owner)]) if (
                ast.unparse(owner) == target
            ):
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
        writes = (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("flush", "commit")
            and "session" in owner.lower()
        )
        region = use.code.function.body if use.code.function is not None else use.code.region
        if (
            writes
            and owner.partition(".")[0] not in own
            and not calls_method(region, "rollback", "begin_nested", "begin")
        ):
            yield call, f"`{owner}` needs a rollback after a failure"
            return


def _may_fail(statement: ast.stmt) -> bool:
    return not all(map(PURE_FUNCTIONS.search, functions_in([statement])))


def _find_spent(module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the files and iterators that are made before the first attempt and read by each."""
    seen: set[str] = set()
    sent = use.code.call  # what it passes is made once
    for item in (*sent.args, *(option.value for option in sent.keywords)) if sent is not None else ():
        what = _name_spent(module, item) if isinstance(item, ast.Call) else None
        if what is not None:
            yield item, f"the {what} `{ast.unparse(item)}` is at its end after the first attempt"
    for item in _find_read(body):
        text = ast.unparse(item)
        if text.partition(".")[0] in own or text in seen or _changes(use, text, REWINDS.search):
            continue
        seen.add(text)
        made = module.value(item)
        filled = [call for call in module.calls_of("append") if ast.unparse(call.func) == f"{text}.append"]
        held = [made, *(each for call in filled if isinstance(made, ast.List) for each in call.args)]
        for value in (part for each in held if each is not None for part in _parts(each)):
            what = _name_spent(module, value)
            if what is not None:
                yield item, f"the {what} `{text}` is at its end after the first attempt"


def _find_read(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the names and attributes that an attempt passes to a call, iterates, or reads from."""
    for node in walk_inside(body):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            parts = [*node.args, *(option.value for option in node.keywords)]
            parts += [part for item in parts if isinstance(item, _DISPLAYS) for part in _items(item)]
            parts += [node.func.value] if isinstance(node.func, ast.Attribute) and node.func.attr == "read" else []
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            parts = [node.iter]
        yield from (part for part in parts if isinstance(part, (ast.Name, ast.Attribute)))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, or what a dictionary, a tuple or a list holds: `("a.txt", open("a.txt"))`."""
    inner = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", None)
    yield from [value] if inner is None else (part for each in inner for part in _parts(each))


def _items(display: ast.Dict | ast.Tuple | ast.List) -> list[ast.expr]:
    """Return the names in a dictionary, a tuple or a list, and in those within: `{"file": ("a.txt", file)}`."""
    return [node for node in ast.walk(display) if isinstance(node, ast.Name)]


def _name_spent(module: Module, value: ast.expr | None) -> str | None:
    """Return what can be read only once, None for other values."""
    if isinstance(value, ast.GeneratorExp):
        return "generator"
    if isinstance(value, ast.Attribute):
        made = module.value(value.value) if value.attr == "stdout" else None
        is_pipe = isinstance(made, ast.Call) and module.name_of(made.func) == "subprocess.Popen"
        return "file" if is_pipe or module.name_of(value).startswith("sys.stdin") else None
    if not isinstance(value, ast.Call):
        return None
    name = module.name_of(value.func)
    if name in (*_SPENT, "csv.reader", "csv.DictReader"):
        return "iterator"
    if name in ("aiohttp.FormData", "aiohttp.MultipartWriter", "requests_toolbelt.MultipartEncoder"):
        return "form"
    if name in ("io.BytesIO", "io.StringIO", "tempfile.TemporaryFile", "tempfile.NamedTemporaryFile"):
        return "file"
    function = module.resolve_call(value)[1]
    if function is not None and any(isinstance(node, ast.Yield) for node in walk_inside(function.body)):
        return None if function.decorator_list else "generator"
    opened = name == "open" or (isinstance(value.func, ast.Attribute) and value.func.attr == "open")
    return "file" if opened and _reads(module, value) else None


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
                target = ast.unparse(owner) if _is_read_once(module, owner) else None
            case _:
                pass
        if target is None or (re.split(r"[.\[]", target)[0] in own and target not in shared):
            continue
        resets = REWINDS.search if target not in shared else _TAKES.__contains__
        resets = _GROWS.__contains__ if isinstance(node, ast.Call) and _pops(module, node) else resets  # put back
        is_reset = _is_emptied(use, node)
        is_reset = is_reset or (not isinstance(node, ast.Assign) and _changes(use, target, resets))
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


def _is_read_once(module: Module, owner: ast.expr) -> bool:
    """Return whether `next` takes something from an iterator that does not come back: all but numbers and circles."""
    made = module.value(owner)
    name = module.name_of(made.func) if isinstance(made, ast.Call) else ""
    return not (
        from_package(name, "itertools", "count", "cycle")
        or COUNTERS.search(ast.unparse(owner).lower())
        or "id" in ast.unparse(owner)
    )


def _pops(module: Module, call: ast.Call) -> bool:
    """Return whether a call takes an item out of a list, from one of its ends."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = [module.constant(item) for item in call.args]
    return name in ("popleft", "popitem") or (name == "pop" and at in ([], [0], [-1]))


def _reads(module: Module, call: ast.Call) -> bool:
    modes = [module.constant(item) for item in call.args]
    return not any(
        isinstance(mode, str) and FILE_MODE.search(mode) and (mode[0] in "wax" or "+" in mode) for mode in modes
    )
