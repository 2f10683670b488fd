"""Generators of attempts: functions and classes of the package that count, or wait, for the loops over them."""

import ast

from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Loop, walk_inside
from forbear_audit.reading.syntax import find_all, has, walk_assigned

_WRAPPERS = ("reversed", "enumerate")
_COUNTS = ("range", "count", "repeat", "cycle")


def find_iterated_call(module: Module, loop: Loop) -> tuple[ast.Call, str] | None:
    """Return the call that a `for` iterates, without `enumerate`, and the last part of its name; None without one."""
    call = _unwrap(module, loop.iter) if not isinstance(loop, ast.While) else None
    return (call, module.name_of(call.func).rpartition(".")[2]) if isinstance(call, ast.Call) else None


def find_generator(module: Module, loop: Loop) -> tuple[Module, Loop] | None:
    """Return the loop of the generator that a `for` iterates, with its module; None if it yields no attempts."""
    known = find_iterated_call(module, loop)
    if known is None:
        return None
    home, function = module.resolve_call(known[0])
    if function is None and isinstance(known[0].func, (ast.Name, ast.Attribute)):
        home, owner = module.definition(known[0].func)
        function = home.methods.get((owner, "__iter__")) if isinstance(owner, ast.ClassDef) else None
    if function is None or function.decorator_list:
        return None
    nodes = [node for node in walk_inside(function.body) if isinstance(node, Loop) and has(node, ast.Yield)]
    return (home, nodes[0]) if len(nodes) == 1 and is_counting(home, nodes[0]) else None


def is_counting(module: Module, loop: Loop) -> bool:
    """Return whether a loop only counts: `while`, or `for` over numbers."""
    if isinstance(loop, ast.While):
        return True
    values = list_iterated(module, loop)
    known = find_iterated_call(module, loop)
    return bool(values and all(isinstance(v, (int, float)) for v in values)) or (known or ("", ""))[1] in _COUNTS


def list_iterated(module: Module, loop: ast.For | ast.AsyncFor) -> tuple[object, ...] | None:
    """Return the values that a `for` takes from a list in the code, or by `enumerate` from any; None if unknown."""
    source = _unwrap(module, loop.iter)
    is_list = isinstance(source, (ast.Tuple, ast.List)) or source is not loop.iter
    return module.items(source) if is_list else None


def _unwrap(module: Module, source: ast.expr) -> ast.expr:
    """Return what is iterated without `reversed` and `enumerate`."""
    while isinstance(source, ast.Call) and module.name_of(source.func) in _WRAPPERS and source.args:
        source = source.args[0]
    return source


def list_yielded(home: Module, loop: Loop) -> list[ast.expr]:
    """Return the expressions that the loop of a generator yields, and what its function assigns to their names."""
    values = [node.value for node in find_all(loop.body, ast.Yield) if node.value is not None]
    function = home.function_of(loop)
    return values + [e for v in values for e in walk_assigned(function.body if function is not None else [], v)]
