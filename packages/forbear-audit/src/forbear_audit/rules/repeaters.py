"""Functions that repeat another function: the loops of a package that call a parameter, and what is passed to them."""

import ast
from dataclasses import dataclass

from forbear_audit.loops.handwritten import read_loop
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode, RetryPolicy
from forbear_audit.reading.scopes import Loop, from_package, parameters
from forbear_audit.reading.syntax import calls_in


@dataclass(frozen=True, slots=True)
class Repeater:
    """A function or class that repeats what it gets: as an argument at a `position`, or as a decorator.

    One that `awaits` sees the errors of coroutines.
    """

    policy: RetryPolicy
    position: int | None
    awaits: bool


KnownLoop = tuple[RetryPolicy, RepeatedCode, Loop]


def loops_of(module: Module) -> list[KnownLoop]:
    """Return the loops of a module that are retries."""
    read = ((loop, read_loop(module, loop)) for loop in module.loops)
    return [(known[0], known[1], loop) for loop, known in read if known is not None]


def find_repeater(module: Module, expr: ast.expr) -> Repeater | None:
    """Return what an expression does to the function that it gets or decorates, None if it repeats nothing."""
    place, node = module.definition(expr)
    if node is None and isinstance(expr, ast.Attribute):
        owner = module.class_of(expr)
        node = module.methods.get((owner, expr.attr)) if owner and ast.unparse(expr.value) in ("self", "cls") else None
    is_definition = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return place.keep(_find_repeaters).get(node) if node is not None and is_definition else None


def _find_repeaters(module: Module) -> dict[ast.AST, Repeater]:
    found = dict[ast.AST, Repeater]()
    for policy, code, loop in module.keep(loops_of):
        calls = [call for call in calls_in(code.attempt) if isinstance(call.func, ast.Name)]
        called = {ast.unparse(call.func) for call in calls}
        around = [n for n in module.ancestors(loop) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        taking = next((f for f in around if called & {one.arg for one in parameters(f)}), None)
        if taking is None:
            continue
        names = {one.arg for one in parameters(taking)}
        awaits = any(isinstance(module.parents[c], ast.Await) for c in calls if ast.unparse(c.func) in names)
        owner = module.class_of(taking)
        if taking.name == "__call__" and owner is not None:
            found[owner] = Repeater(policy, None, awaits)
        elif taking is around[-1]:
            order = [one.arg for one in parameters(taking) if one.arg not in ("self", "cls")]
            place = next((order.index(name) for name in order if name in called), None)
            found[taking] = Repeater(policy, place, awaits)
        else:
            awaits = awaits or (around[-1] in found and found[around[-1]].awaits)  # it makes a wrapper for both
            found[around[-1]] = Repeater(policy, None, awaits)
    return found


def read_repeated_code(module: Module, call: ast.Call, position: int) -> RepeatedCode | None:
    """Return the code that a call repeats, the function that it gets at a position; None if that is unknown."""
    given = call.args[position]
    args, keywords = [*call.args[position + 1 :]], call.keywords
    made = module.value(given)
    if isinstance(made, ast.Call) and from_package(module.name_of(made.func), "functools", "partial") and made.args:
        given, args, keywords = made.args[0], [*made.args[1:], *args], [*made.keywords, *keywords]
        made = module.value(given)
    if isinstance(made, ast.Lambda):
        return RepeatedCode([ast.copy_location(ast.Expr(made.body), made)], by_call=True)
    sent = ast.copy_location(ast.Call(func=given, args=args, keywords=keywords), call)
    module.parents[sent] = module.parents.get(call, module.tree)
    home, function = module.resolve_call(sent)
    if function is not None and home is module:
        return RepeatedCode(function.body, function, by_call=True)
    is_known = function is not None or (
        isinstance(given, ast.Attribute) or (isinstance(given, ast.Name) and "." in module.name_of(given)[1:])
    )
    return RepeatedCode([ast.copy_location(ast.Expr(sent), call)], by_call=True) if is_known else None
