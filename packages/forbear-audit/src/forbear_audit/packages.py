"""`called`: the function that a call calls, in its module or in another of its package. Nothing is imported."""

import ast
from functools import lru_cache
from pathlib import Path

from forbear_audit.modules import Function, Module

_LARGEST = 2_000_000


def imported(module: Module, dotted: str) -> tuple[Module, Function | None]:
    """Return the module-level function with this dotted name, with its module; None if it is of no file nearby."""
    owner, _, name = dotted.rpartition(".")
    if module.path is None or not name or not owner.strip("."):
        return module, None
    if owner.startswith("."):
        up = len(owner) - len(owner.lstrip("."))
        folder = module.path.parents[up - 1] if up <= len(module.path.parents) else module.path.parent
        parts = owner.lstrip(".").split(".")
    else:
        folder, parts = _root(module.path.parent), owner.split(".")
        if not (folder / parts[0]).exists() and not (folder / f"{parts[0]}.py").exists():
            return module, None
    home = _module(folder.joinpath(*parts).with_suffix(".py"))
    target = home.top.get(name) if home is not None else None
    if home is None or not isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return module, None
    return home, target


def called(module: Module, call: ast.Call) -> tuple[Module, Function | None]:
    """Return the function that a call calls, in this module or another of its package, with its module."""
    function = module.method(call)
    return (module, function) if function is not None else imported(module, module.dotted(call.func))


@lru_cache(1024)
def _root(folder: Path) -> Path:
    """Return the folder that holds the outermost package of a folder."""
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


@lru_cache(64)
def _module(path: Path) -> Module | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return Module(ast.parse(path.read_bytes()), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
