"""The code that a call gives to what repeats it: a function, a lambda, a partial, or the name of a method."""

import ast

from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RepeatedCode
from forbear_audit.reading.scopes import from_package
from forbear_audit.rules.repeaters import Repeater, find_given


def read_given_code(module: Module, call: ast.Call, known: Repeater) -> RepeatedCode | None:
    """Return the code that a repeater gets from a call, None if it is unknown or the call makes a decorator."""
    if known.owner is not None:
        return _read_method(module, call, known, known.owner)
    given = find_given(call, known)
    if given is None or (known.taken is None and (len(call.args) != 1 or call.keywords)):
        return None
    index = (known.taken or (0, ""))[0]
    position = index if len(call.args) > index else len(call.args)
    passed = call if len(call.args) > index else ast.copy_location(ast.Call(call.func, [*call.args, given], []), call)
    if passed is not call:
        module.parents[passed] = module.parents.get(call, module.tree)
    return read_repeated_code(module, passed, position)


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
            place = module.locate(ast.copy_location(ast.Attribute(place, part, ast.Load()), call), call)
    elif isinstance(owner, ast.Name) and known.maker is not None and owner.id not in known.home.imports:
        place = known.home.pass_arguments(known.maker, call, module).get(owner.id)
    if place is None:
        return None
    method = module.locate(ast.copy_location(ast.Attribute(place, name, ast.Load()), call), call)
    rest = [item for item in call.args if item is not given]
    passed = ast.copy_location(
        ast.Call(call.func, [method, *rest], [o for o in call.keywords if o.value is not given]), call
    )
    module.parents[passed] = module.parents.get(call, module.tree)
    return read_repeated_code(module, passed, 0)


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
        return RepeatedCode(function.body, function, by_call=True, call=sent)
    is_known = function is not None or (
        isinstance(given, ast.Attribute) or (isinstance(given, ast.Name) and "." in module.name_of(given)[1:])
    )
    return RepeatedCode([ast.copy_location(ast.Expr(sent), call)], by_call=True) if is_known else None
