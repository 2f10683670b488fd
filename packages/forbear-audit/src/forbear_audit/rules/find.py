"""`find_retries`: all retries of a module, of every library and written by hand."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.libraries import celery, decorators, objects, queues
from forbear_audit.loops.limits import has_scope
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode, RetryPolicy, RetryUse, RetryUses
from forbear_audit.reading.scopes import from_package, has_unknown
from forbear_audit.rules.repeaters import find_repeater, loops_of, read_repeated_code
from forbear_audit.rules.webhooks import find_webhooks

_PACKAGES = frozenset({
    "tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "urllib3", "requests", "httpx_retries",
    "aiohttp_retry", "google", "redis", "valkey",
})  # fmt: skip
_BARE = ("tenacity", "retrying")  # `retry(function)` is a retry with the defaults
_MOST_OPTIONS = 50  # no retry has as many, and each call would get a list of them all
_CALLERS = ("RetryingCaller", "AsyncRetryingCaller")
_CALLS = ("call", "acall", "__call__", "retry_call", "wraps")


def find_retries(module: Module) -> RetryUses:
    """Return the retries of a module in the order of the text; a shared policy and each use of it are separate."""
    seen: set[int] = set()
    uses = [*_find_decorated(module, seen), *_find_looped(module, seen), *_find_called(module, seen)]
    for call in module.calls:
        if id(call) not in seen:
            policy = read_policy(module, call)
            if policy is not None:
                uses.append(RetryUse(policy, call))
    uses += [RetryUse(policy, node) for policy, node in objects.read_service_configs(module)]
    uses += [RetryUse(policy, loop, code) for policy, code, loop in module.keep(loops_of)]
    uses += _find_wrapped(module)
    uses += [RetryUse(*task) for task in (*queues.read_others(module), *find_webhooks(module))]
    order = sorted(uses, key=lambda use: (getattr(use.node, "lineno", 0), getattr(use.node, "col_offset", 0)))
    return RetryUses(order)


def read_policy(module: Module, expr: ast.expr) -> RetryPolicy | None:
    """Return the policy that an expression makes, None if it makes none."""
    call = _whole(module, expr)
    dotted = module.name_of(call.func if isinstance(call, ast.Call) else call)
    if dotted.partition(".")[0] not in _PACKAGES:
        return None
    for package, names, parse in decorators.READERS:
        if from_package(dotted, package, *names):
            made = call if isinstance(call, ast.Call) else ast.copy_location(ast.Call(call, [], []), call)
            return RetryPolicy(package) if has_unknown(made) else parse(module, made)
    for package, names, library, read in objects.READERS if isinstance(call, ast.Call) else ():
        if isinstance(call, ast.Call) and from_package(dotted, package, *names):
            return None if has_unknown(call) else read(module, call, library)
    return None


def _whole(module: Module, expr: ast.expr) -> ast.expr:
    """Return a call with the arguments of its partial and of `**` dictionaries written out."""
    if not isinstance(expr, ast.Call):
        return expr
    function, args, keywords = expr.func, list(expr.args), list(expr.keywords)
    made = module.value(function)
    caller = module.value(function.value) if isinstance(function, ast.Attribute) and function.attr == "on" else None
    if isinstance(caller, ast.Call) and from_package(module.name_of(caller.func), "stamina", *_CALLERS):
        return ast.copy_location(ast.Call(func=caller.func, args=args, keywords=caller.keywords), expr)
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
    if any(isinstance(made, ast.Call) and made is not value for made in module.values(expr)):
        return None  # a function makes it, and may change it
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
    for owner in module.top.values():
        if isinstance(owner, ast.ClassDef):
            yield from (RetryUse(*task) for task in celery.read_class(module, owner))
    for function in module.functions:
        for decorator in function.decorator_list:
            made = decorator.value if isinstance(decorator, ast.Attribute) and decorator.attr == "wraps" else decorator
            known = _resolve(module, made, seen)
            if known is not None:
                code = RepeatedCode(function.body, function)
                yield RetryUse(known[0], decorator, code, defined_elsewhere=known[1])
                continue
            dotted = module.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for read in (celery.read_task, queues.read_task):
                for policy, node, code in read(module, function, decorator, dotted):
                    yield RetryUse(policy, node, code)


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
        yield RetryUse(policy, loop.iter, code, defined_elsewhere=is_elsewhere)


def _find_called(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `Retrying(...)(function)`, `policy.call(function)` and `f.retry_with(...)`."""
    for call in module.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "retry_with":
            yield from _find_changed(module, call, call.func.value)
        if not call.args:
            continue
        made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _CALLS else call.func
        if not isinstance(made, (ast.Call, ast.Name, ast.Attribute)):
            continue
        known = _resolve(module, made, set()) if id(call) not in seen else None
        code = read_repeated_code(module, call, 0) if known is not None else None
        if known is None or code is None:
            continue
        policy, is_elsewhere = known
        seen.add(id(made))
        if is_elsewhere or isinstance(made, ast.Call) or policy.library in _BARE:
            # `backoff.on_exception(wait, ...)` makes a policy of its first argument, and repeats nothing
            yield RetryUse(policy, made, code, defined_elsewhere=is_elsewhere)


def _find_changed(module: Module, call: ast.Call, owner: ast.expr) -> Iterator[RetryUse]:
    """Yield the retry that tenacity's `function.retry_with(...)` makes: the one of the function with other options."""
    home, function = module.resolve_call(ast.copy_location(ast.Call(func=owner, args=[], keywords=[]), call))
    for decorator in function.decorator_list if function is not None else ():
        if isinstance(decorator, ast.Call) and function is not None:
            names = {option.arg for option in call.keywords}
            kept = [option for option in decorator.keywords if option.arg not in names]
            merged = ast.copy_location(ast.Call(decorator.func, decorator.args, [*call.keywords, *kept]), call)
            policy = read_policy(home, merged)
            if policy is not None and policy.library == "tenacity":
                yield RetryUse(policy, call, RepeatedCode(function.body, function, by_call=True))


def _find_wrapped(module: Module) -> Iterator[RetryUse]:
    """Yield the uses of functions of the package that repeat the function which they decorate, or which they get."""
    for function in module.functions:
        for decorator in function.decorator_list:
            made = decorator.func if isinstance(decorator, ast.Call) else decorator
            known = find_repeater(module, made) if isinstance(made, (ast.Name, ast.Attribute)) else None
            if known is not None and (known.awaits or not isinstance(function, ast.AsyncFunctionDef)):
                yield RetryUse(known.policy, decorator, RepeatedCode(function.body, function), defined_elsewhere=True)
    for call in module.calls:
        is_named = call.args and isinstance(call.func, (ast.Name, ast.Attribute))
        known = find_repeater(module, call.func) if is_named else None
        if known is not None and known.position is not None and len(call.args) > known.position:
            code = read_repeated_code(module, call, known.position)
            if code is not None:
                yield RetryUse(known.policy, call, code, defined_elsewhere=True)
