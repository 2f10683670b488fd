"""The meaning of names at a place of a module, when that place runs: for what a fix names and imports."""

import ast
import builtins
from collections.abc import Iterator

from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import SCOPES, walk_inside
from forbear_audit.reading.statements import list_imported_names


def find_imported_name(module: Module, dotted: str, place: ast.AST) -> str | None:
    """Return a name that surely stands for the imported thing `dotted` at a place, None if there is none.

    The import must run before the place, whatever the conditions are: at the top of the module, or in a function around
    the place. Nothing else in the module may bind the name.
    """
    for name, meaning in module.imports.items():
        if meaning == dotted and bound_names(module).get(name) == {dotted} and _is_certain(module, name, place):
            return name
    return None


def is_free(module: Module, name: str, dotted: str, place: ast.AST) -> bool:
    """Return whether an import of `dotted` at the top may bind a name: where anything else does, it is taken.

    A function around the place that imports it by itself takes it, too.
    """
    names = bound_names(module)
    around = [scope for scope in module.ancestors(place) if isinstance(scope, SCOPES)]
    return "*" not in names and names.get(name, {dotted}) == {dotted} and not any(_binds(s, name) for s in around)


def bound_names(module: Module) -> dict[str, set[str]]:
    """Return the names that are bound anywhere, with what each stands for: "" if that is no import.

    "*" is among them if the module imports all names of another one.
    """
    names: dict[str, set[str]] = {}
    for node in ast.walk(module.tree):
        for name, dotted in _bindings(node):
            names.setdefault(name, set()).add(dotted)
    return names


def unbound(tree: ast.Module, before: ast.Module) -> set[str]:
    """Return the names that a tree reads more often than an earlier one, and that may be unbound where it does."""
    old, new = _reads(before), _reads(tree)
    module = Module(tree)
    top = {name for node in _running(tree) for name, _ in _bindings(node)} | set(dir(builtins))
    return {
        name
        for name, places in new.items()
        if len(places) > len(old.get(name, ())) and name not in top and not all(_local(module, p) for p in places)
    }


def _reads(tree: ast.Module) -> dict[str, list[ast.Name]]:
    names: dict[str, list[ast.Name]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.setdefault(node.id, []).append(node)
    return names


def _local(module: Module, name: ast.Name) -> bool:
    """Return whether a function, or a class without a function between, binds a name for a place in it."""
    scopes = [scope for scope in module.ancestors(name) if isinstance(scope, SCOPES)]
    seen = [s for at, s in enumerate(scopes) if at == 0 or not isinstance(s, ast.ClassDef)]
    return any(_binds(scope, name.id) for scope in seen)


def _is_certain(module: Module, name: str, place: ast.AST) -> bool:
    """Return whether an import of a name surely ran before a place, and no nearer scope hides it."""
    line = getattr(place, "lineno", 0)
    functions = [s for s in module.ancestors(place) if isinstance(s, SCOPES)]
    for scope in (*functions, module.tree):
        if isinstance(scope, (ast.ClassDef, ast.Lambda)):
            if _binds(scope, name):
                return False
        elif _binds(scope, name):
            early = [s for s in scope.body if isinstance(s, (ast.Import, ast.ImportFrom)) and s.lineno < line]
            return any(bound == name for statement in early for bound, _ in list_imported_names(statement))
    return False


def _binds(scope: ast.AST, name: str) -> bool:
    """Return whether a scope binds a name itself, not in a function or class within."""
    return any(bound == name for node in walk_inside(ast.iter_child_nodes(scope)) for bound, _ in _bindings(node))


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of the scope of a module, without what only type checkers read."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += node.orelse
            continue
        yield node
        if not isinstance(node, SCOPES):
            stack += ast.iter_child_nodes(node)


def _bindings(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that a node binds, with what each stands for: "" if the node is no import."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from list_imported_names(node)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name, ""
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, ""
        case (
            ast.ExceptHandler(name=str() as name)
            | ast.MatchAs(name=str() as name)
            | ast.MatchStar(name=str() as name)
            | ast.MatchMapping(rest=str() as name)
        ):
            yield name, ""
        case _:
            pass
