"""`forbear.adapters`: what siblings and other people's adapters need, under names that stay."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import forbear
from forbear import adapters
from forbear.core.lazy import exports

TREE = ast.parse(Path(adapters.__file__).read_text(encoding="utf-8"))


def test_type_checkers_and_programs_get_the_same() -> None:
    """The imports for type checkers name the objects that a program gets, and `__all__` lists them."""
    imported = {
        alias.asname or alias.name: exports("forbear", {alias.name: (node.module or "").removeprefix("forbear.")})[0](
            alias.name
        )
        for node in ast.walk(TREE)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(adapters.__all__) == set(imported)
    assert all(getattr(adapters, name) is value for name, value in imported.items())
    assert set(adapters.__all__) <= set(dir(adapters))


def test_its_text_names_all() -> None:
    """The docstring of the module says what each name is for."""
    assert [name for name in adapters.__all__ if f"`{name}`" not in (adapters.__doc__ or "")] == []


def test_no_name_is_private_or_public_elsewhere() -> None:
    """A name of `forbear` itself is not repeated."""
    assert {name for name in adapters.__all__ if name.startswith("_")} == set()
    assert set(adapters.__all__) & set(forbear.__all__) == set()


def test_unknown_names() -> None:
    """The error names this module."""
    with pytest.raises(AttributeError, match=r"module 'forbear\.adapters' has no attribute 'nothing'"):
        adapters.nothing  # type: ignore[attr-defined] # noqa: B018


def test_importing_it_loads_one_more_module() -> None:
    """Its names are loaded when they are used: `import forbear_transfer` and the commands begin with it."""
    script = "import sys, forbear, forbear.core.lazy; before = set(sys.modules)\n"
    script += "from forbear.adapters import lazy_exports\n"
    script += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["forbear.adapters"]
