"""`find_retries`: all retries of a module, of every library and written by hand."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.libraries import celery, objects, queues
from forbear_audit.loops.limits import has_scope
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode, RetryUse, RetryUses
from forbear_audit.rules.repeaters import (
    BARE,
    CALLS,
    find_repeater,
    loops_of,
    read_given_code,
    read_policy,
    read_repeated_code,
    resolve_policy,
)
from forbear_audit.rules.webhooks import find_webhooks


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


def _find_decorated(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    for owner in module.top.values():
        if isinstance(owner, ast.ClassDef):
            yield from (RetryUse(*task) for task in celery.read_class(module, owner))
    for function in module.functions:
        for decorator in function.decorator_list:
            made = decorator.value if isinstance(decorator, ast.Attribute) and decorator.attr == "wraps" else decorator
            known = resolve_policy(module, made, seen)
            if known is not None:
                code = RepeatedCode(function.body, function)
                yield RetryUse(known[0], decorator, code, defined_elsewhere=known[1])
                continue
            dotted = module.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for read in (celery.read_task, queues.read_task):
                for policy, node, code in read(module, function, decorator, dotted):
                    yield RetryUse(policy, node, code)


def _find_looped(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries of the form `for attempt in policy: with attempt: ...`."""
    for loop in module.loops:
        known = resolve_policy(module, loop.iter, seen) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
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
        made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in CALLS else call.func
        if not isinstance(made, (ast.Call, ast.Name, ast.Attribute)):
            continue
        known = resolve_policy(module, made, set()) if id(call) not in seen else None
        code = read_repeated_code(module, call, 0) if known is not None else None
        if known is None or code is None:
            continue
        policy, is_elsewhere = known
        seen.add(id(made))
        if is_elsewhere or isinstance(made, ast.Call) or policy.library in BARE:
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
            known = find_repeater(module, decorator, decorates=True)
            if known is not None and (known.awaits or not isinstance(function, ast.AsyncFunctionDef)):
                policy = known.read(module, decorator)
                yield RetryUse(policy, decorator, RepeatedCode(function.body, function), defined_elsewhere=True)
    for call in module.calls:
        given = (*call.args, *(option.value for option in call.keywords))
        may_repeat = any(isinstance(item, (ast.Name, ast.Attribute, ast.Lambda, ast.Call)) for item in given)
        known = find_repeater(module, call.func) if may_repeat else None
        code = read_given_code(module, call, known) if known is not None else None
        if known is not None and code is not None:
            yield RetryUse(known.read(module, call), call, code, defined_elsewhere=True)
