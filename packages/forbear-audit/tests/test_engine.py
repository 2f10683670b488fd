"""`audit`: files, notebooks, suppressions, settings, baselines, and files that cannot be read."""

import json
import os
from pathlib import Path

import pytest

from forbear_audit import Audit, AuditSettings, audit
from forbear_audit.reading.sources import LARGEST
from forbear_audit.rules.baseline import Baseline
from forbear_audit.settings import read_settings

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef fetch():\n    return load()\n"


def rules(result: Audit) -> list[str]:
    """The rules that the findings break, in their order."""
    return [finding.rule for finding in result.findings]


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder of a project that applies all rules."""
    (tmp_path / "pyproject.toml").write_text('[tool.forbear.audit]\nselect = ["all"]\n')
    return tmp_path


def write(folder: Path, **files: str) -> Path:
    """Write Python files by their names without suffix."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def test_a_finding_says_where_and_what(tmp_path: Path) -> None:
    """A finding has the place of the decorator, the severity of its rule, and the cure of the library."""
    result = audit([write(tmp_path, a=RETRIED)])
    assert sorted(rules(result)) == ["CATCH-ALL", "FIXED", "UNBOUNDED"]
    finding = next(f for f in result.findings if f.rule == "UNBOUNDED")
    assert (finding.line, finding.column, finding.end_column) == (4, 2, 16)
    assert (finding.severity, finding.library) == ("error", "tenacity")
    assert "stop_after_attempt" in finding.cure
    assert (result.files, result.lines) == (1, 7)


def test_columns_count_characters(tmp_path: Path) -> None:
    """Columns count characters, not the bytes that ast counts."""
    text = (
        "import time\n\n\nasync def f(x):\n    for attempt in range(2):\n        try:\n            return await x()\n"
    )
    text += '        except OSError:\n            print("äöü"); time.sleep(1)\n'
    finding = next(f for f in audit([write(tmp_path, a=text)]).findings if f.rule == "BLOCKING")
    assert finding.text[finding.column - 1 : finding.end_column - 1] == "time.sleep(1)"


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("@tenacity.retry  # forbear: ignore", []),
        ("@tenacity.retry  # forbear: ignore[UNBOUNDED]", ["CATCH-ALL", "FIXED"]),
        ("# forbear: ignore[FIXED, CATCH-ALL]\n@tenacity.retry", ["UNBOUNDED"]),
        ("# forbear: ignore-file[FIXED]\n\n@tenacity.retry", ["CATCH-ALL", "UNBOUNDED"]),
        ("# forbear: ignore[STATE]\n@tenacity.retry", ["CATCH-ALL", "FIXED", "UNBOUNDED"]),
    ],
)
def test_comments_suppress(line: str, left: list[str], tmp_path: Path) -> None:
    """A comment suppresses the rules that it names, or all, in its line, in the line below, or in the file."""
    result = audit([write(tmp_path, a=RETRIED.replace("@tenacity.retry", line))])
    assert sorted(rules(result)) == left
    assert result.suppressed == 3 - len(left)


