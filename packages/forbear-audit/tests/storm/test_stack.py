"""The user's code runs as an installed copy of the project: its places are reached."""

import sys
from collections.abc import Generator
from pathlib import Path
from types import CodeType, ModuleType

import pytest
import requests

from forbear_audit.storm import stack
from forbear_audit.storm.observe import StormLimits, observing
from forbear_audit.storm.places import StormPlace, StormPlan
from forbear_audit.storm.verdicts import verdicts_of
from forbear_testkit.testing.orders import orders_server

CODE = "import requests\n\ndef order(url):\n    return requests.post(url, timeout=5)\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder of packages, and a project in another folder whose `src` has the package teashop."""
    installed = tmp_path / "site-packages"
    for folder in (installed / "teashop", installed / "library", tmp_path / "project" / "src" / "teashop"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "orders.py").write_text(CODE)
    monkeypatch.setattr(stack, "_PACKAGES", (str(installed), *stack._PACKAGES))
    monkeypatch.setattr(stack, "_roots", [])
    stack.add_roots(tmp_path / "project")
    yield installed
    stack.forget_sources()


def loaded(file: Path) -> ModuleType:
    """Return the module in this file."""
    module = ModuleType("teashop.orders")
    module.__file__ = str(file)
    code: CodeType = compile(file.read_text(), str(file), "exec")
    exec(code, vars(module))
    return module


def sites(file: Path) -> list[str]:
    """Return the files of the user's frames when this module sends an order, without those of the tests."""
    with orders_server() as server, observing(None, StormLimits()) as seen:
        response: requests.Response = loaded(file).order(server.url)
        assert response.ok
    (call,) = seen.calls
    return [name for name, _ in call.frames if "tests/" not in name]


def test_an_installed_copy_is_the_code_of_the_project(packages: Path) -> None:
    """A copy stands for the project's file; one that differs stays user code; other packages are libraries."""
    project = packages.parent / "project" / "src"
    assert sites(packages / "teashop" / "orders.py")[0] == str(project / "teashop" / "orders.py")
    assert str(packages / "library" / "orders.py") not in sites(packages / "library" / "orders.py")
    (project / "teashop" / "orders.py").write_text(f"# new\n{CODE}")
    stack.forget_sources()
    assert sites(packages / "teashop" / "orders.py")[0] == str(packages / "teashop" / "orders.py")


def test_other_code_is_named(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that is not reached says if the tests loaded its module from a file with other code."""
    project, file = packages.parent / "project", packages / "teashop" / "orders.py"
    place = StormPlace("src/teashop/orders.py", 4, "UNSAFE", "", None, None, ("lost",))
    plan = StormPlan((place,), project)
    monkeypatch.setitem(sys.modules, "teashop.orders", loaded(file))
    assert [verdict.text for verdict in verdicts_of(plan, [])] == ["no test sends a call that a storm sees from there"]
    (project / place.path).write_text("pass\n")
    stack.forget_sources()
    (verdict,) = verdicts_of(plan, [])
    assert verdict.text == f"the tests loaded other code: {file}; install the project again"


def test_the_modules_of_the_user(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a library that the user's own replaces, or whose project becomes known later, is the user's."""
    library, copy = loaded(packages / "library" / "orders.py"), loaded(packages / "teashop" / "orders.py")
    monkeypatch.setattr(stack, "_roots", [])
    stack.forget_sources()
    monkeypatch.setitem(sys.modules, "orders", library)
    monkeypatch.setitem(sys.modules, "teashop.orders", copy)
    assert not {library, copy} & set(stack.modules_of_user())
    stack.add_roots(packages.parent / "project")
    assert {library, copy} & set(stack.modules_of_user()) == {copy}
    own = loaded(Path(__file__))
    monkeypatch.setitem(sys.modules, "orders", own)
    assert {own, copy} <= set(stack.modules_of_user())
