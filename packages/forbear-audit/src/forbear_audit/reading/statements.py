"""Statements that stand for others: imports for names, `with suppress(...)` and `except*` for a `try`."""

import ast
import copy
from collections.abc import Iterator

_IMPORTS = ("import_module", "importorskip")
_SUPPRESS = ("suppress", "contextlib.suppress")


def find_swallowing(tree: ast.Module) -> Iterator[tuple[str, list[ast.ExceptHandler]]]:
    """Yield the context managers of a module that swallow errors of their `with`, and how they handle them."""
    for node in tree.body:
        made = [ast.unparse(one) for one in node.decorator_list] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.FunctionDef) and any(name.endswith("contextmanager") for name in made):
            for attempt in (one for one in node.body if isinstance(one, ast.Try)):
                raised = [n for h in attempt.handlers for n in ast.walk(h) if isinstance(n, ast.Raise)]
                if attempt.handlers and not raised and ast.unparse(attempt.body[-1]).startswith("yield"):
                    yield node.name, attempt.handlers


def open_block(node: ast.With | ast.TryStar, own: dict[str, list[ast.ExceptHandler]]) -> ast.stmt:
    """Return the `try` that does the same as `with suppress(...)` or `except*`, another `with` as it is."""
    if isinstance(node, ast.TryStar):
        return ast.copy_location(ast.Try(node.body, node.handlers, node.orelse, node.finalbody), node)
    match node.items:
        case [ast.withitem(context_expr=ast.Call(func=func, args=types) as call)] if ast.unparse(func) in _SUPPRESS:
            caught = ast.copy_location(ast.Tuple(elts=types, ctx=ast.Load()), call)
            handler = ast.ExceptHandler(type=caught, name=None, body=[ast.copy_location(ast.Pass(), call)])
            handlers = [ast.copy_location(handler, call)]
        case [ast.withitem(context_expr=ast.Call(func=ast.Name(name)), optional_vars=None)] if name in own:
            handlers = copy.deepcopy(own[name])
        case _:
            return node
    return ast.copy_location(ast.Try(body=node.body, handlers=handlers, orelse=[], finalbody=[]), node)


def list_imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with the dotted name that each stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield alias.asname or alias.name, f"{base}.{alias.name}" if node.module else base + alias.name
        else:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)


def find_import(value: ast.expr) -> str | None:
    """Return the module that `import_module("x")` and the like import, None for any other expression."""
    match value:
        case ast.Call(ast.Name(called) | ast.Attribute(attr=called), [ast.Constant(str() as name)]) if (
            called in _IMPORTS
        ):
            return name
        case _:
            return None
