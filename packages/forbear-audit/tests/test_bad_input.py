"""Files, settings and baselines that are broken or odd: each gets one clear line, and the rest is read."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit, engine
from forbear_audit.baseline import Baseline
from forbear_audit.sarif import as_sarif
from forbear_audit.settings import read_settings
from forbear_audit.sources import LARGEST, LARGEST_NOTEBOOK
from forbear_testkit.audit.deadly import read_batch

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef f():\n    return g()\n"
SETTINGS = AuditSettings(select=("UNBOUNDED",))
WRONG_ENCODING = "its text is not in the encoding that it names, or UTF-8"
NO_NOTEBOOK = "it is not a notebook: it has no list of cells"
DEEP = "its code is nested too deeply"


def book(*sources: object, **more: object) -> bytes:
    """A notebook with these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": s} for s in sources], **more}).encode()


UNREAD: list[tuple[str, bytes, str]] = [
    ("nul.py", b"x = 1\0\n", "it is binary"),
    ("elf.py", bytes(range(256)), "it is binary"),
    ("utf16.py", RETRIED.encode("utf-16"), "it is binary"),
    ("latin.py", b"x = '\xe4'\n", WRONG_ENCODING),
    ("cookie.py", b"# coding: klingon\n", WRONG_ENCODING),
    ("rot13.py", b"# coding: rot13\nvzcbeg bf\n", WRONG_ENCODING),
    ("zlib.py", b"# coding: zlib\nx = 1\n", WRONG_ENCODING),
    ("undefined.py", b"# coding: undefined\nx = 1\n", WRONG_ENCODING),
    ("mark.py", b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", WRONG_ENCODING),
    ("broken.py", b"def f(:\n", "line 1: invalid syntax for Python"),
    ("newer.py", b"x = 1\nx = $new\n", "line 2: invalid syntax for Python"),
    ("older.py", b"print 'x'\n", "line 1: Missing parentheses in call to 'print'"),
    ("tabs.py", b"if x:\n\ty\n        z\n", "line 3: inconsistent use of tabs and spaces"),
    ("brackets.py", b"x = " + b"(" * 5000 + b")" * 5000, "line 1: too many nested parentheses"),
    ("minus.py", b"x = " + b"-" * 90000 + b"1", DEEP),
    ("elif.py", b"if x: pass\n" + b"elif x: retry()\n" * 20000, DEEP),
    ("digits.py", b"x = " + b"9" * 5000, "line 1: Exceeds the limit (4300 digits) for integer string conversion"),
    (
        "hex.py",
        b"import time\nwhile True:\n    try:\n        x()\n        break\n    except OSError:\n        time.sleep(0x"
        + b"f" * 9000
        + b" ** 2)\n",
        "it has a number with too many digits",
    ),
    ("a.ipynb", b"", "it is no JSON: line 1: Expecting value"),
    ("b.ipynb", b"[" * 100_000, "it is no JSON that can be read"),
    ("c.ipynb", b"\xff{", "it is no JSON: it is not in UTF-8"),
    ("d.ipynb", b'{"cells": ' + b"9" * 5000 + b"}", "it is no JSON: a number has too many digits"),
    ("e.ipynb", b"{}", NO_NOTEBOOK),
    ("f.ipynb", b'"x"', NO_NOTEBOOK),
    ("g.ipynb", b'{"cells": {"a": 1}}', NO_NOTEBOOK),
    ("h.ipynb", book("\0x"), "cell 1: it has a NUL character"),
    ("i.ipynb", book("x", "for"), "cell 2: line 1: invalid syntax"),
    ("j.ipynb", book("#" + "x" * 1_100_000, "#" + "y" * 1_100_000), "its cells have more code than the limit of 2 MB"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "reason"), UNREAD, ids=[name for name, *_ in UNREAD])
def test_what_cannot_be_read_has_a_reason(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    """A broken file is reported with its reason in one line, and other files are read."""
    (tmp_path / name).write_bytes(data)
    (tmp_path / "z.py").write_text(RETRIED)
    result = audit([tmp_path], settings=SETTINGS)
    (unread,) = result.unread
    assert (Path(unread.path).name, len(unread.reason.splitlines())) == (name, 1)
    assert unread.reason.startswith(reason)
    assert [Path(finding.path).name for finding in result.findings] == ["z.py"]


def test_what_only_some_pythons_read(tmp_path: Path) -> None:
    """A chain of attributes that is too deep for this Python is reported; one that is not is read like any file."""
    (tmp_path / "attributes.py").write_text(RETRIED + "x = a" + ".a" * 20000)
    result = audit([tmp_path], settings=SETTINGS)
    reports = [unread.reason for unread in result.unread] + [finding.rule for finding in result.findings]
    assert reports in ([DEEP], ["UNBOUNDED"])


def huge(path: Path, size: int) -> None:
    """Write a sparse file."""
    with path.open("wb") as file:
        file.truncate(size)


def bound(path: Path) -> None:
    """Make a socket in the file system."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


NEVER_OPENED: list[tuple[str, Callable[[Path], object], str]] = [
    ("huge.py", lambda path: huge(path, 100_000_000), "100.0 MB are more than the limit of 2 MB"),
    ("large.py", lambda path: huge(path, LARGEST + 1), "2.0 MB are more than the limit of 2 MB"),
    ("huge.ipynb", lambda path: huge(path, LARGEST_NOTEBOOK + 1), "50.0 MB are more than the limit of 50 MB"),
    ("pipe.py", os.mkfifo, "it is not a regular file"),
    ("socket.py", bound, "it is not a regular file"),
    ("zero.py", lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
    ("loop.py", lambda path: path.symlink_to(path), "it is a circle of links"),
    ("dangling.py", lambda path: path.symlink_to("absent"), "it is a link to nothing"),
]


@pytest.mark.parametrize(("name", "make", "reason"), NEVER_OPENED, ids=[name for name, *_ in NEVER_OPENED])
def test_what_is_no_file_of_code_is_not_opened(
    name: str, make: Callable[[Path], object], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large files, pipes, sockets, devices and links in circles are reported, by a folder or by name."""
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make(tmp_path / name)
    for path in (tmp_path, tmp_path / name):
        result = audit([path], settings=SETTINGS)
        assert ([unread.reason for unread in result.unread], result.findings) == ([reason], ())


READ: list[tuple[str, bytes, int]] = [
    ("mark.py", RETRIED.encode("utf-8-sig"), 4),
    ("latin.py", b"# coding: latin-1\n# \xe4\n" + RETRIED.encode(), 6),
    ("returns.py", RETRIED.replace("\n", "\r").encode(), 4),
    ("feeds.py", b"\x0c\nx = '\x0c\x1c\xe2\x80\xa8'\n" + RETRIED.encode(), 6),
    ("surrogate.py", b"x = '\\ud800'  # forbear: ignore[STATE]\n" + RETRIED.encode(), 5),
    ("huge.py", b"import tenacity\nN = 64 ** 64\nM = N * N\nO = M * M\n@tenacity.retry(wait=tenacity.wait_exponential("
     b"multiplier=1e308, exp_base=1e308))\ndef f():\n    g()\nfor i in range(0x" + b"f" * 3000 + b"):\n    try:\n"
     b"        x()\n    except OSError:\n        pass\n", 5),
    ("three.ipynb", json.dumps(
        {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": RETRIED}]}]}
    ).encode(), 4),
    ("magic.ipynb", book(
        "%pip install x\n!ls\nx = !ls\ny = %sql select\n?x\nx?\nx.y??\n%%time\nif x:\n    %time y\n" + RETRIED,
    ), 14),
    ("timed.ipynb", book("%%time\n" + RETRIED), 5),
    ("other.ipynb", book("%%bash\nfor x in y; do\n", "%%html\n<b>", 5, None, ["a = b %c\n", 7], RETRIED), 4),
    ("modulo.ipynb", book("z = (a\n  %b)\nawait x()\n" + RETRIED), 7),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "line"), READ, ids=[name for name, *_ in READ])
def test_odd_files_are_read(name: str, data: bytes, line: int, tmp_path: Path) -> None:
    """Odd encodings, ends of lines, numbers and notebooks are read, and the line is right."""
    (tmp_path / name).write_bytes(data)
    result = audit([tmp_path], settings=SETTINGS)
    assert ([finding.line for finding in result.findings], result.unread) == ([line], ())


def test_cells_that_are_no_module_together_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If cells parse one by one but not together, no finding has the place of another cell."""

    def one_cell(text: str) -> ast.Module | str:
        return "line 1: too large" if "y = 2" in text and "x = 1" in text else ast.parse(text)

    monkeypatch.setattr("forbear_audit.reading.parse", one_cell)
    (tmp_path / "a.ipynb").write_bytes(book("x = 1", "y = 2", RETRIED))
    (tmp_path / "b.ipynb").write_bytes(book("x = 1", RETRIED))
    result = audit([tmp_path], settings=SETTINGS)
    assert [(Path(f.path).name, f.cell, f.line) for f in result.findings] == [("b.ipynb", 2, 4)]
    assert [unread.reason for unread in result.unread] == ["its cells are no module together: line 1: too large"]


def test_empty_notebooks_and_files_are_no_findings(tmp_path: Path) -> None:
    """Nothing is found in nothing."""
    (tmp_path / "a.ipynb").write_bytes(book())
    (tmp_path / "a.py").write_bytes(b"")
    result = audit([tmp_path], settings=SETTINGS)
    assert (result.files, result.findings, result.unread) == (2, (), ())


def test_an_error_of_forbear_is_reported_and_the_rest_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file on which the rules themselves fail does not end the audit."""

    def fail(module: object) -> None:
        raise ZeroDivisionError("by accident")

    (tmp_path / "a.py").write_text(RETRIED)
    monkeypatch.setattr("forbear_audit.reading.check", fail)
    (unread,) = audit([tmp_path], settings=SETTINGS).unread
    assert unread.reason == "forbear could not analyse it, please report this: ZeroDivisionError: by accident"


COMMENTS = [
    ("# forbear: ignore[TYPO]", 1, ["the comment names 'TYPO', which is no rule"]),
    ("# forbear: ignore[unbounded]", 0, []),
    ("# forbear: ignore[UNBOUNDED, TYPO]", 0, ["the comment names 'TYPO', which is no rule"]),
    ("# forbear: ignore[UNBOUNDED", 1, ["the comment names '[UNBOUNDED', which is no rule"]),
    ("# forbear: ignore[]", 1, []),
    ("# forbear: ignore [UNBOUNDED]", 0, []),
    ("# forbear: ignore [NESTED]", 1, []),
    ("# forbear: ignored", 1, ["'# forbear: ignored' is no comment of the audit: write ignore or ignore-file"]),
    ("# forbear: ignore-all", 1, ["'# forbear: ignore-all' is no comment of the audit: write ignore or ignore-file"]),
    ("# forbear: skip  # x", 1, ["'# forbear: skip' is no comment of the audit: write ignore or ignore-file"]),
    ("# type: ignore  # forbear: ignore", 0, []),
    ("# forbear: ignore[NESTED]", 1, []),  # NESTED does not count here, so it may be of use
    ("", 1, []),
]


@pytest.mark.parametrize(("comment", "findings", "remarks"), COMMENTS)
def test_comments_that_are_wrong_are_reported(comment: str, findings: int, remarks: list[str], tmp_path: Path) -> None:
    """A comment with an unknown rule is reported, and suppresses nothing by it."""
    (tmp_path / "a.py").write_text(RETRIED.replace("@tenacity.retry", f"@tenacity.retry  {comment}"))
    result = audit([tmp_path], settings=SETTINGS)
    assert (len(result.findings), [remark.text for remark in result.remarks]) == (findings, remarks)


def test_comments_that_suppress_nothing_are_reported(tmp_path: Path) -> None:
    """A needless comment is reported by its line; a text that looks like a comment suppresses nothing."""
    text = "x = 1  # forbear: ignore[UNBOUNDED]\ny = '# forbear: ignore-file'\n" + RETRIED
    (tmp_path / "a.py").write_text(text)
    result = audit([tmp_path], settings=SETTINGS)
    assert [(remark.line, remark.text) for remark in result.remarks] == [(1, "the comment suppresses nothing")]
    assert len(result.findings) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.forbear.audit\n", r"pyproject.toml: Expected ']'"),
        ("x = '\xff'", "pyproject.toml: .*'utf-8' codec can't decode"),
        ("tool = 3\n", "`tool` must be a table, got 3"),
        ("[tool.forbear]\naudit = 3\n", "`tool.forbear.audit` must be a table, got 3"),
        ("[tool.forbear.audit]\nbaseline = 3\n", "`tool.forbear.audit.baseline` must be the name of a file, got 3"),
        ("[tool.forbear.audit]\nselect = ['NOPE']\n", "`tool.forbear.audit.select` must have ids of rules"),
        (
            "[tool.forbear.audit.per-file-ignores]\n'a.py' = ['NOPE']\n",
            "audit.per-file-ignores` must have ids of rules",
        ),
        ("[tool.forbear.audit]\nper-file-ignores = 3\n", "audit.per-file-ignores` must be a table, got 3"),
        ("[tool.forbear.audit]\nexclude = ['']\n", r"audit.exclude` must have patterns that name files or .*, got ''"),
        ("[tool.forbear.audit]\nexclude = ['./']\n", r"audit.exclude` must have patterns .*, got './'"),
        ("[tool.forbear.audit]\nexclude = ['**']\n", r"audit.exclude` must have patterns .*, got '\*\*'"),
        ("[tool.forbear.audit]\nexclude = [3]\n", "audit.exclude` must be a list of texts"),
        ("[tool.forbear.audit]\nfail-on = ['note']\n", "audit.fail-on` must be note, warning, error or never"),
        ("[tool.forbear.audit]\nbaseline = ''\n", "audit.baseline` must be the name of a file, got ''"),
        ("[tool.forbear.audit]\nselect = [inf, nan]\n", r"audit.select` must be a list of texts, got \[inf, nan\]"),
        ("[tool.forbear.audit]\nignore = 1e999\n", "audit.ignore` must be a list of texts, got inf"),
        ("[tool.forbear.audit]\nexclude = {a = 1}\n", "audit.exclude` must be a list of texts, got {'a': 1}"),
        ("[tool.forbear.audit]\nbaseline = 1979-05-27\n", "audit.baseline` must be the name of a file, got datetime"),
        ("[tool.forbear.audit]\nfail-on = -inf\n", "audit.fail-on` must be note, .*, got -inf"),
        (f"[tool.forbear.audit]\nfail-on = 0x{'f' * 5_000}\n", "audit.fail-on` must be note, .* that cannot be shown"),
        (f"[tool.forbear.audit]\nselect = ['{'a' * 5_000}']\n", r"audit.select` must have ids .*, got 'a{199}\.\.\.$"),
        (f"x = {'9' * 5_000}\n", "pyproject.toml: a number has too many digits"),
        (f"x = {'[' * 5_000}\n", "pyproject.toml: its values are nested too deeply"),
        ("[tool.forbear.audit.per-file-ignores]\n'' = ['FIXED']\n", "per-file-ignores` must have patterns .*, got ''"),
    ],
)
def test_settings_that_are_broken(text: str, message: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong in it."""
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a file that --write-baseline has written"),
        ("[]", "must be a file that --write-baseline has written"),
        ("[" * 100_000, "must be a file that --write-baseline has written"),
        ("9" * 5_000, "must be a file that --write-baseline has written"),
        ('{"version": 1}', "must be a file that --write-baseline has written"),
        ('{"version": 1e999, "findings": {}}', "must be of version 1, got .* of version inf"),
        ('{"version": true, "findings": {}}', "must be of version 1, got .* of version True"),
        ('{"version": 1, "findings": []}', r"known.json: `findings` must be a table of numbers, got \[\]"),
        ('{"version": 1, "findings": {"a": "b"}}', "known.json: `findings.a` must be a number from 1, got 'b'"),
        ('{"version": 1, "findings": {"a": 1e999}}', "known.json: `findings.a` must be a number from 1, got inf"),
        ('{"version": 1, "findings": {"a": NaN}}', "known.json: `findings.a` must be a number from 1, got nan"),
        ('{"version": 1, "findings": {"a": -1}}', "known.json: `findings.a` must be a number from 1, got -1"),
        ('{"version": 1, "findings": {"a": true}}', "known.json: `findings.a` must be a number from 1, got True"),
        ('{"version": 1, "findings": {"a": 1.5}}', "known.json: `findings.a` must be a number from 1, got 1.5"),
        (f'{{"version": 1, "findings": {{"a": {"[" * 500 + "]" * 500}}}}}', "`findings.a` must be a number from 1"),
        ('{"version": 2, "findings": {}}', "must be of version 1, got .* of version 2"),
    ],
)
def test_baselines_that_are_broken(text: str, message: str, tmp_path: Path) -> None:
    """A file that is no baseline, and one of another version, is refused."""
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Baseline.read(tmp_path / "known.json")


def test_a_process_that_is_killed_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process is killed, the files are read one by one, and the one that it died of is reported."""
    for number in range(40):
        (tmp_path / f"m{number}.py").write_text(RETRIED)
    (tmp_path / "deadly.py").write_text(RETRIED)
    monkeypatch.setattr(engine, "_read_batch", read_batch)
    result = audit([tmp_path], settings=SETTINGS, jobs=2)
    assert len(result.findings) == 40
    (unread,) = result.unread
    assert Path(unread.path).name == "deadly.py"
    assert unread.reason == "the process that read it was killed, perhaps out of memory"


def command(*args: str) -> list[str]:
    """The command line of an audit."""
    return [sys.executable, "-m", "forbear.cli", "audit", *args]


def is_alive(group: int) -> bool:
    """True if a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """After Ctrl-C in a terminal the exit code is 130, nothing is printed, and no process is left."""
    text = (
        "import time\n"
        + "def f():\n    for i in range(3):\n        try:\n            g()\n        except E:\n            h()\n" * 2000
    )
    for number in range(64):
        (tmp_path / f"m{number}.py").write_text(text)
    with subprocess.Popen(
        command(str(tmp_path), "--jobs", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(children.read_text().split()) < 3 and process.poll() is None:  # two workers, and their tracker
            pass
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    end = time.monotonic() + 30
    while is_alive(process.pid):  # the tracker of multiprocessing ends a moment later
        assert time.monotonic() < end


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """A command whose output is not read ends without a word."""
    (tmp_path / "a.py").write_text("import tenacity\n" + "@tenacity.retry\ndef f():\n    g()\n" * 1000)
    with subprocess.Popen(command(str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_names_that_are_no_text_are_printed(tmp_path: Path) -> None:
    """A name that is no UTF-8, or that commands a terminal, is printed by what it is, and SARIF has it."""
    for name in (b"a\xff.py", b"b\x1b[31m.py", b"c\n.py"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(RETRIED)
    done = subprocess.run(command(str(tmp_path), "--select", "UNBOUNDED"), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\x1b" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if b": error UNBOUNDED: " in line]) == 3
    log = json.loads(json.dumps(as_sarif(audit([tmp_path], settings=SETTINGS), "1", root=tmp_path)))
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in log["runs"][0]["results"]]
    assert [place["uri"] for place in places] == ["a%FF.py", "b%1B%5B31m.py", "c%0A.py"]
