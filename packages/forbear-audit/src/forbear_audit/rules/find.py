"""`find_retries`: all retries of a module, of every library and written by hand."""

import ast
from collections.abc import Iterator

from forbear_audit.libraries import celery, decorators, objects
from forbear_audit.loops.handwritten import read_loop
from forbear_audit.loops.limits import has_scope
from forbear_audit.reading.modules import Function, Module, from_package
from forbear_audit.reading.retry_use import RetryUse

_PACKAGES = frozenset({
    "tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "urllib3", "requests", "httpx_retries",
    "aiohttp_retry", "google", "redis", "valkey",
})  # fmt: skip
_BARE = ("tenacity", "retrying")  # `retry(function)` is a retry with the defaults
_MOST_OPTIONS = 50  # no retry has as many, and each call would get a list of them all
_CALLS = ("call", "acall", "__call__", "retry_call")


def find_retries(module: Module) -> list[RetryUse]:
    """Return the retries of a module in the order of the text; a shared policy and each use of it are separate."""
    seen: set[int] = set()
    uses = [*_decorated(module, seen), *_looped(module, seen), *_called(module, seen)]
    for call in module.calls:
        if id(call) not in seen:
            use = read_policy(module, call)
            if use is not None:
                uses.append(use)
    uses += objects.service_configs(module)
    uses += [use for loop in module.loops if (use := read_loop(module, loop)) is not None]
    return sorted(uses, key=lambda use: (getattr(use.node, "lineno", 0), getattr(use.node, "col_offset", 0)))


def read_policy(module: Module, expr: ast.expr) -> RetryUse | None:
    """Return the retry that an expression makes, without the code that it repeats; None if it makes none."""
    call = _whole(module, expr)
    dotted = module.dotted(call.func if isinstance(call, ast.Call) else call)
    if dotted.partition(".")[0] not in _PACKAGES:
        return None
    use = decorators.read(module, call, dotted)
    if use is None and isinstance(call, ast.Call):
        use = objects.read(module, call, dotted)
    if use is not None:
        use.node = expr
    return use


def _whole(module: Module, expr: ast.expr) -> ast.expr:
    """Return a call with the arguments of its partial and of `**` dictionaries written out."""
    if not isinstance(expr, ast.Call):
        return expr
    function, args, keywords = expr.func, list(expr.args), list(expr.keywords)
    made = module.value(function)
    if isinstance(made, ast.Call) and from_package(module.dotted(made.func), "functools", "partial") and made.args:
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


def _resolved(module: Module, expr: ast.expr, seen: set[int]) -> RetryUse | None:
    """Return the retry of a decorator or an iterable: made on the spot, or a policy that a name stands for."""
    use = read_policy(module, expr)
    if use is not None:
        seen.add(id(expr))
        return use
    value = module.value(expr)
    if value is not expr and isinstance(value, ast.Call):
        use = read_policy(module, value)
        if use is not None:
            use.defined_elsewhere, use.node = True, expr
            return use
    return None


def _decorated(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    for function in module.functions:
        for decorator in function.decorator_list:
            use = _resolved(module, decorator, seen)
            if use is not None and use.library in _DECORATORS:
                use.function, use.region = function, function.body
                yield use
                continue
            dotted = module.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            yield from celery.read_task(module, function, decorator, dotted)


_DECORATORS = ("tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "google-api-core")


def _looped(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `for attempt in policy: with attempt: ...`."""
    for loop in module.loops:
        if isinstance(loop, (ast.For, ast.AsyncFor)):
            use = _resolved(module, loop.iter, seen)
            if use is not None and use.library in _DECORATORS:
                use.function, use.region = module.function_of(loop), loop.body
                use.deadline = True if has_scope(module, loop) else use.deadline
                yield use


def _called(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `Retrying(...)(function)` and `policy.call(function)`."""
    for call in module.calls:
        if not call.args:
            continue
        policy = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _CALLS else call.func
        if not isinstance(policy, (ast.Call, ast.Name, ast.Attribute)):
            continue
        target = _function(module, call.args[0])
        if target is None:
            continue
        use = _resolved(module, policy, seen)
        if (
            use is not None
            and not use.defined_elsewhere
            and not isinstance(policy, ast.Call)
            and use.library not in _BARE
        ):
            continue  # `backoff.on_exception(wait, ...)` makes a policy of its first argument, and repeats nothing
        if use is not None and use.library in _DECORATORS and use.node is policy and id(call) not in seen:
            use.function, use.region = target, target.body
            yield use


def _function(module: Module, expr: ast.expr) -> Function | None:
    probe = ast.Call(func=expr, args=[], keywords=[])
    module.parents[probe] = module.parents.get(expr, module.tree)
    return module.method(probe)
