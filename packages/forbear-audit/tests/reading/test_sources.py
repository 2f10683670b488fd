"""Files and notebooks that are broken, odd or hostile: each is read, or has one clear reason why it is not."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.reading.sources import LARGEST, LARGEST_NOTEBOOK, read
from forbear_audit.rules.baseline import Baseline
from forbear_audit.rules.catalog import RULES
from forbear_audit.settings import read_settings

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


def test_empty_notebooks_and_files_are_no_findings(tmp_path: Path) -> None:
    """Nothing is found in nothing."""
    (tmp_path / "a.ipynb").write_bytes(book())
    (tmp_path / "a.py").write_bytes(b"")
    result = audit([tmp_path], settings=SETTINGS)
    assert (result.files, result.findings, result.unread) == (2, (), ())


def test_a_line_of_spaces_in_a_notebook(tmp_path: Path) -> None:
    """A long line in a cell that is no Python is read once for each pattern."""
    file = tmp_path / "a.ipynb"
    file.write_text('{"cells": [{"cell_type": "code", "source": "!x retry\\n' + " " * 300_000 + '("}]}')
    texts = read(file)
    assert isinstance(texts, list)
    assert texts[0][1].startswith("pass  # x retry\n")


EVERY = AuditSettings(select=tuple(RULES))


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


def notebook(*sources: str) -> str:
    """A notebook with these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": text} for text in sources]})


def test_a_notebook_with_too_much_code_is_not_parsed(tmp_path: Path) -> None:
    """The size of the cells counts before they are parsed, which takes 500 times as much memory."""
    (tmp_path / "a.ipynb").write_text(notebook("x = (\n" * 400_000))
    (unread,) = audit([tmp_path], settings=EVERY).unread
    assert unread.reason == "its cells have more code than the limit of 2 MB"
