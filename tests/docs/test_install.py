"""docs/install.md: it has each package and each extra with what that installs, and no other."""

import re
import tomllib

from forbear_testkit import ROOT

PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
EXTRAS: dict[str, str] = dict(
    re.findall(r"^\| `([\w-]+)` \| .* \| ([^|]+) \|$", PAGE.partition("Four packages")[0], re.MULTILINE)
)
SIBLINGS: dict[str, str] = dict(
    re.findall(r"^\| `([\w\[\]-]+)` \| .* \| ([^|]+) \|$", PAGE.partition("Four packages")[2], re.MULTILINE)
)
PROJECTS = {
    project["name"]: project
    for file in (ROOT / "packages").glob("*/pyproject.toml")
    for project in [tomllib.loads(file.read_text(encoding="utf-8"))["project"]]
}


def installed(requirements: list[str]) -> set[str]:
    """Return the names of what requirements install; an extra of forbear stands for what that installs."""
    found = set[str]()
    for requirement in requirements:
        match = re.match(r"forbear\[([\w,-]+)\]", requirement)
        if match is None:
            found.add(re.split(r"[^\w.-]", requirement)[0])
        else:
            for extra in match[1].split(","):
                found |= installed(PROJECTS["forbear"]["optional-dependencies"][extra])
    return found


def test_every_extra_has_a_row() -> None:
    """The first table lists the extras of forbear, and what each of them installs."""
    extras: dict[str, list[str]] = PROJECTS["forbear"]["optional-dependencies"]
    assert EXTRAS.keys() == extras.keys()
    for name, requirements in extras.items():
        assert installed(requirements) == set(re.findall(r"[\w-]+", EXTRAS[name])), name


def test_every_sibling_has_a_row() -> None:
    """The second table lists the other packages and their extras."""
    wanted = {name: project["dependencies"] for name, project in PROJECTS.items() if name != "forbear"} | {
        f"{name}[{extra}]": requirements
        for name, project in PROJECTS.items()
        if name != "forbear"
        for extra, requirements in project.get("optional-dependencies", {}).items()
    }
    assert SIBLINGS.keys() == wanted.keys()
    for name, requirements in wanted.items():
        assert installed(requirements) == set(re.findall(r"[\w-]+", SIBLINGS[name])) - {"and"}, name


def test_the_siblings_have_exactly_this_version() -> None:
    """One version for all five, and each of them asks for just that one."""
    (version,) = {project["version"] for project in PROJECTS.values()}
    texts = [(ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8") for name in PROJECTS]
    pins = [pin for text in texts for pin in re.findall(r'"forbear[\w\[\],-]*(==[^"]*)"', text)]
    assert len(pins) >= 8
    assert set(pins) == {f"=={version}"}


def test_no_lock_names_a_package_of_ours() -> None:
    """The lock files have third parties only: until ours are published, their names belong to nobody."""
    for file in (ROOT / "requirements").iterdir():
        named = re.findall(r"^\s*(forbear[\w-]*)", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert named == [], file.name
