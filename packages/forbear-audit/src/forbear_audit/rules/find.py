"""`find_retries`: all retries of a module, of every library and written by hand."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from forbear_audit.libraries import celery, objects, queues
from forbear_audit.loops.limits import has_scope
from forbear_audit.loops.recursion import find_requeued, find_second_chances
from forbear_audit.reading.modules import RUNNERS, Module
from forbear_audit.reading.patterns import ATTEMPT_LIMITS, ERROR_NAMES, REFUSED_BY_NAME, RETRIES, RETRY_WRAPPERS
from forbear_audit.reading.retry_use import RepeatedCode, RetriedErrors, RetryPolicy, RetryUse, RetryUses, Waits
from forbear_audit.reading.scopes import Function, add_options, call_like, from_package, keyword, list_passed
from forbear_audit.rules.layers import find_layered
from forbear_audit.rules.policies import BARE, CALLS, PACKAGES, loops_of, read_policy, resolve_policy
from forbear_audit.rules.repeaters import Repeater, find_given, find_repeater
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
    again = (*find_second_chances(module), *find_requeued(module))
    uses += [RetryUse(policy, node, code, defined_elsewhere=True) for policy, code, node in again]
    uses += [*find_layered(module), *_find_wrapped(module), *_find_by_name(module, {id(use.node) for use in uses})]
    uses += [RetryUse(*task) for task in (*queues.read_others(module), *find_webhooks(module))]
    order = sorted(uses, key=lambda use: (getattr(use.node, "lineno", 0), getattr(use.node, "col_offset", 0)))
    return RetryUses(order, module)


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
        if module.name_of(call.func) in ("retry.api.retry_call", "retry.retry_call", "reretry.retry_call"):
            yield from _find_passed(module, call, seen)
            continue
        made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in CALLS else call.func
        if not isinstance(made, (ast.Call, ast.Name, ast.Attribute)):
            continue
        known = resolve_policy(module, made, set()) if id(call) not in seen else None
        code = _read_repeated_code(module, call, 0) if known is not None else None
        if known is None or code is None:
            continue
        policy, is_elsewhere = known
        seen.add(id(made))
        if is_elsewhere or isinstance(made, ast.Call) or policy.library in BARE:
            # `backoff.on_exception(wait, ...)` makes a policy of its first argument, and repeats nothing
            yield RetryUse(policy, made, code, defined_elsewhere=is_elsewhere)


def _find_passed(module: Module, call: ast.Call, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retry of `retry_call(function, fargs, fkwargs, ...)`, which passes arguments on in a list."""
    args, given = keyword(call, "fargs"), call.args[:1]
    options = [option for option in call.keywords if option.arg not in ("fargs", "fkwargs")]
    policy = read_policy(module, ast.copy_location(ast.Call(call.func, call.args[3:], options), call))
    passed = ast.Call(call.func, [*given, *getattr(module.value(args), "elts", [])], [])
    code = _read_repeated_code(module, module.locate(passed, call), 0)
    if policy is not None and code is not None:
        seen.add(id(call))
        yield RetryUse(policy, call, code)


def _find_changed(module: Module, call: ast.Call, owner: ast.expr) -> Iterator[RetryUse]:
    """Yield the retry that tenacity's `function.retry_with(...)` makes: the one of the function with other options."""
    home, function = module.resolve_call(call_like(call, owner))
    for decorator in function.decorator_list if function is not None else ():
        if isinstance(decorator, ast.Call) and function is not None:
            changed = ast.copy_location(ast.Call(decorator.func, decorator.args, call.keywords), call)
            policy = read_policy(home, add_options(changed, decorator.keywords))
            if policy is not None and policy.library == "tenacity":
                yield RetryUse(policy, call, RepeatedCode(function.body, function, by_call=True))


def _find_by_name(module: Module, seen: set[int]) -> Iterator[RetryUse]:
    """Yield the retries whose name says it, where their code is not there: `@with_retry(3)`, `for a in Attempts()`."""
    for function in module.functions:
        for decorator in function.decorator_list:
            made = decorator.func if isinstance(decorator, ast.Call) else decorator
            if id(decorator) not in seen and _repeats_by_name(module, made) and not _is_off(module, decorator):
                code = RepeatedCode(function.body, function)
                yield RetryUse(_guess_policy(module, decorator), decorator, code, defined_elsewhere=True)
    for loop in module.loops:
        match loop:
            case ast.For(target=ast.Name(name), body=[ast.With(items=[ast.withitem(ast.Name(used))], body=body)]) if (
                name == used and id(loop.iter) not in seen and RETRIES.search(ast.unparse(loop.iter) + name)
            ):
                code = RepeatedCode(body, module.function_of(loop))
                yield RetryUse(_guess_policy(module, loop.iter), loop.iter, code, defined_elsewhere=True)
            case _:
                pass
    for call in module.calls:
        if id(call) not in seen and id(call.func) not in seen and _repeats_by_name(module, call.func):
            kinds = (ast.Name, ast.Attribute, ast.Call, ast.Lambda)
            places = (at for at, each in enumerate(call.args) if isinstance(each, kinds) and module.is_function(each))
            given = next((_read_repeated_code(module, call, at) for at in places), None)
            if given is not None:
                yield RetryUse(_guess_policy(module, call), call, given, defined_elsewhere=True)


def _repeats_by_name(module: Module, made: ast.expr) -> bool:
    """Return whether a function whose code is not there is called like one that repeats others."""
    name = made.attr if isinstance(made, ast.Attribute) else made.id if isinstance(made, ast.Name) else ""
    if not RETRY_WRAPPERS.search(name) or module.name_of(made).partition(".")[0] in PACKAGES:
        return False
    return module.definition(made)[1] is None and not module.values(made)


