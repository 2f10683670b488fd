"""Policies: what makes one, and the code that it repeats, by loops, decorators and calls."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forbear_audit.libraries import decorators, objects, queues
from forbear_audit.libraries.objects import TRANSIENT
from forbear_audit.loops.handwritten import read_loop
from forbear_audit.loops.recursion import find_recursions
from forbear_audit.loops.statuses import DOUBTFUL
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode, RetryPolicy
from forbear_audit.reading.scopes import Function, Loop, add_options, call_like, from_package, has_unknown, parameters
from forbear_audit.reading.syntax import find_all

PACKAGES = frozenset({
    "tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "retry", "reretry", "urllib3", "requests",
    "httpx_retries", "aiohttp_retry", "google", "redis", "valkey",
})  # fmt: skip
BARE = ("tenacity", "retrying")  # `retry(function)` is a retry with the defaults
_CALLERS = ("RetryingCaller", "AsyncRetryingCaller")
CALLS = ("call", "acall", "__call__", "retry_call", "wraps")
_DECORATORS = ("tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "retry", "google-api-core")
_BUILTINS = ("len", "str", "int", "print", "isinstance", "repr", "list", "dict", "set", "tuple")

KnownLoop = tuple[RetryPolicy, RepeatedCode, Loop]


def loops_of(module: Module) -> list[KnownLoop]:
    """Return the loops of a module that are retries."""
    read = [(loop, read_loop(module, loop)) for loop in module.loops]
    for loop in find_recursions(module):  # a copy: the names in it stand for what the function itself assigns
        known, function = read_loop(module, loop), module.parents[loop]
        if known is not None and isinstance(function, Function):
            read.append((loop, (known[0], replace(known[1], around=function.body))))
    return [(known[0], known[1], loop) for loop, known in read if known is not None]


def read_policy(module: Module, expr: ast.expr) -> RetryPolicy | None:
    """Return the policy that an expression makes, None if it makes none."""
    call = _whole(module, expr)
    dotted = module.name_of(call.func if isinstance(call, ast.Call) else call)
    if "." not in dotted or dotted.partition(".")[0] not in PACKAGES:
        return None
    for package, names, parse in decorators.READERS:
        if from_package(dotted, package, *names):
            made = call if isinstance(call, ast.Call) else call_like(call, call)
            return RetryPolicy(package) if has_unknown(made) else parse(module, made)
    for package, names, library, read in objects.READERS if isinstance(call, ast.Call) else ():
        if isinstance(call, ast.Call) and from_package(dotted, package, *names):
            return None if has_unknown(call) else read(module, call, library)
    return None


def _whole(module: Module, expr: ast.expr) -> ast.expr:
    """Return a call with the arguments of its partial and of `**` dictionaries written out."""
    if not isinstance(expr, ast.Call):
        return expr
    function = expr.func
    caller = module.value(function.value) if isinstance(function, ast.Attribute) and function.attr == "on" else None
    if isinstance(caller, ast.Call) and from_package(module.name_of(caller.func), "stamina", *_CALLERS):
        return ast.copy_location(ast.Call(func=caller.func, args=expr.args, keywords=caller.keywords), expr)
    made = module.value(function.value) if isinstance(function, ast.Attribute) and function.attr == "copy" else None
    if isinstance(made, ast.Call) and from_package(module.name_of(made.func), "tenacity"):
        return add_options(ast.copy_location(ast.Call(made.func, made.args, expr.keywords), expr), made.keywords)
    return module.whole(expr)


def resolve_policy(module: Module, expr: ast.expr, seen: set[int]) -> tuple[RetryPolicy, bool] | None:
    """Return the policy of a decorator or an iterable that repeats code, and whether it is defined elsewhere."""
    policy = read_policy(module, expr)
    value = module.value(expr)
    if isinstance(value, ast.Lambda) and isinstance(value.body, ast.Call):  # `lambda f: retry(...)(f)`
        value = value.body.func
    is_elsewhere = policy is None and value is not expr and isinstance(value, ast.Call)
    if policy is not None:
        seen.add(id(expr))
    elif is_elsewhere and value is not None and value is not expr:
        policy = read_policy(module, value)
    if policy is None or policy.errors.names is None:
        policy = _read_made(module, expr) or policy
    return (policy, is_elsewhere) if policy is not None and policy.library in _DECORATORS else None


def _read_made(module: Module, expr: ast.expr) -> RetryPolicy | None:
    """Return the policy that a function of the package makes with the arguments of a call, None if it makes none."""
    if not isinstance(expr, ast.Call):
        return None
    home, function = module.resolve_call(expr)
    results = [node.value for node in find_all(function.body if function else (), ast.Return)]
    made = [result for result in results if isinstance(result, ast.Call)]
    with home.bound(function, expr, module):
        known = [policy for call in made if (policy := read_policy(home, call)) is not None]
    return next((policy for policy in known if policy.errors.names), known[-1] if known else None)


def read_source(module: Module, source: Loop | ast.expr) -> RetryPolicy | None:
    """Return the policy of a loop, or of what makes one; None if it is none."""
    if isinstance(source, Loop):
        known = read_loop(module, source)
        return _name_statuses(*known) if known is not None else None
    found = resolve_policy(module, source, set())
    return found[0] if found is not None else None


def _name_statuses(policy: RetryPolicy, code: RepeatedCode) -> RetryPolicy:
    """Return the policy of a loop for whoever sees only its errors: failures of servers are some, too."""
    by_status = policy.errors.names is None and set(code.statuses) & set(DOUBTFUL)
    return replace(policy, errors=TRANSIENT) if by_status else policy


@dataclass(frozen=True, slots=True)
class Source:
    """Code that may repeat a parameter: its policy, what is repeated, the place, and whether it makes a wrapper."""

    policy: RetryPolicy
    made: Loop | ast.expr
    region: list[ast.stmt]
    place: ast.AST
    wraps: bool = False


def find_sources(module: Module) -> list[Source]:
    """Return what may repeat a parameter of a function, or what a method passes on."""
    return [*_list_sources(module)]


def _list_sources(module: Module) -> Iterator[Source]:
    for policy, code, loop in module.keep(loops_of):
        yield Source(_name_statuses(policy, code), loop, code.attempt, loop)
    if not module.packages & PACKAGES and not any("." in name for name in module.imports.values()):
        return
    for loop in module.loops:
        known = resolve_policy(module, loop.iter, set()) if not isinstance(loop, ast.While) else None
        if known is not None and not isinstance(loop, ast.While):
            yield Source(known[0], loop.iter, loop.body, loop)
    for function in module.functions:
        for decorator in function.decorator_list:
            known = resolve_policy(module, decorator, set())
            if known is not None:
                yield Source(known[0], decorator, function.body, function)
    taken = {one.arg for function in module.functions for one in parameters(function)}
    for call in module.calls:
        given = next(iter(call.args), None)
        if not isinstance(given, ast.Name) or (isinstance(call.func, ast.Name) and call.func.id in _BUILTINS):
            continue
        if given.id not in taken or module.function_of(call) is None or module.values(given):
            continue
        sent: list[ast.stmt] = [ast.copy_location(ast.Expr(call_like(call, given)), call)]
        queued = queues.read_rq(module, call)
        if queued is not None:
            yield Source(queued, call, sent, call)
        made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in CALLS else call.func
        known = resolve_policy(module, made, set()) if isinstance(made, (ast.Call, ast.Name, ast.Attribute)) else None
        if known is not None and (known[1] or isinstance(made, ast.Call)):
            wraps = isinstance(module.parents.get(call), ast.Return) and len(call.args) == 1 and made is call.func
            yield Source(known[0], made, sent, call, wraps)
