"""NESTED: a retry within another one, which repeats the error that the inner one ends with."""

import ast
import builtins
import sys
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.libraries.errors import TASK_FAILED, bases_of, error_names, is_conflict, is_doubtful, is_hopeless
from forbear_audit.libraries.self_retrying import retries_itself, roots_of
from forbear_audit.loops.generators import is_counting
from forbear_audit.loops.loop_exits import may_leave
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import ATTEMPT_LIMITS, CLIENT_PACKAGES, OVERLOAD_CODES
from forbear_audit.reading.retry_use import RetryUse, RetryUses
from forbear_audit.reading.scopes import Function, Loop, following, keyword, walk_inside
from forbear_audit.reading.syntax import find_all, join_bodies, statements_of_handlers
from forbear_audit.rules.find import find_retries
from forbear_audit.rules.unsafe_repeats import repeats_failures

_TRANSIENT = ("forbear.transient",)
_DEEPEST = 3  # functions within functions
_MOST_READ = 100  # functions behind one retry


def find_nested(module: Module, use: RetryUse, uses: RetryUses) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the first retry within an attempt of `use` whose last error `use` repeats.

    Calls in error handlers are no part of an attempt: cleaning up, or counting failures.
    """
    errors = use.policy.errors
    if use.code.loop is None and errors.names is None and errors.node is not None and repeats_failures(module, use):
        errors = replace(errors, names=_TRANSIENT)  # a predicate reads the status
        use = replace(use, policy=replace(use.policy, errors=errors))
    attempt, read = use.code.attempt, list[ast.AST]()
    for call in calls_outside_handlers(attempt):
        message = _find_inner(module, use, call, uses, read) if _escapes(module, call, attempt) else None
        if message is not None:
            yield "NESTED", call, f"{message}: attempts multiply"
            return
    function = use.code.function
    order = [id(each) for each in function.decorator_list] if function is not None else []
    is_queue = use.code.by_call and TASK_FAILED in (use.policy.errors.names or ())
    first = 0 if is_queue else order.index(id(use.node)) + 1 if id(use.node) in order else len(order)
    others = [other for below in order[first:] if (other := uses.by_node.get(below)) is not None]
    if function is not None and any(_multiply(module, use, other) for other in others):
        yield "NESTED", use.node, f"{function.name}() has another retry below: attempts multiply"
        return
    if use.code.loop is not None and _find_outer(module, use.code.loop, attempt) is not None:
        yield "NESTED", use.code.loop, "the loop around it starts it again when it gives up: attempts multiply"
        return
    for node in _walk_outside_handlers(attempt) if uses.by_loop else ():
        other = uses.by_loop.get(id(node))
        inner = other.code.loop if other is not None and node is not use.code.loop else None
        if other is not None and inner is not None and _multiply(module, use, other):
            yield "NESTED", use.node, f"the loop in line {inner.lineno} retries, too: attempts multiply"
            return


def _find_outer(module: Module, loop: Loop, attempt: list[ast.stmt]) -> Loop | None:
    """Return the loop that begins a retry again after its last attempt, None if something else ends it."""
    outer = next((node for node in module.ancestors(loop) if isinstance(node, (Loop, Function))), None)
    if not isinstance(outer, Loop) or not is_counting(module, outer) or loop not in outer.body or loop.orelse:
        return None
    is_endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
    returns = any(find_all(attempt, ast.Return))
    stays = (
        is_endless or not returns or may_leave(following(module, loop)) or may_leave(statements_of_handlers(loop.body))
    )
    return None if stays else outer


def _walk_outside_handlers(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a body without those in error handlers and `finally`."""
    later: set[int] = set()
    for node in walk_inside(body):
        if id(node) in later:
            continue
        if isinstance(node, ast.Try):
            parts = join_bodies(node.handlers) + node.finalbody
            later |= {id(inner) for inner in walk_inside(parts)}
        yield node


def calls_outside_handlers(body: list[ast.stmt]) -> list[ast.Call]:
    """Return the calls of a body without those in error handlers and `finally`."""
    return [node for node in _walk_outside_handlers(body) if isinstance(node, ast.Call)]


def _find_client_retry(module: Module, use: RetryUse, call: ast.Call) -> str | None:
    """Return what a client does by itself, None if it does not retry, or ends with an error that `use` lets pass."""
    own = retries_itself(module, call)
    if own is None:
        return None
    package, text = own
    if package == "subprocess" and not use.code.tries:
        return f"{text}, within this retry"
    for name in use.policy.errors.names or ():
        root, last = name.partition(".")[0], name.rpartition(".")[2]
        if name in ("Exception", "BaseException"):
            repeated = not use.policy.errors.has_predicate
        elif package == "google" and name != TASK_FAILED:
            uploads = getattr(call.func, "attr", "").startswith("load_table_from_")  # it ends with the error itself
            repeated = last in ("RetryError", "GoogleAPIError") or (uploads and root == "google")
        elif last == "ClientError" and use.policy.errors.has_predicate:  # botocore repeats only some of these
            handlers = find_all([*use.code.region, *use.code.around], ast.ExceptHandler)
            repeated = any(OVERLOAD_CODES.search(ast.unparse(handler)) for handler in handlers)
        else:
            roots = roots_of(package)
            unknown = not CLIENT_PACKAGES.search(f"{package}.") and package not in sys.stdlib_module_names
            repeated = (root in roots or name == TASK_FAILED or (unknown and is_doubtful(name, "network"))) and (
                not is_hopeless(name) and not is_conflict(name)
            )
        if repeated:
            return f"{text}, within this retry"
    return None


