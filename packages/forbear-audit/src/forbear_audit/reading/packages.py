"""`Files`: the files of a package that are followed from one of them, up to a size. Nothing is imported."""

import ast
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from forbear_audit.reading import sources

_MOST = 8_000_000
"""The bytes of code that are followed from one file, and those whose trees are kept: these take 500 times as much."""
_MOST_KEPT = 1024  # files
_MOST_NEAR = 30  # files of a folder


class Files:
    """The files that are followed from one file; `make` makes a module of a tree and its path."""

    def __init__(self, make: Callable[[ast.Module, Path], object]) -> None:
        self._make = make
        self._followed: dict[Path, int] = {}
        self._bytes = 0

    def find(self, path: Path, dotted: str) -> tuple[object, str, str] | None:
        """Return the module that defines a dotted name which stands in the file `path`, its name there, and the rest.

        None if the name is of no file nearby, or of one that cannot be read or is too much to read.
        """
        up = len(dotted) - len(dotted.lstrip("."))
        parts = dotted.lstrip(".").split(".")
        if up:
            folder = path.parents[up - 1] if up <= len(path.parents) else path.parent
        else:
            found = _find_near(path.parent, *parts[:2])
            if found is None:
                return None
            folder = found
        for length in range(len(parts) - 1, -1 if up else 0, -1):
            place = _file(folder, tuple(parts[:length]))
            module = self._follow(place) if place is not None else None
            if module is not None:
                return module, parts[length], "".join(f".{part}" for part in parts[length + 1 :])
        return None

    def list_near(self, path: Path) -> list[object]:
        """Return the modules of the other files in the folder of a file; none if there are too many."""
        others = [each for each in sorted(path.parent.glob("*.py")) if each != path]
        found = [self._follow(each) for each in others] if len(others) <= _MOST_NEAR else []
        return [module for module in found if module is not None]

    def _follow(self, path: Path) -> object:
        """Return the module in a file, None if it cannot be read or is too much to read."""
        if path not in self._followed:
            try:
                size = path.stat().st_size
            except (OSError, ValueError):
                size = 0
            size = size if size <= sources.LARGEST else 0  # else it is not read
            if self._bytes + size > _MOST:
                return None
            self._followed[path] = size
            self._bytes += size
        kept = _kept.pop(path, None)
        if kept is None:
            tree = sources.read_tree(path)  # its limits are those of audited files
            kept = None if tree is None else self._make(tree, path), self._followed[path]
            for oldest in [*_kept]:
                if len(_kept) < _MOST_KEPT and sum(size for _, size in [*_kept.values()]) + kept[1] <= _MOST:
                    break
                _kept.pop(oldest, None)
        _kept[path] = kept  # the last one from now on
        return kept[0]


_kept: dict[Path, tuple[object, int]] = {}
"""The modules that were followed last, with their sizes, the oldest first."""


def forget() -> None:
    """Forget all modules: an error may have left some of them half understood."""
    _kept.clear()


@lru_cache(1024)
def _root(folder: Path) -> Path:
    """Return the folder that holds the outermost package of a folder."""
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return folder


@lru_cache(4096)
def _find_near(folder: Path, name: str, below: str = "") -> Path | None:
    """Return the folder that has a top-level name: of the package, around a folder of that name, or the one above."""
    root = _root(folder)
    around = next((each.parent for each in (folder, *folder.parents) if each.name == name), None)
    if around is not None and below and ((around / name / below).is_dir() or _file(around, (name, below)) is not None):
        return around  # not `claims/sdk/claims.py`, where `claims/sdk` has no __init__.py
    for place in (root, around, root.parent if name not in sys.stdlib_module_names else None):
        if place is not None and ((place / name).is_dir() or (place / f"{name}.py").exists()):
            return place
    return None


@lru_cache(4096)
def _file(folder: Path, parts: tuple[str, ...]) -> Path | None:
    """Return the file of a module below a folder, None if there is none."""
    place = folder.joinpath(*parts)
    choices = [place.with_suffix(".py"), place / "__init__.py"] if parts else [place / "__init__.py"]
    return next((choice for choice in choices if choice.exists()), None)
