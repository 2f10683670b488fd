"""Functions that repeat another function: what of a package calls a parameter again, and what is passed to it."""

import ast
from dataclasses import dataclass, replace

from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RetryPolicy
from forbear_audit.reading.scopes import Function, Loop, call_like, keyword, list_passed, parameters
from forbear_audit.reading.syntax import calls_in
from forbear_audit.rules.policies import find_sources, read_source

_DEEPEST = 3  # functions that pass their parameter on
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
            policy = read_source(self.home, self.source) or self.policy
        if not policy.limits.unbounded or self.policy.limits.unbounded:
            return policy
        flaw = "UNBOUNDED", use, "with these options it has no limit of attempts and no deadline"
        return replace(policy, flaws=(*policy.flaws, flaw))


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
        home = place
        found = home.find_once(home.cache(_find_passing), node, lambda each: _find_passing(home, each, depth), None)
    return found


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
        given = {item.id for item in list_passed(call) if isinstance(item, ast.Name)}
        known = find_repeater(module, call.func, depth + 1) if given & {*order} else None
        taken = find_given(call, known) if known is not None else None
        if known is not None and isinstance(taken, ast.Name) and taken.id in order:
            inner = {node.name for node in function.body if isinstance(node, Function)}
            results = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            is_decorator = any(isinstance(value, ast.Name) and value.id in inner for value in results)
            place = None if is_decorator or known.taken is None else (order.index(taken.id), taken.id)
            if ast.unparse(call.func).startswith("self."):
                return replace(known, taken=place)  # its options are those of the object
            policy = known.read(module, call.func if isinstance(call.func, ast.Call) else call)
            return Repeater(module, policy, ast.Constant(None), None, place, known.awaits)
    return None


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
                init = module.methods.get((held, "__init__"))
                found[held] = Repeater(module, policy, source, init, None, awaits=True)
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
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self":
            owner = module.class_of(call)
            init = module.methods.get((owner, "__init__")) if owner is not None else None
            names = {one.arg for one in parameters(init)} if init is not None else set[str]()
            if any(isinstance(value, ast.Name) and value.id in names for value in module.values(call.func)):
                return owner
    return None


def _find_name(module: Module, call: ast.Call) -> tuple[str, ast.expr] | None:
    """Return the parameter with the name of the method that a call calls by `getattr`, and the object."""
    match module.value(call.func) if isinstance(call.func, ast.Name) else call.func:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Name(id=name), *_]):
            return name, owner
        case _:
            return None


def find_given(call: ast.Call, known: Repeater) -> ast.expr | None:
    """Return the function that a call passes to a repeater."""
    index, name = known.taken or (0, "")
    return call.args[index] if len(call.args) > index else keyword(call, name)
