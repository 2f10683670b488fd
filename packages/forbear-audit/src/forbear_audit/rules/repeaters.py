"""Functions that repeat another function: what of a package calls a parameter again, and what is passed to it."""

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
from forbear_audit.reading.scopes import (
    Function,
    Loop,
    add_options,
    call_like,
    from_package,
    has_unknown,
    keyword,
    parameters,
)
from forbear_audit.reading.syntax import calls_in, find_all

PACKAGES = frozenset({
    "tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "retry", "reretry", "urllib3", "requests",
    "httpx_retries", "aiohttp_retry", "google", "redis", "valkey",
})  # fmt: skip
BARE = ("tenacity", "retrying")  # `retry(function)` is a retry with the defaults
_CALLERS = ("RetryingCaller", "AsyncRetryingCaller")
CALLS = ("call", "acall", "__call__", "retry_call", "wraps")


_DECORATORS = ("tenacity", "backoff", "stamina", "opnieuw", "retrying", "forbear", "retry", "google-api-core")
_DEEPEST = 3  # functions that pass their parameter on
_BUILTINS = ("len", "str", "int", "print", "isinstance", "repr", "list", "dict", "set", "tuple")
_MOST_READ = 200  # uses of one repeater whose own options are read


@dataclass(slots=True)
class Repeater:
    """A function or class that repeats what it gets: as an argument at a `position`, or as a decorator.

    One that `awaits` sees the errors of coroutines. `source` is the loop or the policy, `maker` the function whose
    parameters are its options.
    """

    home: Module
    policy: RetryPolicy
    source: Loop | ast.expr
    maker: Function | None
    taken: tuple[int, str] | None
    awaits: bool
    owner: ast.expr | None = None
    """Whose method it calls, where it gets the name of the method."""
    used: int = 0

    @property
    def around(self) -> list[ast.stmt]:
        """The code of each attempt around what is repeated."""
        return self.source.body if isinstance(self.source, Loop) else []

    def read(self, module: Module, use: ast.expr) -> RetryPolicy:
        """Return the policy with the options that a use passes."""
        call = use if isinstance(use, ast.Call) else module.value(use)
        if isinstance(use, ast.Call) and isinstance(use.func, ast.Attribute) and self.taken is not None:
            made = module.value(use.func.value)  # `retrier.run(f)`, where `retrier = Retrier(attempts=3)`
            call = (
                made if isinstance(made, ast.Call) and self.maker is not None and self.maker.name == "__init__" else use
            )
        if isinstance(use, (ast.Name, ast.Attribute)) and self.taken is None and isinstance(self.source, Loop):
            call = call_like(use, use)  # `@robust` has the defaults
        if not isinstance(call, ast.Call) or self.used >= _MOST_READ:
            return self.policy
        self.used += 1
        with self.home.bound(self.maker, call, module):
            policy = _read_source(self.home, self.source) or self.policy
        if not policy.limits.unbounded or self.policy.limits.unbounded:
            return policy
        flaw = "UNBOUNDED", use, "with these options it has no limit of attempts and no deadline"
        return replace(policy, flaws=(*policy.flaws, flaw))


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


def _read_source(module: Module, source: Loop | ast.expr) -> RetryPolicy | None:
    if isinstance(source, Loop):
        known = read_loop(module, source)
        return _name_statuses(*known) if known is not None else None
    found = resolve_policy(module, source, set())
    return found[0] if found is not None else None


def _name_statuses(policy: RetryPolicy, code: RepeatedCode) -> RetryPolicy:
    """Return the policy of a loop for whoever sees only its errors: failures of servers are some, too."""
    by_status = policy.errors.names is None and set(code.statuses) & set(DOUBTFUL)
    return replace(policy, errors=TRANSIENT) if by_status else policy


def find_repeater(module: Module, expr: ast.expr, depth: int = 0, *, decorates: bool = False) -> Repeater | None:
    """Return what an expression does to the function that it gets or decorates, None if it repeats nothing."""
    made = expr.func if isinstance(expr, ast.Call) else expr
    if not isinstance(made, (ast.Name, ast.Attribute)):
        return None
    place, node = module.definition(made)
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        is_object = decorates or isinstance(made, ast.Name)
        known = module.type_of(made) if is_object else None  # `guard = Guard()`
        place, node = known if known is not None else (place, None)
    if node is None and isinstance(made, ast.Attribute) and not decorates:
        known = module.type_of(made.value)  # each method of a proxy is one of what it wraps
        place, node = known[0].find_member(known[1], "__getattr__") if known is not None else (place, None)
    if node is None:
        return None
    found = place.keep(find_repeaters).get(node)
    if isinstance(node, ast.ClassDef) and found is None:
        place, node = place.find_member(node, "__call__")
    if found is None and depth < _DEEPEST and isinstance(node, Function):
        passing = place.keep(_make_cache)
        found = place.find_once(passing, node, lambda function: _find_passing(place, function, depth), None)
    return found


def _make_cache(module: Module) -> dict[Function, Repeater | None]:
    return {}


