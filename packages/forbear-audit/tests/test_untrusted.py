"""The audited code is anybody's: none of it runs, none of it takes long, and it names no file that is written."""

import os
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from forbear.cli.app import app
from forbear_audit import AuditSettings, audit
from forbear_audit.baseline import Baseline
from forbear_audit.comments import read_comments
from forbear_audit.rules import RULES
from forbear_audit.sarif import as_sarif
from forbear_audit.settings import _match, read_settings
from forbear_audit.sources import read

EVERY = AuditSettings(select=tuple(RULES))


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


def matches(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Match as the rule reads, without a thought of time."""
    if not wanted:
        return not names
    if wanted[0] == "**":
        return any(matches(names[at:], wanted[1:]) for at in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], wanted[0]) and matches(names[1:], wanted[1:])


@given(
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=5).map(tuple),
    st.lists(st.sampled_from(["a", "*", "**", "?b"]), max_size=5).map(tuple),
)
def test_patterns_match_as_their_rule_reads(names: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    """A pattern matches what the simple rule matches."""
    assert _match(names, wanted) == matches(names, wanted)


def test_patterns_do_not_explode() -> None:
    """A pattern with many folders of any number is compared with a deep path in a moment."""
    assert not _match(("d",) * 200, ("**", "*") * 100 + ("x",))


def test_many_comments_in_one_line() -> None:
    """Each part of a comment is read once, also where ten thousand begin and none is closed."""
    comments = read_comments("x = 1  " + "# forbear: ignore[" * 10_000)
    assert len(comments.comments) == 10_000
    assert {name for _, name in comments.unknown} == {"["}


def test_a_line_of_spaces_in_a_notebook(tmp_path: Path) -> None:
    """A long line in a cell that is no Python is read once for each pattern."""
    file = tmp_path / "a.ipynb"
    file.write_text('{"cells": [{"cell_type": "code", "source": "!x retry\\n' + " " * 300_000 + '("}]}')
    texts = read(file)
    assert isinstance(texts, list)
    assert texts[0][1].startswith("pass  # x retry\n")


@pytest.mark.parametrize("encoding", ["punycode", "IDNA"])
def test_encodings_that_take_too_long(encoding: str, tmp_path: Path) -> None:
    """A file in the encoding of domain names is not decoded; Python 3.14 refuses one of them itself."""
    file = tmp_path / "a.py"
    file.write_text(f"# coding: {encoding}\n")
    (unread,) = audit([file], settings=EVERY).unread
    assert unread.reason in {
        f"its encoding {encoding} takes too long to read",
        "its text is not in the encoding that it names, or UTF-8",
    }


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_device_is_opened(kind: str, tmp_path: Path) -> None:
    """A baseline and a pyproject.toml are regular files, or nothing is read of them."""
    name = tmp_path / "baseline"
    if kind == "pipe":
        os.mkfifo(name)
    else:
        name = Path("/dev/zero")
    with pytest.raises(ValueError, match="must be a file that --write-baseline has written"):
        Baseline.read(name)
    (tmp_path / "pyproject.toml").symlink_to(name)
    assert read_settings(tmp_path) == AuditSettings()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a." * 20_000 + "b = 1\n", "a key must have at most 32 parts"),
        ("#" * 1_000_001, "are more than the limit of 1 MB"),
    ],
)
def test_settings_that_take_too_long(text: str, reason: str, tmp_path: Path) -> None:
    """Dotted keys without an end and files of many megabytes are refused before they are parsed."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read_settings(tmp_path)


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