def test_pyproject_selects(tmp_path: Path) -> None:
    """The table in pyproject.toml selects rules, excludes files, and ignores rules in some files."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.forbear.audit]\nselect = ["FIXED", "UNBOUNDED"]\nexclude = ["old"]\n'
        '[tool.forbear.audit.per-file-ignores]\n"test_*.py" = ["FIXED"]\n'
    )
    (tmp_path / "old").mkdir()
    write(tmp_path / "old", c=RETRIED)
    result = audit([write(tmp_path, a=RETRIED, test_b=RETRIED)])
    assert {(Path(f.path).name, f.rule) for f in result.findings} == {
        ("a.py", "FIXED"),
        ("a.py", "UNBOUNDED"),
        ("test_b.py", "UNBOUNDED"),
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('select = ["NOPE"]', r"`tool.forbear.audit.select` must have ids of rules .* got 'NOPE'"),
        ('chosen = ["FIXED"]', "the keys of `tool.forbear.audit` are select, .* got 'chosen'"),
        ('fail-on = "never ever"', "`tool.forbear.audit.fail-on` must be note, warning, error or never"),
        ('ignore = "FIXED"', "`tool.forbear.audit.ignore` must be a list of texts"),
        ("select = [", "pyproject.toml"),
    ],
)
def test_wrong_settings_are_refused(table: str, message: str, tmp_path: Path) -> None:
    """An error names the file, the key, the rule and the value."""
    (tmp_path / "pyproject.toml").write_text(f"[tool.forbear.audit]\n{table}\n")
    with pytest.raises(ValueError, match=message):
        read_settings(tmp_path)


def test_a_baseline_leaves_only_new_findings(tmp_path: Path) -> None:
    """Known findings stay known while other lines change; a second one of the same kind is new."""
    write(tmp_path, a=RETRIED)
    file = tmp_path / "baseline.json"
    Baseline.of(file, audit([tmp_path]).findings).write()
    write(tmp_path, a="# a comment\n" + RETRIED)
    assert audit([tmp_path], baseline=Baseline.read(file)).findings == ()
    write(tmp_path, a=RETRIED + "\n\n@tenacity.retry\ndef other():\n    return load()\n")
    result = audit([tmp_path], baseline=Baseline.read(file))
    assert (len(result.findings), result.suppressed) == (3, 3)
    file.write_text("{}")
    with pytest.raises(ValueError, match="`baseline` must be a file that --write-baseline has written"):
        Baseline.read(file)


def test_notebooks_are_read(tmp_path: Path) -> None:
    """The cells of a notebook are one module: an import of one counts in the next; magic commands do not matter."""
    sources = [
        "%pip install tenacity\nimport tenacity\n",
        "for",
        ["@tenacity.retry\n", "def f():\n", "    return g()\n"],
    ]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [*cells, {"cell_type": "markdown", "source": "# x"}]}))
    result = audit([tmp_path])
    assert {(f.rule, f.cell, f.line) for f in result.findings} == {
        ("UNBOUNDED", 3, 1),
        ("FIXED", 3, 1),
        ("CATCH-ALL", 3, 1),
    }
    assert [unread.reason.partition(":")[0] for unread in result.unread] == ["cell 2"]


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    """A file that is binary, huge, wrongly encoded, broken or nested too deeply is reported, and the rest is read."""
    write(
        tmp_path,
        a=RETRIED,
        broken="def f(:\n",
        deep="x = " + "(" * 5000 + ")" * 5000,
        nested="x = " + "-" * 90000 + "1",
    )
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe4'\n")
    (tmp_path / "book.ipynb").write_text("[]")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(LARGEST + 1)
    os.mkfifo(tmp_path / "pipe.py")
    result = audit([tmp_path, tmp_path / "absent.py"])
    assert len(result.findings) == 3
    reasons = {Path(unread.path).name: unread.reason for unread in result.unread}
    assert set(reasons) == {
        "broken.py", "deep.py", "nested.py", "binary.py", "latin.py", "book.ipynb", "huge.py", "pipe.py", "absent.py",
    }  # fmt: skip
    assert reasons["huge.py"] == "2.0 MB are more than the limit of 2 MB"
    assert reasons["binary.py"] == "it is binary"
    assert reasons["absent.py"] == "there is no such file or folder"


def test_circles_of_links_end(tmp_path: Path) -> None:
    """A link to a folder above is not followed, a file is read once, and a link to itself is reported."""
    write(tmp_path, a=RETRIED)
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    result = audit([tmp_path, tmp_path / "a.py"])
    assert result.files == 1
    assert [Path(unread.path).name for unread in result.unread] == ["self.py"]


def test_names_that_go_in_circles_end(tmp_path: Path) -> None:
    """Assignments that refer to each other are followed a few steps only."""
    circles = (
        "import requests, stamina\na = b\nb = a\nurl = url + 'x'\nn = n * 2\n\n\n@stamina.retry(on=a, attempts=n)\n"
    )
    circles += "def f():\n    key = key or 1\n    requests.post(url, headers={'Idempotency-Key': key})\n"
    assert audit([write(tmp_path, a=circles)]).unread == ()


def test_calls_are_followed_within_a_package(tmp_path: Path) -> None:
    """A helper in another module of the package is read, one level deep, and the call of it is reported."""
    package = tmp_path / "shop"
    package.mkdir()
    helper = "import requests\n\n\ndef send(item):\n    return requests.post('https://shop.example.com/o', json=item)\n"
    order = "import requests\nimport stamina\n{}\n\n\n@stamina.retry(on=requests.Timeout)\n"
    order += "def order(item):\n    send(item)\n"
    write(package, __init__="", helper=helper)
    write(package, near=order.format("from .helper import send"), far=order.format("from shop.helper import send"))
    result = audit([tmp_path])
    assert [(Path(f.path).name, f.rule, f.line) for f in result.findings] == [
        ("far.py", "UNSAFE", 8),
        ("near.py", "UNSAFE", 8),
    ]


def test_processes_find_the_same(tmp_path: Path) -> None:
    """Several processes return what one does, in the same order, and progress is reported."""
    write(tmp_path, **{f"m{number}": RETRIED for number in range(20)})
    seen: list[int] = []
    assert audit([tmp_path], jobs=2, on_progress=seen.append) == audit([tmp_path])
    assert seen[-1] == 20


def test_wrong_arguments_are_refused() -> None:
    """An error names the parameter, the rule and the value."""
    with pytest.raises(ValueError, match="`jobs` must be at least 1, got 0"):
        audit([], jobs=0)
    with pytest.raises(ValueError, match="`select` must have ids of rules"):
        AuditSettings(select=("NOPE",))


def test_the_code_is_never_run(tmp_path: Path) -> None:
    """Reading a file executes nothing of it."""
    mark = tmp_path / "mark"
    write(tmp_path, a=f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nretry = None\n")
    audit([tmp_path])
    assert not mark.exists()