def _find_inner(
    module: Module, use: RetryUse, call: ast.Call, uses: RetryUses, read: list[ast.AST], path: tuple[ast.AST, ...] = ()
) -> str | None:
    """Return what retries within a call whose last error `use` repeats: its client, or a function behind it."""
    message = _find_client_retry(module, use, module.whole(call))
    passing = uses.by_call.get(id(call)) or uses.by_call.get(id(call.func))
    if message is None and passing is not None and passing.node is not use.node and _multiply(module, use, passing):
        return f"{ast.unparse(call.func)}() retries, too"
    home, function = module.resolve_behaviour(call)
    limits = [option for option in call.keywords if option.arg and ATTEMPT_LIMITS.search(option.arg)]
    is_off = any(module.constant(option.value) in (0, 1, False, None) for option in limits)
    if message or function is None or function in (use.code.function, *path) or is_off:
        return message
    others = uses if home is module else home.keep(find_retries)
    other = others.by_function.get(id(function))
    if other is not None:
        awaits_result = use.policy.errors.node is call  # a loop until there is a result: `other` ends without one
        if use.policy.library == other.policy.library == "forbear" or not (
            awaits_result or _multiply(home, use, other)
        ):
            return None
        return f"{function.name}() retries, too"
    read.append(function)
    with home.bound(function, call, module):
        for inner in calls_outside_handlers(function.body) if len(path) < _DEEPEST and len(read) < _MOST_READ else ():
            if _escapes(home, inner, function.body):
                message = _find_inner(home, use, inner, others, read, (*path, function))
            if message is not None:
                return message
    return None


def _multiply(home: Module, use: RetryUse, other: RetryUse) -> bool:
    """Return whether `use` repeats what `other` gives up on: the same policy, or an error that both know."""
    if other.policy.limits.attempts == 1:
        return False
    if use.code.loop is None and other.code.loop is None and ast.unparse(use.node) == ast.unparse(other.node):
        return True
    last = _last_errors(home, other)
    outer = [name for name in use.policy.errors.names or () if not (use.policy.errors.has_predicate and _is_all(name))]
    if last is None or (not last and other.code.statuses):  # unknown, or the last response
        return any(is_doubtful(name, "network") for name in outer)
    return any(_covers(name, inner) or _covers(inner, name) for name in outer for inner in last)


def _is_all(name: str) -> bool:
    return name in ("Exception", "BaseException")


def _covers(outer: str, inner: str) -> bool:
    """Return whether a handler of `outer` catches `inner`, as far as the names tell."""
    package, last = outer.partition(".")[0], outer.rpartition(".")[2]
    if outer == TASK_FAILED or _is_all(outer) or _is_all(inner) or last == inner.rpartition(".")[2]:
        return True
    if inner in _TRANSIENT:
        return is_doubtful(outer, "network")
    if package == inner.partition(".")[0] and last in bases_of(package):
        return True
    types = [getattr(builtins, name, None) for name in (outer, inner)]
    return all(isinstance(each, type) for each in types) and issubclass(types[1], types[0])  # type: ignore[arg-type]


def _last_errors(home: Module, other: RetryUse) -> tuple[str, ...] | None:
    """Return the errors that a retry ends with, () if it ends without, None if that is unknown."""
    if other.code.loop is not None:
        return _find_raised(home, other, other.code.loop)
    if not isinstance(other.node, ast.Call) or other.defined_elsewhere:
        return other.policy.errors.names
    call = home.whole(other.node)
    if other.policy.library == "tenacity":
        if keyword(call, "retry_error_callback") is not None:
            return ()
        if home.constant(keyword(call, "reraise")) is not True:
            return ("tenacity.RetryError",)
    if other.policy.library == "google-api-core":
        return ("google.api_core.exceptions.RetryError",)
    if other.policy.library == "backoff" and home.constant(keyword(call, "raise_on_giveup")) is False:
        return ()
    return other.policy.errors.names


def _find_raised(home: Module, other: RetryUse, loop: Loop) -> tuple[str, ...]:
    """Return the errors that a loop raises: in the handlers of its attempts, and in the code that follows it."""
    raised: list[str] = []
    for handler in other.code.handlers:
        caught = ("BaseException",) if handler.type is None else error_names(home, handler.type) or ()
        for node in find_all(handler.body, ast.Raise):
            raised += _names(home, node, handler.name, caught)
    after = loop.orelse or following(home, loop)
    for last in [statement for statement in after if isinstance(statement, ast.Raise)][:1]:
        raised += _names(home, last, None, other.policy.errors.names or ())
    return tuple(raised)


def _names(home: Module, node: ast.Raise, error: str | None, caught: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a `raise` raises: `caught` for a bare one and for a name in small letters, else its own error."""
    made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if made is None or (isinstance(made, ast.Name) and (made.id == error or not isinstance(node.exc, ast.Call))):
        return caught
    return (home.name_of(made),)


def _escapes(module: Module, call: ast.Call, attempt: list[ast.stmt]) -> bool:
    """Return whether an error of a call within an attempt fails the attempt: no handler in between swallows it."""
    whole = {id(node) for node in attempt}
    node: ast.AST = call
    for parent in module.ancestors(call):
        if id(node) in whole:
            return True
        if isinstance(parent, ast.Try) and node in parent.body and parent.handlers:
            last = [handler.body[-1] for handler in parent.handlers]
            if not any(isinstance(s, (ast.Raise, ast.Continue)) for s in last):
                return False
        node = parent
    return True
