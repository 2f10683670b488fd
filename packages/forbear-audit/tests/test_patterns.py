"""The patterns of `exclude` and `per-file-ignores`: what they match, and the folder that they count from."""

from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.settings import read_settings

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef fetch():\n    return load()\n"
FILES = ("shop/app/a.py", "shop/tests/b.py", "shop/tests/deep/er/c.py", "shop/vendored/x/d.py")
ALL = "abcd"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder that is named like one of the folders in it."""
    folder = tmp_path / "shop" / "repo"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RETRIED)
    return folder


PATTERNS = [
    ("shop", ""),
    ("repo", ALL),
    ("tmp", ALL),
    ("shop/repo", ALL),
    ("tests", "ad"),
    ("tests/", "ad"),
    ("shop/tests", "ad"),
    ("tests/*.py", "acd"),
    ("tests/**", "ad"),
    ("tests/**/*.py", "ad"),
    ("tests/*/*.py", ALL),
    ("**/c.py", "abd"),
    ("shop/**/er", "abd"),
    ("**/**/x/**", "abc"),
    ("[ab].py", "cd"),
    ("?.py", ""),
    ("vend*", "abc"),
    ("*.pyi", ALL),
]


@pytest.mark.parametrize(("pattern", "left"), PATTERNS)
def test_patterns_exclude(pattern: str, left: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern counts from the folder of pyproject.toml, wherever the audit runs, however the files are named."""
    (project / "pyproject.toml").write_text(f'[tool.forbear.audit]\nselect = ["UNBOUNDED"]\nexclude = ["{pattern}"]\n')
    (project.parent / "link").symlink_to(project)
    for cwd, path in (
        (project, "."),
        (project.parent, "repo"),
        (project / "shop", ".."),
        (project.parent, "link/shop"),
    ):
        monkeypatch.chdir(cwd)
        assert "".join(Path(f.path).stem for f in audit([path]).findings) == left
    files = [project / name for name in FILES]
    assert "".join(Path(f.path).stem for f in audit(files).findings) == left


@pytest.mark.parametrize("cwd", ["", "shop", "shop/tests/deep"])
@pytest.mark.parametrize(
    ("pattern", "left"),
    [("tests/*.py", "acd"), ("tests/**", "ad"), ("shop/tests/**/*.py", "ad"), ("repo/**", ALL), ("b.py", "acd")],
)
def test_rules_are_ignored_by_patterns(
    pattern: str, left: str, cwd: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files in which rules are ignored are the same in every current folder."""
    (project / "pyproject.toml").write_text(
        'tool.forbear.audit.select = ["UNBOUNDED"]\n'
        f'[tool.forbear.audit.per-file-ignores]\n"{pattern}" = ["UNBOUNDED"]\n'
    )
    monkeypatch.chdir(project / cwd)
    assert "".join(Path(f.path).stem for f in audit([project]).findings) == left


def test_patterns_without_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pyproject.toml patterns count from the current folder; elsewhere no folder above matches."""
    (project / "other").mkdir()
    for cwd in (project, project / "other"):
        monkeypatch.chdir(cwd)
        result = audit([project / "shop"], settings=AuditSettings(select=("UNBOUNDED",), exclude=("repo", "deep")))
        assert "".join(Path(f.path).stem for f in result.findings) == "abd"
    absolute = AuditSettings(select=("UNBOUNDED",), exclude=(f"{project}/shop/tests",))
    assert "".join(Path(f.path).stem for f in audit([project], settings=absolute).findings) == "ad"
    assert read_settings(Path("/")) == AuditSettings()


@pytest.mark.parametrize("pattern", ["", ".", "/", "**", "./**/"])
def test_patterns_that_name_nothing_are_refused(pattern: str) -> None:
    """A pattern that would match everything or nothing is an error that names the parameter."""
    refused = "` must have patterns that name files or folders, .*, got '"
    with pytest.raises(ValueError, match=f"`exclude{refused}"):
        AuditSettings(exclude=(pattern,))
    with pytest.raises(ValueError, match=f"`per_file_ignores{refused}"):
        AuditSettings(per_file_ignores={pattern: ("FIXED",)})
