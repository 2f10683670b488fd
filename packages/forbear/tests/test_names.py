"""The public names: few at the top, and the others in the modules where they are used."""

import subprocess
import sys
from pkgutil import iter_modules

import pytest

import forbear

MODULES = ("budgets", "events", "policies", "verdicts", "answers")


def test_the_top_is_short() -> None:
    """At most 30 names, and a shell completes them and the public modules, and nothing else."""
    assert len(forbear.__all__) <= 30
    assert set(dir(forbear)) == {*forbear.__all__, *forbear._PARTS}
    assert all(getattr(forbear, name) is not None for name in dir(forbear))


def test_no_two_names_differ_by_case_only() -> None:
    """Neither at the top, nor a name there and the name of a module."""
    names = [name.lower().replace("_", "") for name in dir(forbear)]
    assert len(names) == len({*names})


def test_every_name_stands_in_one_place() -> None:
    """The names that a module below exports are not at the top, nor in another one."""
    exported = [name for module in MODULES for name in getattr(forbear, module).__all__]
    assert len(exported) == len({*exported})
    assert not {*exported} & {*forbear.__all__}


@pytest.mark.parametrize("module", ["clients", "testing", *MODULES])
def test_a_module_completes_in_a_shell(module: str) -> None:
    """Its public names can be seen before they are loaded."""
    public = {name for name in dir(getattr(forbear, module)) if not name.startswith("_")}
    package = getattr(forbear, module)
    assert {*getattr(package, "__all__", ())} <= public
    if module == "clients":
        assert public == {found.name for found in iter_modules(package.__path__) if not found.name.startswith("_")}


def test_modules_are_loaded_when_they_are_used() -> None:
    """`import forbear` loads none of them, and the attribute is enough."""
    code = (
        "import sys, forbear; assert 'forbear.budgets' not in sys.modules; "
        "forbear.budgets.Budget(); forbear.clients.httpx.RetryTransport; forbear.testing.virtual_time"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