def _find_passing(module: Module, function: Function, depth: int) -> Repeater | None:
    """Return the repeater to which a function passes a function that it gets itself, or the methods of a class."""
    order = [one.arg for one in parameters(function) if one.arg not in ("self", "cls")]
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        match call:
            case ast.Call(func=ast.Name("setattr"), args=[ast.Name(owner), _, ast.Call(func=made)]) if owner != "self":
                wrapper = find_repeater(module, made, depth + 1)
                if wrapper is not None:
                    return wrapper
            case _:
                pass
        given = {item.id for item in (*call.args, *(o.value for o in call.keywords)) if isinstance(item, ast.Name)}
        known = find_repeater(module, call.func, depth + 1) if given & {*order} else None
        taken = find_given(call, known) if known is not None else None
        if known is not None and isinstance(taken, ast.Name) and taken.id in order:
            is_decorator = any(
                isinstance(n, ast.Return) and _names_inner(function, n.value) for n in ast.walk(function)
            )
            place = None if is_decorator or known.taken is None else (order.index(taken.id), taken.id)
            if ast.unparse(call.func).startswith("self."):
                return replace(known, taken=place)  # its options are those of the object
            policy = known.read(module, call.func if isinstance(call.func, ast.Call) else call)
            return Repeater(module, policy, ast.Constant(None), None, place, known.awaits)
    return None


def _names_inner(function: Function, value: ast.expr | None) -> bool:
    inner = {node.name for node in function.body if isinstance(node, Function)}
    return isinstance(value, ast.Name) and value.id in inner


@dataclass(frozen=True, slots=True)
class Source:
    """Code that may repeat a parameter: its policy, what is repeated, the place, and whether it makes a wrapper."""

    policy: RetryPolicy
    made: Loop | ast.expr
    region: list[ast.stmt]
    place: ast.AST
    wraps: bool = False


def make_repeater(
    home: Module, source: Source, maker: Function | None, taken: tuple[int, str] | None, owner: ast.expr | None = None
) -> Repeater:
    """Return the repeater that a source is."""
    return Repeater(home, source.policy, source.made, maker, taken, awaits=True, owner=owner)


def find_repeaters(module: Module) -> dict[ast.AST, Repeater]:
    """Return the functions and classes of a module that repeat what they get."""
    found = dict[ast.AST, Repeater]()
    for known in module.keep(find_sources):
        policy, source, region, place, wraps = known.policy, known.made, known.region, known.place, known.wraps
        calls = [call for call in calls_in(region) if isinstance(call.func, (ast.Name, ast.Call))]
        named = dict(item for item in (_find_name(module, call) for call in calls) if item is not None)
        calls = [call for call in calls if isinstance(call.func, ast.Name)]
        called = {ast.unparse(call.func) for call in calls} | named.keys()
        around = [n for n in module.ancestors(place) if isinstance(n, Function)]
        if isinstance(place, Function):
            around = [place, *around]
        taking = next((f for f in around if called & {one.arg for one in parameters(f)}), None)
        if taking is None:
            held = _find_held(module, region)
            if held is not None:
                found[held] = make_repeater(module, known, module.methods.get((held, "__init__")), None)
            continue
        names = {one.arg for one in parameters(taking)}
        awaits = any(isinstance(module.parents.get(c), ast.Await) for c in calls if ast.unparse(c.func) in names)
        awaits = awaits or (not isinstance(source, Loop) and not isinstance(taking, ast.AsyncFunctionDef))
        owner = module.class_of(taking)
        init = module.methods.get((owner, "__init__")) if owner is not None else None
        if taking.name == "__call__" and owner is not None:
            found[owner] = Repeater(module, policy, source, init, None, awaits)
        elif taking is around[-1] and not wraps:
            order = [one.arg for one in parameters(taking) if one.arg not in ("self", "cls")]
            name = next(name for name in order if name in called)
            place_of_it = (order.index(name), name) if taking.name != "__getattr__" else None
            found[taking] = Repeater(module, policy, source, init or taking, place_of_it, awaits, named.get(name))
        else:
            awaits = awaits or (around[-1] in found and found[around[-1]].awaits)  # it makes a wrapper for both
            found[around[-1]] = Repeater(module, policy, source, around[-1], None, awaits)
    return found


def _find_held(module: Module, region: list[ast.stmt]) -> ast.ClassDef | None:
    """Return the class around code that calls what an object of it got when it was made: `self.function()`."""
    for call in calls_in(region):
        match call.func:
            case ast.Attribute(value=ast.Name("self")) as held:
                owner = module.class_of(call)
                init = module.methods.get((owner, "__init__")) if owner is not None else None
                names = {one.arg for one in parameters(init)} if init is not None else set[str]()
                if any(isinstance(value, ast.Name) and value.id in names for value in module.values(held)):
                    return owner
            case _:
                pass
    return None


def _find_name(module: Module, call: ast.Call) -> tuple[str, ast.expr] | None:
    """Return the parameter with the name of the method that a call calls by `getattr`, and the object."""
    match module.value(call.func) if isinstance(call.func, ast.Name) else call.func:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Name(id=name), *_]):
            return name, owner
        case _:
            return None


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


def find_given(call: ast.Call, known: Repeater) -> ast.expr | None:
    """Return the function that a call passes to a repeater."""
    index, name = known.taken or (0, "")
    return call.args[index] if len(call.args) > index else keyword(call, name)
