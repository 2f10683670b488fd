"""Load the examples, and count their lines of forbear."""

import ast
import importlib.util
from typing import Any

from forbear_testkit import ROOT

FOLDER = ROOT / "examples"


def load(name: str) -> Any:
    """Return a new module made from `examples/NAME.py`.

    It is not put into `sys.modules`: hypothesis draws constants from the modules there, and a module that is loaded in
    the middle of a run would change what it draws.
    """
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of_forbear(source: str) -> list[str]:
    """Return the lines of a program that mention forbear or an object of it; a call counts with all its lines.

    An object of forbear is what is imported from it, and what a call or attribute of such an object is bound to.
    """
    tree = ast.parse(source)
    names = _imported(tree)
    while more := _bound(tree, names) - names:
        names |= more
    numbers = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            numbers.add(node.lineno)
        elif (isinstance(node, ast.Import | ast.ImportFrom) and _modules(node)) or (
            isinstance(node, ast.Call) and _root(node.func) in names
        ):
            numbers |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = source.splitlines()
    return [lines[number - 1] for number in sorted(numbers)]


def _modules(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return any(name.partition(".")[0] == "forbear" for name in names)


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and _modules(node)
        for alias in node.names
    }


def _bound(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the names that are bound to calls or attributes of `names`: by `=`, and by `with ... as`."""
    bound = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _root(node.value) in names:
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.withitem) and _root(node.context_expr) in names:
            bound |= {node.optional_vars.id} if isinstance(node.optional_vars, ast.Name) else set()
    return bound


def _root(node: ast.expr) -> str | None:
    """Return the name that a chain of calls and attributes begins with, None without one."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
