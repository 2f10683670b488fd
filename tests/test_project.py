"""Rules about the project as a whole that no linter knows."""

import re
import statistics
import subprocess
import sys
import tomllib
from bisect import bisect_left
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hatchling.builders.sdist import SdistBuilder
from xdist.remote import Producer

import forbear
from forbear.services import registry
from forbear_testkit.workers import Schedules
from tools import verbs
from tools.lowest import EXTRAS, TESTS
from tools.pythons import SAMPLE, UNTRIED

ROOT = Path(__file__).parent.parent
SRC = ROOT / "packages" / "forbear" / "src"
PACKAGES = sorted((ROOT / "packages").iterdir())

# Layers that `import forbear` loads, and the standard modules that would cost more than the rest of it together.
CHEAP_LAYERS = ("text", "core", "http", "run", "policy")
FOR_TYPES = {"forbear.core.protocols", "forbear.run.protocols"}
"""Modules of types alone: type checkers load them, and the first also whoever imports one of its types."""
COSTLY = {"asyncio", "dataclasses", "datetime", "inspect", "logging", "random", "re", "typing"}

LEAKS = re.compile(
    r"(?<![\w.~])/(?:work|root|home|Users|opt)/"  # a path of somebody's machine
    r"|\.\./shared\b"  # files outside the repository
    r"|pypi\.(?:org|python\.org)|pythonhosted\.org|registry\.npmjs\.org"  # package registries: pip knows where they are
)


def modules(*layers: str) -> list[str]:
    """The dotted names of all modules in these layers; a layer is a package or a single module."""
    found = [
        path for layer in layers for path in [SRC / "forbear" / f"{layer}.py", *(SRC / "forbear" / layer).rglob("*.py")]
    ]
    return [
        ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        for path in found
        if path.exists()
    ]


def loaded_by(*names: str) -> set[str]:
    """The modules that importing `names` adds to a bare interpreter: no site, no environment, no editable hooks."""
    script = f"import sys; sys.path.insert(0, {str(SRC)!r}); bare = set(sys.modules)\n"
    script += "".join(f"import {name}\n" for name in names)
    script += "print(*sorted(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_forbear_is_cheap() -> None:
    """`import forbear` loads none of the costly modules of the standard library."""
    assert not loaded_by("forbear") & COSTLY


AT_IMPORT = {
    "core", "core.backoff", "core.check", "core.lazy", "core.limits", "core.record", "policy", "run", "run.derive",
    "run.functions", "run.harm", "run.judges", "run.loops", "run.plan", "run.runtime", "run.switch",
}  # fmt: skip
"""The modules of forbear that a call needs which succeeds."""


def test_importing_forbear_loads_what_a_success_needs() -> None:
    """`import forbear` loads no module that only a failure needs: not even enum, which verdicts and reasons are of."""
    loaded = loaded_by("forbear")
    assert {name.removeprefix("forbear.") for name in loaded if name.startswith("forbear.")} == AT_IMPORT
    assert "enum" not in loaded


@pytest.mark.parametrize("layer", CHEAP_LAYERS)
def test_the_layers_below_are_cheap_to_import(layer: str) -> None:
    """No module of the lower layers loads a costly module, whether the package root imports it or not."""
    assert not loaded_by(*(set(modules(layer)) - FOR_TYPES)) & COSTLY


def test_the_lower_layers_need_only_the_standard_library() -> None:
    """The core has no run-time dependency, so it can be added to any project."""
    top_level = {
        name.partition(".")[0] for name in loaded_by("forbear", *modules(*CHEAP_LAYERS, "services", "exchange"))
    }
    assert top_level - sys.stdlib_module_names <= {"forbear"}


