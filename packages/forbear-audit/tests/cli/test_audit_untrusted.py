"""The audited code is anybody's: none of it runs, and it names no file that is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear_audit import AuditSettings, audit
from forbear_audit.rules.baseline import Baseline
from forbear_audit.sarif import as_sarif


def command(*words: str) -> list[str]:
    """The command line of an audit, as `python -m` starts it."""
    return [sys.executable, "-m", "forbear", "audit", *words]


@pytest.mark.parametrize(("module", "jobs"), [("pickle", "2"), ("click", "1"), ("tomllib", "1")])
def test_no_module_of_the_folder_is_run(module: str, jobs: str, tmp_path: Path) -> None:
    """A file of the folder that is named like a module is read like all others, by the workers too."""
    for number in range(33 if jobs == "2" else 1):  # three batches: several processes share them
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    (tmp_path / f"{module}.py").write_text("open('RUN', 'w').close()\n")
    done = subprocess.run(command(".", "--jobs", jobs), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "RUN").exists()


def test_the_environment_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that keeps workers from the current folder is removed from the environment of the caller."""
    for number in range(33):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert audit([tmp_path], jobs=2).files == 33
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "0")
    audit([tmp_path], jobs=2)
    assert os.environ["PYTHONSAFEPATH"] == "0"


DEEP = "x = " + "(" * 300 + ")" * 300 + "\n"


@pytest.mark.parametrize(
    ("files", "named", "code"),
    [
        ({"a.py": DEEP}, ".", 2),
        ({"a.py": DEEP, "b.py": "x = 1\n"}, ".", 0),
        ({"a.py": DEEP, "b.py": "x = 1\n"}, "a.py", 2),
        ({"b.py": "x = 1\n"}, ".", 0),
        ({}, ".", 0),
    ],
)
def test_a_gate_notices_what_could_not_be_read(
    files: dict[str, str], named: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 2 if nothing could be read, or a file that the user named could not."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["audit", named, "--jobs", "1"]).exit_code == code


def test_a_circle_of_links(tmp_path: Path) -> None:
    """A link to itself is named, and has a clear line."""
    (tmp_path / "loop.py").symlink_to("loop.py")
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "loop.py")])
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
    assert done.stderr.endswith("loop.py: not read: it is a circle of links\n")


def test_circles_of_links_in_all_names(tmp_path: Path) -> None:
    """A circle on the way to a file, as root or as baseline is no error of forbear."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a.py").write_text("import tenacity\n@tenacity.retry\ndef f(): g()\n")
    named = [tmp_path / "loop" / ".." / "a.py", tmp_path / "loop" / "a.py", tmp_path / "a.py"]
    result = audit(named, settings=AuditSettings(select=("UNBOUNDED",), exclude=("x",), root=tmp_path / "loop"))
    assert (result.files, len(result.unread)) == (1, 2)
    assert Baseline.of(tmp_path / "loop", result.findings).new(result.findings) == []
    as_sarif(result, "1", root=tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links"):
        Baseline.read(tmp_path / "loop")


def test_the_code_names_no_file_that_is_written(tmp_path: Path) -> None:
    """A baseline of pyproject.toml is read, but it is written only if the user names it, too."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    (tmp_path / "repo" / "pyproject.toml").write_text(f'[tool.forbear.audit]\nbaseline = "{precious}"\n')
    words = ["audit", str(tmp_path / "repo"), "--write-baseline"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, precious.read_text()) == (2, "precious")
    assert done.stderr == (
        f"error: `--write-baseline` needs `--baseline`\nhint: name the file that it writes: --baseline {precious}\n"
    )
    assert CliRunner().invoke(app, [*words, "--baseline", str(precious)]).exit_code == 0
    assert precious.read_text() != "precious"
