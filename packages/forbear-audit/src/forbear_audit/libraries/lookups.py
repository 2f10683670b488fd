"""Attempts that look first what is there: they only add what is missing, or change what they have found."""

import ast
from typing import Literal

from forbear_audit.libraries.http import is_reading, request_of
from forbear_audit.libraries.keys import is_inside
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import CONDITIONS, LOOKS_UP, RETRIES, WRITES_BACK
from forbear_audit.reading.scopes import walk_inside
from forbear_audit.reading.syntax import calls_in, find_all, names_stored, plain_names_in

_Kind = Literal["row", "answer", "named"]
"""A row that a query or a list has found, an answer of a server, or something that is only named like one."""

_ENDS = (ast.Return, ast.Break, ast.Continue)


def looks_first(module: Module, call: ast.Call, region: list[ast.stmt], *, changes: bool) -> bool:
    """Return whether a call of an attempt only runs where nothing was found, or where something was if it `changes`."""
    seen = dict[str, _Kind]()
    for node in walk_inside(region):
        if getattr(node, "lineno", 0) > call.lineno:
            continue
        match node:
            case ast.Assign(targets=targets, value=value) if (kind := _read(module, value, seen)) is not None:
                seen |= {name: kind for target in targets for name in plain_names_in(target)}
            case ast.For(target=target, iter=value) if _read(module, value, seen) in ("row", "answer"):
                seen |= dict.fromkeys(plain_names_in(target), "row")
            case ast.If() if _is_decided(module, call, node, seen, changes=changes):
                return True
            case _:
                pass
    return False


def adds_to_read(module: Module, call: ast.Call, region: list[ast.stmt]) -> bool:
    """Return whether a call writes back what an attempt has read and added to: `row.count += 1`, `row.save()`."""
    if not isinstance(call.func, ast.Attribute) or not WRITES_BACK.search(ast.unparse(call.func)):
        return False
    if CONDITIONS.search(ast.unparse(call)):
        return False
    assigns = [node for node in find_all(region, ast.Assign) if node.lineno <= call.lineno]
    read = set[str]()
    for node in assigns:
        known = plain_names_in(node.value) & read or _read(module, node.value, {}) is not None
        read |= set[str]().union(*map(plain_names_in, node.targets)) if known else set()
    passed = plain_names_in(call)
    if call.func.attr in ("commit", "acommit"):
        passed |= read
    for step in find_all(region, ast.AugAssign):
        adds = isinstance(step.op, (ast.Add, ast.Sub)) and isinstance(step.target, (ast.Attribute, ast.Subscript))
        if adds and plain_names_in(step.target) & read & passed and not RETRIES.search(ast.unparse(step.target)):
            return True
    owner = ast.unparse(call.func.value)
    sums = [*call.args, *(node.value for node in assigns if passed & names_stored([node]))]
    computed = [part for item in sums for part in ast.walk(item) if isinstance(part, ast.BinOp)]
    parts = [part for part in computed if isinstance(part.op, (ast.Add, ast.Sub))]
    of_owner = {name for node in assigns if _asks(node.value, owner) for name in names_stored([node])}
    return any(plain_names_in(part) & of_owner or _asks(part, owner) for part in parts)


def _asks(value: ast.expr, owner: str) -> bool:
    """Return whether an expression is made of what an object returns: `int(store.get("n"))`."""
    made = [call.func for call in calls_in([value]) if isinstance(call.func, ast.Attribute)]
    return any(ast.unparse(each.value) == owner and is_reading(each.attr) for each in made)


def _read(module: Module, value: ast.expr, seen: dict[str, _Kind]) -> _Kind | None:
    """Return what an expression holds that was read, or is made of that."""
    if LOOKS_UP.search(ast.unparse(value)):
        return "row"
    if any(seen.get(name) in ("row", "answer") for name in plain_names_in(value)):
        return "answer"
    named: _Kind | None = None
    for call in calls_in([value]):
        home, function = module.resolve_call(call)
        sent = [request_of(home, each) for each in calls_in(function.body)] if function else [request_of(module, call)]
        known = {each.method for each in sent if each is not None}
        if known == {"GET"} or (function is not None and not known and is_reading(function.name)):
            return "answer"
        named = "named" if is_reading(ast.unparse(call.func).rpartition(".")[2]) else named
    return named


def _is_decided(module: Module, call: ast.Call, node: ast.If, seen: dict[str, _Kind], *, changes: bool) -> bool:
    """Return whether a test of what was found decides that a call runs."""
    negated, inner = isinstance(node.test, ast.UnaryOp), getattr(node.test, "operand", node.test)
    if isinstance(inner, ast.Compare) and is_none(inner.comparators[0]):
        negated, inner = isinstance(inner.ops[0], ast.Is), inner.left
    used = plain_names_in(inner) & seen.keys()
    kinds = {"row"} if LOOKS_UP.search(ast.unparse(inner)) else {seen[name] for name in used}
    if not kinds or ("row" not in kinds and not isinstance(inner, ast.Name)):
        return False  # a property of what is there
    found, missing = (node.orelse, node.body) if negated else (node.body, node.orelse)
    if kinds == {"named"}:
        return is_inside(module, call, missing) and bool(used & names_stored(missing))  # it makes what it looked for
    is_found = is_inside(module, call, found)
    ends = bool(found) and isinstance(found[-1], _ENDS) and not is_found
    return is_inside(module, call, missing) or (is_found if changes else ends)