def test_the_version_is_said_once() -> None:
    """`forbear.__version__` is the version of all five packages."""
    files = [ROOT / "pyproject.toml", *(folder / "pyproject.toml" for folder in PACKAGES)]
    versions = {tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"] for file in files}
    assert versions == {forbear.__version__}


# The modules of forbear that its siblings may import; a service only by its public names.
DOORS = re.compile(
    r"forbear|forbear\.(adapters|answers|budgets|events|policies|verdicts)|forbear\.(clients|testing|observe|export|cli\.kit)(\.\w+)*"
)
SERVICES = {"find", "find_rpc", "Rfc9110", *registry.names()}
IMPORT = re.compile(
    r"^ *(?:import (forbear\.[\w.]+)|from (forbear(?:\.[\w.]+)?) import (\([^)]*\)|[^#\n]*))", re.MULTILINE
)
ANY_IMPORT = re.compile(r"^ *(?:import ([\w.]+)|from ([\w.]+) import (\([^)]*\)|[^#\n]*))", re.MULTILINE)


def by_a_door(module: str, name: str) -> bool:
    """Return whether a sibling may import this name of a module; "" stands for a package imported as a whole."""
    if module.startswith("forbear.services"):
        return name in {*SERVICES, *getattr(import_module(module), "__all__", ())}
    return DOORS.fullmatch(module) is not None and not name.startswith("_")


def test_siblings_come_in_by_the_doors() -> None:
    """No package imports another module of forbear, not even for type checkers only: `make layers` skips those."""
    wrong = {
        f"{path.name}: {module}.{name}"
        for folder in PACKAGES
        if folder.name != "forbear"
        for path in (folder / "src").rglob("*.py")
        for whole, source, names in IMPORT.findall(path.read_text(encoding="utf-8"))
        for module in [whole or source]
        for name in re.findall(r"(\w+)(?: as \w+)?", names) or [""]
        if not by_a_door(module, name)
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("module", "name", "may"),
    [
        ("forbear", "retry", True),
        ("forbear.adapters", "HttpCall", True),
        ("forbear.cli.kit.output", "tell", True),
        ("forbear.services", "cloud_storage", True),
        ("forbear.services.redis", "classify", True),
        ("forbear.services", "registry", False),
        ("forbear.services.rfc9110", "responses", False),
        ("forbear", "_listeners", False),
        ("forbear.text.redact", "redact", False),
        ("forbear.cli.schedule", "command", False),
        ("forbear.cli.explain", "command", False),
        ("forbear.answers.curl", "CurlLine", False),
        ("forbear.adapters_of_mine", "x", False),
    ],
)
def test_doors(module: str, name: str, may: bool) -> None:
    """The public names are open, the inner modules closed."""
    assert by_a_door(module, name) is may


# Modules of src that are too short still: one that is mended leaves the list.
CRUMBS = {
    "forbear_simulate/engines/budgets/throttle.py", "forbear_simulate/gallery/queues.py",
    "forbear_transfer/storage/expectation.py",
}  # fmt: skip


def sources() -> dict[str, Path]:
    """Return the modules of all packages, by their dotted names."""
    return {
        ".".join(path.relative_to(folder / "src").with_suffix("").parts).removesuffix(".__init__"): path
        for folder in PACKAGES
        for path in (folder / "src").rglob("*.py")
    }


def in_src(path: Path) -> str:
    """Return the path of a module below its package's folder src."""
    return Path(*path.relative_to(ROOT).parts[3:]).as_posix()


def line_count(path: Path) -> int:
    """Return the number of lines in a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def test_modules_stay_small() -> None:
    """A module is one thought: in src at most 320 lines and at the median 100, elsewhere at most 400."""
    lengths = {path: line_count(path) for path in sources().values()}
    assert {in_src(path) for path, lines in lengths.items() if lines > 320} == set()
    assert statistics.median(lengths.values()) >= 100
    folders = ("packages", "tests", "tools", "benchmarks", "examples", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "mutants" not in path.parts]
    assert {path.relative_to(ROOT): lines for path in files if (lines := line_count(path)) > 400} == {}


def importers() -> Counter[str]:
    """Return in how many modules of all packages each of their modules is imported, anywhere in the file."""
    modules, counts = sources(), Counter[str]()
    for module, path in modules.items():
        names = set[str]()
        for whole, source, imported in ANY_IMPORT.findall(path.read_text(encoding="utf-8")):
            names |= {whole or source, *(f"{source}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", imported))}
        counts.update(names & modules.keys() - {module})
    return counts


def test_no_module_is_a_crumb() -> None:
    """A module of under 60 lines that only one other imports belongs into that one, unless it is found by name."""
    modules = sources()
    crumbs = {
        in_src(modules[module])
        for module, count in importers().items()
        if count == 1 and line_count(modules[module]) < 60 and modules[module].name != "__init__.py"
        if f'"{modules[module].stem}"' not in (modules[module].parent / "__init__.py").read_text(encoding="utf-8")
        if modules[module].parent.name != "clients"  # users import them
    }
    assert crumbs == CRUMBS


def test_forbear_has_few_files() -> None:
    """The retry library can be read in an evening: it has at most 300 modules."""
    assert len([*(SRC / "forbear").rglob("*.py")]) <= 300


def test_functions_begin_with_verbs() -> None:
    """A new function needs a verb, and one that got a verb leaves the list: `python tools/verbs.py --shrink`."""
    assert verbs.listed() == sorted(verbs.find())


# The adapters' public classes, which have the same name for each library.
ADAPTERS = {"AsyncPipeline", "AsyncPubSub", "AsyncRetryTransport", "Pipeline", "PubSub", "Retry", "RetryTransport"}


def test_no_class_name_stands_twice() -> None:
    """One name has one meaning: no two classes of a package share a name, except the adapters' public ones."""
    for folder in PACKAGES:
        names = Counter(
            name
            for path in (folder / "src").rglob("*.py")
            for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        assert {name for name, count in names.items() if count > 1} <= ADAPTERS, folder.name


def tracked() -> list[Path]:
    """The files of the project: those that git tracks, or where git is not, those of the source distribution."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        files = [ROOT / name for name in listing if name]
    else:
        files = [ROOT / file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()]
    return [path for path in files if path.is_file()]


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    """The project works on any machine and any mirror, so no file of it names one."""
    leaks: list[str] = []
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        if LEAKS.search(text):
            lines = enumerate(text.splitlines(), start=1)
            leaks += [
                f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
                for number, line in lines
                if LEAKS.search(line)
            ]
    assert leaks == []


def test_the_source_distribution_has_every_tracked_file() -> None:
    """The source distribution can build, check and test itself: it lacks no tracked file."""
    packed = {Path(file.path) for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    assert set(tracked()) - packed == set()


def test_every_package_is_tested_at_its_lowest_versions() -> None:
    """`make lowest` has tests for each package and extra, and each of their requirements has a lower bound."""
    assert set(EXTRAS) == set(TESTS)
    assert [text for requirements in EXTRAS.values() for text in requirements if ">=" not in text] == []
    paths = {re.sub(r"^--[a-z]+=|::.*", "", argument) for tests in TESTS.values() for argument in tests}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_sample_of_every_python_exists() -> None:
    """Without the global lock, `make pythons` runs and leaves out tests that exist."""
    paths = {re.sub(r"^--[a-z]+=|::.*", "", argument) for argument in (*SAMPLE, *UNTRIED)}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_no_public_name_is_that_of_a_module(folder: Path) -> None:
    """A name that stands for a function and for a module would be one or the other, by what was imported first."""
    clashes = list[str]()
    for file in (folder / "src").rglob("__init__.py"):
        name = ".".join(file.parent.relative_to(folder / "src").parts)
        public = set(getattr(import_module(name), "__all__", ()))
        modules = {path.stem for path in file.parent.iterdir() if path.is_dir() or path.suffix == ".py"}
        clashes += [f"{name}.{both}" for both in sorted(public & modules)]
    assert clashes == []


# The questions of a newcomer, and the page that answers each of them in its table.
QUESTIONS = {
    "forbear": 20,
    "forbear-audit": 5,
    "forbear-cloud": 3,
    "forbear-simulate": 3,
    "forbear-transfer": 4,
}


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_the_architecture_names_what_exists(folder: Path) -> None:
    """Each file, folder and function that a page of architecture names is there."""
    text = (folder / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert text.count("\n| Wh") + text.count("\n| How") + text.count("\n| Is ") >= QUESTIONS[folder.name]
    (root,) = (path for path in (folder / "src").iterdir() if path.is_dir() and path.name != "__pycache__")
    siblings = [path for path in (ROOT / "packages").glob("*/src/*") if path.is_dir()]
    places = [folder, *siblings, *(path for path in root.rglob("*") if path.is_dir())]
    missing = [
        name
        for name in re.findall(r"`([a-z][\w/]*(?:/|\.py|\.csv))`", text)
        if not any((place / name).exists() for place in places)
    ]
    assert missing == []
    source = "\n".join(f"{path.stem}\n{path.read_text(encoding='utf-8')}" for path in root.rglob("*.py"))
    names = {name for call in re.findall(r"`((?:\w+\.)*\w+)(?:\(\))?`", text) for name in call.split(".")} - {
        "py",
        "csv",
    }
    words = sorted({*re.findall(r"\w+", source), "\U0010ffff"})
    assert [name for name in sorted(names) if not words[bisect_left(words, name)].startswith(name)] == []


@pytest.mark.parametrize(("ran", "status"), [([], 5), (["test_a.py::test_b"], 0)])
def test_a_run_without_a_test_is_no_success(ran: list[str], status: int) -> None:
    """Workers collect the files that they run, so pytest counts a file as a test, also if it has none."""
    options, plugins = {"dist": "loadfile", "tx": ["popen"]}, dict[str, object]()
    config: Any = SimpleNamespace(getvalue=options.get, pluginmanager=SimpleNamespace(get_plugin=plugins.get))
    session: Any = SimpleNamespace(exitstatus=0)
    schedules, log = Schedules(config), Producer("xdist", enabled=False)
    assert schedules.pytest_xdist_make_scheduler(config, log) is not None
    for nodeid in ran:
        report: Any = SimpleNamespace(node=object(), nodeid=nodeid, earlier=[])
        schedules.pytest_runtest_logreport(report)
    schedules.pytest_sessionfinish(session, 0)
    assert session.exitstatus == status
