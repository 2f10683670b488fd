"""The reference of the API: it has an entry for every public name, and says what the code says."""

import re
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import forbear
from docs.generate import api
from docs.generate.__main__ import API, page
from forbear_testkit import ROOT

_FOR_THE_PARTS = {"forbear.cli.kit.profiles", "forbear.core.dataclass", "forbear.services.registry"}
"""Modules that have `__all__` for other parts of forbear."""

_ELSEWHERE = {"forbear.clients.aiobotocore"}
"""The module whose library cannot be installed beside the others; docs/aws.md has its two functions."""


def written(name: str) -> str:
    """Return the page that `make site` makes for readers."""
    return page(f"{API}{name}")


def entries(module: str) -> dict[str, str]:
    """Return the entries of a page by their names."""
    parts = re.split(r"^## `(\w+)`\n", written(module), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_module_that_exports_names_has_a_page() -> None:
    """A module with `__all__` is public, unless its name or that of a package begins with an underscore."""
    exporting = {
        found.name
        for found in walk_packages(forbear.__path__, "forbear.")
        if "._" not in found.name
        and "__main__" not in found.name
        and found.name not in _ELSEWHERE
        and hasattr(import_module(found.name), "__all__")
    }
    assert exporting - _FOR_THE_PARTS <= set(api.MODULES)


@pytest.mark.parametrize("module", api.MODULES)
def test_every_public_name_has_an_entry_with_a_text(module: str) -> None:
    """The names of `__all__` are on the page of their module, each with a text, and on the index."""
    loaded = import_module(module)
    exported = set(getattr(loaded, "__all__", api.MODULES[module] or ()))
    found = entries(module)
    assert set(found) == exported
    listed = written("index")
    for name, text in found.items():
        said = re.sub(r"```py\n.*?```", "", text, flags=re.DOTALL).strip()
        assert said, f"{module}.{name} has no text"
        assert "\n\n>>> " not in text, f"an example of {module}.{name} is no block of code"
        assert f"[`{name}`]({module}.md#" in listed


def test_what_is_used_first_comes_first() -> None:
    """The page of the package is in the order of use, and then in that of the alphabet."""
    order = list(entries("forbear"))
    assert order[:6] == ["retry", "install", "Exponential", "transient", "report", "update"]
    assert order[9:] == sorted(order[9:], key=str.lower)


@pytest.mark.parametrize("module", sorted({name.rpartition(".")[0] or name for name in api.MODULES} - {"forbear.core"}))
def test_every_public_module_below_a_public_package_is_listed(module: str) -> None:
    """The clients and listeners that users import have pages."""
    if module in {"forbear.clients", "forbear.observe"}:
        package = import_module(module)
        below = {found.name for found in walk_packages(package.__path__, f"{module}.") if "._" not in found.name}
        direct = {name for name in below if name.count(".") == 2} - {"forbear.observe.logging"} - _ELSEWHERE
        assert direct <= set(api.MODULES)


def test_what_the_docs_import_is_public() -> None:
    """Every name that a page or an example imports from forbear has an entry."""
    files = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "examples").glob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    missing = set[str]()
    for module, line in re.findall(r"^ *from (forbear[\w.]*) import ([\w, ]+)", text, re.MULTILINE):
        for name in re.split(r",\s*", re.sub(r" as \w+", "", line).strip().rstrip(",")):
            full = f"{module}.{name}"
            if full not in api.MODULES and name not in (api.names(module) if module in api.MODULES else ()):
                missing.add(full)
    assert missing == set()


def test_every_reason_is_explained() -> None:
    """The entry of `Reason` lists all reasons."""
    entry = entries("forbear.events")["Reason"]
    assert all(f"`Reason.{reason.name}`" in entry for reason in forbear.events.Reason)


@pytest.mark.parametrize(
    ("module", "name", "line"),
    [
        ("forbear", "Throttled", "- `verdict: Verdict`: The verdict on the attempt: it was not executed."),
        ("forbear_simulate", "FleetOutcome", "- `figures: Figures`: The means over the runs."),
        ("forbear_transfer", "Action", "- `Action.SKIP`: Do nothing, for the reason in the item's note."),
    ],
)
def test_a_text_below_an_attribute_is_in_its_entry(module: str, name: str, line: str) -> None:
    """So it is for attributes with a value in the class, for slots, and for the members of an Enum."""
    assert line in entries(module)[name].splitlines()


def test_no_page_shows_what_differs_between_runs() -> None:
    """No address, no class as Python writes it and no broken quote is on a page."""
    for name in api.PAGES:
        assert not re.search(r" at 0x|<class |<function |\w: '\w+,", page(name)), name


def a_module() -> ModuleType:
    """A module with a name of each kind."""
    module = ModuleType("a_module", "A module.")
    source = (
        "class Shape:\n    'A shape.'\n    def area(self, scale: 'float' = 1.0) -> 'float':\n        'Return it.'\n"
        "    @property\n    def name(self) -> str:\n        'Its name.'\n"
        "def paint(shape: Shape, /, *, colour: str = 'red', then: object = print) -> None:\n    'Paint it.'\n"
        "async def wait(*shapes: Shape) -> None:\n    'Wait.'\n"
    )
    exec(source, vars(module))
    for each in ("Shape", "paint", "wait"):
        vars(module)[each].__module__ = "forbear.a_module"
    return module


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "Shape",
            ["class Shape", "A shape.", "### `Shape.area`", "def area(self, scale: float = 1.0) -> float", "Its name."],
        ),
        (
            "paint",
            ["def paint(shape: Shape, /, *, colour: str = 'red', then: object = <built-in function print>) -> None"],
        ),
        ("wait", ["async def wait(*shapes: Shape) -> None", "Wait."]),
    ],
)
def test_an_entry(name: str, lines: list[str]) -> None:
    """An entry has the signature without modules and quotes, the text, and the members of a class."""
    made = [*api.entry(a_module(), name)]
    assert made[0] == f"## `{name}`"
    assert [line for line in lines if line not in made] == []