def _guess_policy(module: Module, made: ast.expr) -> RetryPolicy:
    """Return the policy of a retry whose code is not there: its errors are those that it gets, else all."""
    text = ast.unparse(made.func if isinstance(made, ast.Call) else made)
    given = [node for node in ast.walk(made) if isinstance(node, (ast.Name, ast.Attribute))]
    names = [name for node in given if ERROR_NAMES.search((name := module.name_of(node)).rpartition(".")[2])]
    known = tuple(names) or (() if REFUSED_BY_NAME.search(text) else ("Exception",))
    return RetryPolicy("loop", waits=Waits(reads_header=True), errors=RetriedErrors(known, made, has_predicate=True))


def _is_off(module: Module, made: ast.expr) -> bool:
    """Return whether a decorator gets a limit of no retries: `@retrier(retries=0)`."""
    options = made.keywords if isinstance(made, ast.Call) else []
    limits = [option.value for option in options if option.arg and ATTEMPT_LIMITS.search(option.arg)]
    return any(module.constant(limit) in (0, False) for limit in limits)


def _find_wrapped(module: Module) -> Iterator[RetryUse]:
    """Yield the uses of functions of the package that repeat the function which they decorate, or which they get."""
    decorated = [(function, function.decorator_list) for function in module.functions]
    owners = [node for node in module.top.values() if isinstance(node, ast.ClassDef) and node.decorator_list]
    inside = [(node, owner.decorator_list) for owner in owners for node in owner.body if isinstance(node, Function)]
    decorated += [(method, decorators) for method, decorators in inside if not method.name.startswith("_")]
    for function, decorator in ((function, one) for function, decorators in decorated for one in decorators):
        known = find_repeater(module, decorator, decorates=True)
        is_seen = known is not None and (known.awaits or not isinstance(function, ast.AsyncFunctionDef))
        if known is not None and is_seen and not _is_off(module, decorator):
            whole = RepeatedCode(function.body, function, around=known.around)
            yield RetryUse(known.read(module, decorator), decorator, whole, defined_elsewhere=True)
    for call in module.calls:
        made = module.whole(call) if isinstance(call.func, ast.Attribute) and call.func.attr in RUNNERS else call
        given = list_passed(made)
        passes_function = any(isinstance(item, (ast.Name, ast.Attribute, ast.Lambda, ast.Call)) for item in given)
        may_repeat = passes_function or (bool(given) and isinstance(made.func, ast.Attribute))
        known = find_repeater(module, made.func) if may_repeat else None
        code = _read_given_code(module, made, known) if known is not None else None
        if known is not None and code is not None:
            yield RetryUse(known.read(module, made), call, replace(code, around=known.around), defined_elsewhere=True)


def _read_given_code(module: Module, call: ast.Call, known: Repeater) -> RepeatedCode | None:
    """Return the code that a repeater gets from a call, None if it is unknown or the call makes a decorator."""
    if known.owner is not None:
        return _read_method(module, call, known, known.owner)
    given = find_given(call, known)
    if given is None or (known.taken is None and (len(call.args) != 1 or call.keywords)):
        return None
    index = (known.taken or (0, ""))[0]
    if len(call.args) > index:
        return _read_repeated_code(module, call, index)
    return _read_repeated_code(module, module.locate(ast.Call(call.func, [given], []), call), 0)


def _read_method(module: Module, call: ast.Call, known: Repeater, owner: ast.expr) -> RepeatedCode | None:
    """Return the code of the method that a call makes a repeater call, by its name."""
    given = find_given(call, known) if known.taken is not None else None
    name = module.constant(given) if given is not None else getattr(call.func, "attr", None)
    if not isinstance(name, str) or not name.isidentifier():
        return None
    place: ast.expr | None = owner
    if isinstance(call.func, ast.Attribute) and ast.unparse(owner).startswith("self."):
        place = call.func.value
        for part in ast.unparse(owner).split(".")[1:]:
            place = module.locate(ast.Attribute(place, part, ast.Load()), call)
    elif isinstance(owner, ast.Name) and known.maker is not None and owner.id not in known.home.imports:
        place = known.home.pass_arguments(known.maker, call, module).get(owner.id)
    if place is None:
        return None
    method = module.locate(ast.Attribute(place, name, ast.Load()), call)
    args = [item for item in call.args if item is not given]
    passed = ast.Call(call.func, [method, *args], [item for item in call.keywords if item.value is not given])
    return _read_repeated_code(module, module.locate(passed, call), 0)


def _read_repeated_code(module: Module, call: ast.Call, position: int) -> RepeatedCode | None:
    """Return the code that a call repeats, the function that it gets at a position; None if that is unknown."""
    given = call.args[position]
    args, keywords = [*call.args[position + 1 :]], call.keywords
    made = module.value(given)
    while isinstance(made, ast.Call) and from_package(module.name_of(made.func), "functools", "partial") and made.args:
        given, args, keywords = made.args[0], [*made.args[1:], *args], [*made.keywords, *keywords]
        made = module.value(given)
    if isinstance(made, ast.Lambda):
        return RepeatedCode([ast.copy_location(ast.Expr(made.body), made)], by_call=True)
    sent = module.locate(ast.Call(func=given, args=args, keywords=keywords), call)
    home, function = module.resolve_call(sent)
    if function is not None and home is module:
        return RepeatedCode(function.body, function, by_call=True, call=sent)
    is_known = function is not None or (
        isinstance(given, ast.Attribute) or (isinstance(given, ast.Name) and "." in module.name_of(given)[1:])
    )
    return RepeatedCode([ast.copy_location(ast.Expr(sent), call)], by_call=True, call=sent) if is_known else None
