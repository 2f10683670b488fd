"""Tests mirror their package, so that the test of a module is found without a search: see mirror.toml."""

import re
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    (ROOT / "tests" / "mirror.toml").read_text(encoding="utf-8")
)
EACH_PACKAGE = pytest.mark.parametrize("package", sorted(TABLE))


def modules(package: str) -> set[str]:
    """Return the modules of a package, such as `api/copies.py` and `api/__init__.py`, but for its own `__init__.py`."""
    root = next((ROOT / "packages" / package / "src").glob("*/__init__.py")).parent
    return {path.relative_to(root).as_posix() for path in root.rglob("*.py")} - {"__init__.py"}


def paths_of_tests(package: str) -> set[str]:
    """Return the test files of a package, such as `api/test_copies.py`."""
    root = ROOT / "packages" / package / "tests"
    return {path.relative_to(root).as_posix() for path in root.rglob("test_*.py")}


def mirrors(test: str, module: str) -> bool:
    """Return whether this file is the mirror of this module, or in a folder that is: its tests, if they are many."""
    return test.startswith(starts_of_tests(module))


@cache
def starts_of_tests(module: str) -> tuple[str, ...]:
    """Return how the paths of a module's test files begin."""
    is_package = module.endswith("/__init__.py")
    place = re.sub(r"(^|/)_+", r"\1", module.removesuffix(".py").removesuffix("/__init__"))
    folder, slash, name = place.rpartition("/")
    start = f"{folder}{slash}test_{name}"
    return (f"{start}.py", f"{start}_") if is_package else (f"{start}.py", f"{start}_", f"{place}/")


def stands_in_table(package: str, test: str) -> bool:
    """Return whether the table names this test file."""
    return any(fnmatch(test, pattern) for pattern in TABLE[package])


@EACH_PACKAGE
def test_every_module_has_a_test_file(package: str) -> None:
    """A module without a test file of its name stands in a group of the table."""
    tests = paths_of_tests(package)
    groups = [pattern for row in TABLE[package].values() for pattern in row.get("of", "").split()]
    missing = {
        module
        for module in modules(package)
        if not module.endswith("/__init__.py")
        and not any(mirrors(test, module) for test in tests)
        and not any(fnmatch(module, pattern) for pattern in groups)
    }
    assert missing == set()


@EACH_PACKAGE
def test_no_test_file_has_the_name_of_a_module_that_is_gone(package: str) -> None:
    """A test file is the mirror of a module, or the table says what it tests."""
    known = modules(package)
    stale = {
        test
        for test in paths_of_tests(package)
        if not any(mirrors(test, module) for module in known) and not stands_in_table(package, test)
    }
    assert stale == set()


@EACH_PACKAGE
def test_the_table_names_what_exists(package: str) -> None:
    """Each pattern of the table matches a test file or a module, and each row has a reason."""
    tests_there, modules_there = paths_of_tests(package), modules(package)
    for tests, row in TABLE[package].items():
        is_elsewhere = tests.startswith("/") and (ROOT / tests[1:]).is_file()
        assert is_elsewhere or any(fnmatch(test, tests) for test in tests_there), tests
        assert row["why"], tests
        assert row.keys() <= {"of", "why"}, tests
        for pattern in row.get("of", "").split():
            assert any(fnmatch(module, pattern) for module in modules_there), f"{tests}: {pattern}"


PAGES = sorted(path for folder in (".", "docs", "packages/*") for path in ROOT.glob(f"{folder}/*.md"))
NAMED = re.compile(r"(?:packages/[\w-]+/)?tests(?:/[\w.]+)+|(?<![\w/])(?:\w+/)*test_\w+\.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_pages_name_tests_that_exist(page: Path) -> None:
    """Each test file and folder of tests that a page names is there, by its path or by the end of it."""
    text = re.sub(r"before/test_shop\.py|tests/\*\.py|shop/tests/a\.py", "", page.read_text(encoding="utf-8"))
    missing = [
        name
        for name in NAMED.findall(text)
        if not any(place.joinpath(name).exists() for place in (ROOT, page.parent))
        and not any(ROOT.glob(f"**/tests/**/{name}"))
    ]
    assert missing == []
