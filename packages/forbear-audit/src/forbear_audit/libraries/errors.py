"""Error types in code, and what their names mean: which prove that nothing was done, and which no attempt cures."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import ACCESS_ERRORS, CLIENT_ERRORS, CLIENT_PACKAGES, CONFLICT_ERRORS, REFUSALS
from forbear_audit.reading.scopes import Function

_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_BASES: Final[dict[str, list[str]]] = _ROWS.pop("bases")
_KINDS: Final = {kind: frozenset[str](names) for kind, names in _ROWS.items()}

TASK_FAILED: Final = "task.Failed"
"""Stands for every error after which a queue repeats a task."""

INTERRUPTS: Final = _KINDS["interrupts"]
"""Errors that end a program or a task: no retry may swallow them."""


def error_names(module: Module, expr: ast.expr | None) -> tuple[str, ...] | None:
    """Return the dotted names of an error type or of a tuple of them, None if they cannot be read."""
    value = module.value(expr)
    expr = value if not (isinstance(expr, ast.Name) and isinstance(value, (ast.Call, ast.Name))) else expr
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Add):
        return join_names([error_names(module, side) for side in (expr.left, expr.right)])
    if isinstance(expr, (ast.Tuple, ast.List, ast.Set)):
        opened = [module.value(item.value) if isinstance(item, ast.Starred) else None for item in expr.elts]
        parts = [getattr(made, "elts", [item]) for item, made in zip(expr.elts, opened, strict=True)]
        names = [module.name_of(item) for part in parts for item in part]
        return tuple(names) if all(names) else None
    name = module.name_of(expr)
    return (name,) if name and not (isinstance(expr, ast.Name) and module.home_of(expr).is_parameter(expr)) else None


def names_of_predicate(module: Module, expr: ast.expr | None) -> tuple[str, ...] | None:
    """Return the errors for which a function says True whatever they hold: `return isinstance(e, T)`.

    None if it is not known, or names none. What depends on a status is left to whoever reads the conditions. Of
    `not isinstance(e, T)` it is every error.
    """
    home, predicate = find_predicate(module, expr)
    parts = [part for each in _find_answers(predicate) for part in _find_alternatives(each)]
    found = list[tuple[str, ...] | None]()
    for part in parts:
        match part:
            case ast.Call(func=ast.Name("isinstance"), args=[_, kind]):
                found.append(error_names(home, kind))
            case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name("isinstance"))):
                found.append(("Exception",))
            case _:
                pass
    return join_names(found) if found else None


def find_predicate(module: Module, expr: ast.expr | None) -> tuple[Module, Function | ast.Lambda | None]:
    """Return the function of the package, or the lambda, that an expression is, with its module."""
    value = module.value(expr)
    if isinstance(value, ast.Lambda):
        return module.home_of(value), value
    home, node = module.definition(value) if isinstance(value, (ast.Name, ast.Attribute)) else (module, None)
    return home, node if isinstance(node, ast.FunctionDef) else None


def _find_answers(predicate: Function | ast.Lambda | None) -> Iterator[ast.expr]:
    """Yield what a function returns, and the conditions under which it returns True."""
    if isinstance(predicate, ast.Lambda):
        yield predicate.body
    for node in ast.walk(predicate) if isinstance(predicate, ast.FunctionDef) else ():
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif isinstance(node, ast.If) and isinstance(node.body[0], ast.Return):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and value.value is True:
                yield node.test


def _find_alternatives(expr: ast.expr) -> Iterator[ast.expr]:
    if isinstance(expr, ast.BoolOp) and isinstance(expr.op, ast.Or):
        for value in expr.values:
            yield from _find_alternatives(value)
    else:
        yield expr


def join_names(parts: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return the names of all parts, None if one part cannot be read."""
    return None if None in parts else tuple(name for part in parts for name in part or ())


def is_doubtful(name: str, kind: str) -> bool:
    """Return whether an error leaves open if a call of this kind ("network", "sql", "file") was executed."""
    last = name.rpartition(".")[2]
    if last == "ConnectionTimeout" and name.startswith(("elastic", "opensearch")):
        return True  # the answer took too long
    is_undone = kind == "sql" and last in _KINDS["rolled_back"]
    if is_undone or name in _KINDS["connect"] or REFUSALS.search(last) or is_conflict(name) or is_hopeless(name):
        return False
    if name == "webhook.Failed":
        return kind != "file"  # what could not be written is often why it failed
    package, _, own = name.partition(".")
    if package and own and package not in sys.stdlib_module_names and CLIENT_ERRORS.search(last):
        return True
    return name in _KINDS["doubtful"] or ("." in name and bool(CLIENT_PACKAGES.search(name)))


def is_hopeless(name: str) -> bool:
    """Return whether another attempt cannot cure an error: a bug, a missing file, a refused login."""
    last = name.rpartition(".")[2]
    return name in _KINDS["hopeless_builtins"] or last in _KINDS["hopeless_names"] or bool(ACCESS_ERRORS.search(last))


def bases_of(package: str) -> list[str]:
    """Return the names of the errors that stand for others of a package."""
    return _BASES.get(package, [])


def is_conflict(name: str) -> bool:
    """Return whether an error means that a rival was faster: another attempt needs no wait."""
    return bool(CONFLICT_ERRORS.search(name.rpartition(".")[2]))


def is_answer(name: str) -> bool:
    """Return whether an error always is an answer of a server, so that it may be a 4xx."""
    return name in _KINDS["answers"]


def is_status_error(name: str) -> bool:
    """Return whether an error stands for every failed status of HTTP, so for 4xx, too."""
    return name in _KINDS["status_errors"]
