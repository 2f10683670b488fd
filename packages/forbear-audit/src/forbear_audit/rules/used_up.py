"""STATE that outlives a call: counters that nobody sets back, and items that are lost because the next one is taken."""

import ast
from collections.abc import Iterator
from itertools import takewhile

from forbear_audit.libraries.errors import error_names
from forbear_audit.loops.loop_exits import continues, may_leave, statements_after, success_leaves
from forbear_audit.loops.waits import sleeps
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import COUNTERS, NOTHING_LEFT, RETRIES, SAYS_AGAIN
from forbear_audit.reading.retry_use import RetryUse, RetryUses
from forbear_audit.reading.scopes import from_package, walk_inside
from forbear_audit.reading.syntax import calls_in, find_all, names_in, names_stored, texts_in

_NEXT = ("pop", "popleft", "popitem", "get", "get_nowait")
_QUEUE_METHODS = ("task_done", "put_nowait", "get_nowait", "qsize")
_FILLS = ("append", "extend", "insert", "appendleft", "add", "put", "put_nowait", "update")


def find_kept_counters(module: Module, use: RetryUse) -> Iterator[tuple[ast.AST, str]]:
    """Yield the counters of a loop that outlive its call and are never set back: they count for the next."""
    loop = use.code.loop
    owner = module.class_of(loop) if loop is not None else None
    if loop is None or (owner is not None and RETRIES.search(owner.name)):
        return  # an object that stands for one retry
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [node.test for node in find_all(loop.body, ast.If) if may_leave([node])]
    read = set[str]().union(*map(names_in, tests))
    for node in walk_inside(loop.body):
        match node:
            case ast.AugAssign(target=target) | ast.Assign(targets=[target]) if _steps(node, target):
                if ast.unparse(target) in read and _outlives(module, target) and not _is_renewed(module, target):
                    yield node, f"`{ast.unparse(target)}` is not set back: it counts for the next call, too"
                    return
            case _:
                pass


def _steps(node: ast.AugAssign | ast.Assign, target: ast.expr) -> bool:
    """Return whether a statement computes the new value of something from its old one."""
    return isinstance(node, ast.AugAssign) or ast.unparse(target) in names_in(node.value)


def _outlives(module: Module, target: ast.expr) -> bool:
    """Return whether something is an attribute of an object, or a global name."""
    if isinstance(target, ast.Name):
        return module.owner_of(target) is module.tree and target.id not in module.imports
    return isinstance(target, ast.Attribute) and ast.unparse(target.value) in ("self", "cls")


def _is_renewed(module: Module, target: ast.expr) -> bool:
    """Return whether any function but `__init__` sets something anew, or adds to it."""
    text = ast.unparse(target)
    last = text.rpartition(".")[2]
    for node in module.parents:
        function = module.function_of(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) else None
        if function is None or function.name == "__init__":
            continue
        match node:
            case ast.Call(func=ast.Attribute(owner, name)) if name in _FILLS and ast.unparse(owner) == text:
                return True
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()) if name == last:
                around = module.parents[node]
                if isinstance(target, ast.Name) and isinstance(node, ast.Name) and not _outlives(module, node):
                    continue
                if not (isinstance(around, (ast.AugAssign, ast.Assign)) and _steps(around, node)):
                    return True
            case _:
                pass
    return False


def takes(module: Module, call: ast.Call) -> bool:
    """Return whether a call takes an item out of a list, a queue or an iterator: the next attempt gets another one."""
    match call:
        case ast.Call(func=ast.Name("next"), args=[ast.Name() | ast.Attribute() as owner, *_]):
            made, text = module.value(owner), ast.unparse(owner)
            name = module.name_of(made.func) if isinstance(made, ast.Call) else ""
            is_endless = from_package(name, "itertools", "count", "cycle")  # else it does not come back
            return not (is_endless or COUNTERS.search(text.lower()) or "id" in text)
        case ast.Call(func=ast.Attribute(owner, name), args=args) if name in _NEXT:
            is_left = isinstance(module.parents.get(call), ast.Yield)  # the caller has it
            at = [module.constant(item) for item in args]
            if name in ("get", "get_nowait"):
                return not is_left and _is_queue(module, owner, name, at)
            return not is_left and (name != "pop" or at in ([], [0], [-1]))
        case _:
            return False


def _is_queue(module: Module, owner: ast.expr, method: str, passed: list[object]) -> bool:
    """Return whether an object is a queue: by its maker, its type, or the other methods that the module calls."""
    if not all(isinstance(each, (int, float)) for each in passed):
        return False  # `get(key)` of a dictionary
    made = module.value(owner)
    name = module.name_of(made.func) if isinstance(made, ast.Call) else module.type_name(owner)
    called = {ast.unparse(call.func) for each in _QUEUE_METHODS for call in module.calls_of(each)}
    used = method == "get_nowait" or any(f"{ast.unparse(owner)}.{each}" in called for each in _QUEUE_METHODS)
    return name.endswith("Queue") if name else used


def find_used_up(module: Module, uses: RetryUses) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield where a loop goes on after a failure with the next item instead of the one that failed."""
    for loop in module.loops:
        before = [*takewhile(lambda statement: not isinstance(statement, ast.Try), loop.body)]
        attempt = next(iter(loop.body[len(before) : len(before) + 1]), None)
        if not isinstance(attempt, ast.Try) or id(loop) in uses.by_loop:
            continue
        taken = next((call for call in calls_in([*before, *attempt.body]) if takes(module, call)), None)
        is_kept = isinstance(module.parents.get(taken), (ast.Assign, ast.Await)) if taken is not None else False
        if taken is None or not is_kept or not (before or len(attempt.body) > 1):
            continue
        owner = taken.func.value if isinstance(taken.func, ast.Attribute) else taken.args[0]
        is_list = isinstance(taken.func, ast.Attribute) and taken.func.attr.startswith("pop")
        leaves = success_leaves(module, loop, attempt)
        rest = statements_after(module, loop, attempt)
        for handler in attempt.handlers:
            path = [*handler.body, *rest]
            is_end = all(map(NOTHING_LEFT.search, error_names(module, handler.type) or ()))
            if is_end or not continues(module, loop, handler) or not sleeps(module, path):
                continue
            again = any(map(SAYS_AGAIN.search, texts_in(handler.body))) or any(map(RETRIES.search, names_stored(path)))
            used = {ast.unparse(call.func.value) for call in calls_in(path) if isinstance(call.func, ast.Attribute)}
            is_lost = not is_list and (again or (leaves and isinstance(taken.func, ast.Attribute)))
            is_gone = is_list and leaves and _outlives(module, owner) and not _is_renewed(module, owner)
            if (is_lost or is_gone) and ast.unparse(owner) not in used:
                message = f"`{ast.unparse(owner)}` is used up: a failure is followed by its next item"
                yield "STATE", taken, message, "loop"
                break
