"""`find_retries`: all retries of a module, of every library and written by hand."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.libraries import celery, decorators, objects
from forbear_audit.loops.handwritten import read_loop
from forbear_audit.loops.limits import has_scope
from forbear_audit.reading.modules import Function, Module, from_package
from forbear_audit.reading.retry_use import RepeatedCode, RetryPolicy, RetryUse

_PACKAGES = frozenset({
    "tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "urllib3", "requests", "httpx_retries",
    "aiohttp_retry", "google", "redis", "valkey",
})  # fmt: skip
_BARE = ("tenacity", "retrying")  # `retry(function)` is a retry with the defaults
_MOST_OPTIONS = 50  # no retry has as many, and each call would get a list of them all
_NO_CODE = RepeatedCode()
_CALLS = ("call", "acall", "__call__", "retry_call")


def find_retries(module: Module) -> list[RetryUse]:
    """Return the retries of a module in the order of the text; a shared policy and each use of it are separate."""
    seen: set[int] = set()
    uses = [*_find_decorated(module, seen), *_find_looped(module, seen), *_find_called(module, seen)]
    for call in module.calls:
        if id(call) not in seen:
            policy = read_policy(module, call)
            if policy is not None:
                uses.append(_put_together(policy, call))
    uses += [_put_together(policy, node) for policy, node in objects.read_service_configs(module)]
    for loop in module.loops:
        known = read_loop(module, loop)
        if known is not None:
            uses.append(_put_together(known[0], loop, known[1]))
    return sorted(uses, key=lambda use: (getattr(use.node, "lineno", 0), getattr(use.node, "col_offset", 0)))


def _put_together(
    policy: RetryPolicy, node: ast.AST, code: RepeatedCode = _NO_CODE, *, defined_elsewhere: bool = False
) -> RetryUse:
    return RetryUse(
        policy.library,
        node,
        policy.limits,
        policy.waits,
        policy.errors,
        policy.is_safe,
        policy.flaws,
        code,
        defined_elsewhere,
    )


def read_policy(module: Module, expr: ast.expr) -> RetryPolicy | None:
    """Return the policy that an expression makes, None if it makes none."""
    call = _whole(module, expr)
    dotted = module.name_of(call.func if isinstance(call, ast.Call) else call)
    if dotted.partition(".")[0] not in _PACKAGES:
        return None
    policy = decorators.read(module, call, dotted)
    return objects.read(module, call, dotted) if policy is None and isinstance(call, ast.Call) else policy


def _whole(module: Module, expr: ast.expr) -> ast.expr:
    """Return a call with the arguments of its partial and of `**` dictionaries written out."""
    if not isinstance(expr, ast.Call):
        return expr
    function, args, keywords = expr.func, list(expr.args), list(expr.keywords)
    made = module.value(function)
    if isinstance(made, ast.Call) and from_package(module.name_of(made.func), "functools", "partial") and made.args:
        function, args, keywords = made.args[0], [*made.args[1:], *args], [*made.keywords, *keywords]
    result: list[ast.keyword] = []
    for item in keywords:
        options = _options(module, item.value) if item.arg is None else None
        result += [item] if options is None else options
    return ast.copy_location(ast.Call(func=function, args=args, keywords=result), expr)


def _options(module: Module, expr: ast.expr) -> list[ast.keyword] | None:
    """Return the keywords that a dictionary stands for, with the items that are set later; None if unknown."""
    value = module.value(expr)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict" and not value.args:
        options = value.keywords
    elif (
        isinstance(value, ast.Dict)
        and len(value.keys) <= _MOST_OPTIONS
        and all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in value.keys)
    ):
        pairs = zip(value.keys, value.values, strict=True)
        options = [ast.keyword(arg=str(key.value), value=item) for key, item in pairs if isinstance(key, ast.Constant)]
    else:
        return None
    scope = module.function_of(expr)
    later = module.items_set.get((scope, expr.id), []) if isinstance(expr, ast.Name) and scope is not None else []
    return options + later if len(options) + len(later) <= _MOST_OPTIONS else None


def _resolve(module: Module, expr: ast.expr, seen: set[int]) -> tuple[RetryPolicy, bool] | None:
    """Return the policy of a decorator or an iterable that repeats code, and whether it is defined elsewhere."""
    policy = read_policy(module, expr)
    value = module.value(expr)
    is_elsewhere = policy is None and value is not expr and isinstance(value, ast.Call)
    if policy is not None:
        seen.add(id(expr))
    elif is_elsewhere and value is not None:
        policy = read_policy(module, value)
    return (policy, is_elsewhere) if policy is not None and policy.library in _DECORATORS else None


def _find_decorated(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    for function in module.functions:
        for decorator in function.decorator_list:
            known = _resolve(module, decorator, seen)
            if known is not None:
                code = RepeatedCode(function.body, function)
                yield _put_together(known[0], decorator, code, defined_elsewhere=known[1])
                continue
            dotted = module.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for policy, node, code in celery.read_task(module, function, decorator, dotted):
                yield _put_together(policy, node, code)


_DECORATORS = ("tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "google-api-core")


def _find_looped(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `for attempt in policy: with attempt: ...`."""
    for loop in module.loops:
        known = _resolve(module, loop.iter, seen) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
        if known is None or isinstance(loop, ast.While):
            continue
        policy, is_elsewhere = known
        if has_scope(module, loop):
            policy = replace(policy, limits=replace(policy.limits, deadline=True))
        code = RepeatedCode(loop.body, module.function_of(loop))
        yield _put_together(policy, loop.iter, code, defined_elsewhere=is_elsewhere)


def _find_called(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `Retrying(...)(function)` and `policy.call(function)`."""
    for call in module.calls:
        if not call.args:
            continue
        made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _CALLS else call.func
        if not isinstance(made, (ast.Call, ast.Name, ast.Attribute)):
            continue
        target = _function(module, call.args[0])
        known = _resolve(module, made, seen) if target is not None else None
        if target is None or known is None or id(call) in seen:
            continue
        policy, is_elsewhere = known
        if is_elsewhere or isinstance(made, ast.Call) or policy.library in _BARE:
            # `backoff.on_exception(wait, ...)` makes a policy of its first argument, and repeats nothing
            code = RepeatedCode(target.body, target)
            yield _put_together(policy, made, code, defined_elsewhere=is_elsewhere)


def _function(module: Module, expr: ast.expr) -> Function | None:
    probe = ast.Call(func=expr, args=[], keywords=[])
    module.parents[probe] = module.parents.get(expr, module.tree)
    return module.method(probe)
