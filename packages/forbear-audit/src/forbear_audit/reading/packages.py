"""`find_called`: the function that a call calls, in its module or in another of its package. Nothing is imported."""

import ast
import warnings
from functools import lru_cache
from pathlib import Path

from forbear_audit.reading import sources
from forbear_audit.reading.modules import Function, Module

_MOST = 8_000_000
"""The bytes of code that are followed from one file, and those whose trees are kept: these take 500 times as much."""
_MOST_KEPT = 1024  # files


def find_imported(module: Module, dotted: str) -> tuple[Module, Function | None]:
    """Return the module-level function with this dotted name, with its module; None if it is of no file nearby."""
    owner, _, name = dotted.rpartition(".")
    if not module.follows or module.path is None or not name or not owner.strip("."):
        return module, None
    if owner.startswith("."):
        up = len(owner) - len(owner.lstrip("."))
        folder = module.path.parents[up - 1] if up <= len(module.path.parents) else module.path.parent
        parts = owner.lstrip(".").split(".")
    else:
        folder, parts = _root(module.path.parent), owner.split(".")
        if not (folder / parts[0]).exists() and not (folder / f"{parts[0]}.py").exists():
            return module, None
    home = _follow(module, folder.joinpath(*parts).with_suffix(".py"))
    target = home.top.get(name) if home is not None else None
    if home is None or not isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return module, None
    return home, target


def find_called(module: Module, call: ast.Call) -> tuple[Module, Function | None]:
    """Return the function that a call calls, in this module or another of its package, with its module."""
    function = module.method(call)
    return (module, function) if function is not None else find_imported(module, module.name_of(call.func))


@lru_cache(1024)
def _root(folder: Path) -> Path:
    """Return the folder that holds the outermost package of a folder."""
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _follow(module: Module, path: Path) -> Module | None:
    """Return the module in a file that another one calls, None if it cannot be read or is too much to read."""
    if path not in module.followed:
        try:
            size = path.stat().st_size
        except (OSError, ValueError):
            size = 0
        size = size if size <= sources.LARGEST else 0  # else it is not read
        if module.followed_bytes + size > _MOST:
            return None
        module.followed[path] = size
        module.followed_bytes += size
    kept = _kept.pop(path, None)
    if kept is None:
        kept = _module(path), module.followed[path]
        for oldest in [*_kept]:
            if len(_kept) < _MOST_KEPT and sum(size for _, size in [*_kept.values()]) + kept[1] <= _MOST:
                break
            _kept.pop(oldest, None)
    _kept[path] = kept  # the last one from now on
    return kept[0]


_kept: dict[Path, tuple[Module | None, int]] = {}
"""The modules that were followed last, with their sizes, the oldest first."""


def _module(path: Path) -> Module | None:
    texts = sources.read(path)  # its limits are those of audited files
    if not isinstance(texts, list):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code that is read
            return Module(ast.parse(texts[0][1]), path, follows=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
