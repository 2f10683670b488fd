"""The findings in one file: odd cells, errors of forbear, and code that is large in one respect."""

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Function
from forbear_audit.rules.catalog import RULES
from forbear_audit.rules.file_findings import Reading, read_file, read_texts
from forbear_testkit import ROOT

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef f():\n    return g()\n"


SETTINGS = AuditSettings(select=("UNBOUNDED",))


def book(*sources: object, **more: object) -> bytes:
    """A notebook with these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": s} for s in sources], **more}).encode()


def test_cells_that_are_no_module_together_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If cells parse one by one but not together, no finding has the place of another cell."""

    def one_cell(text: str) -> ast.Module | str:
        return "line 1: too large" if "y = 2" in text and "x = 1" in text else ast.parse(text)

    monkeypatch.setattr("forbear_audit.reading.sources.parse", one_cell)
    (tmp_path / "a.ipynb").write_bytes(book("x = 1", "y = 2", RETRIED))
    (tmp_path / "b.ipynb").write_bytes(book("x = 1", RETRIED))
    result = audit([tmp_path], settings=SETTINGS)
    assert [(Path(f.path).name, f.cell, f.line) for f in result.findings] == [("b.ipynb", 2, 4)]
    assert [unread.reason for unread in result.unread] == ["its cells are no module together: line 1: too large"]


def test_what_an_error_left_half_understood_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression that was being followed then would stay unknown to all later files."""
    (tmp_path / "limits.py").write_text("def limit():\n    return 3\n")
    code = RETRIED.replace("retry", "retry(stop=tenacity.stop_after_attempt(limits.limit()), wait=WAIT)")
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"import limits\n{code}")
    find, failed = Module.find_returned, list[object]()

    def fail_once(self: Module, function: Function) -> ast.expr | None:
        if not failed:
            failed.append(function)
            raise RecursionError
        return find(self, function)

    monkeypatch.setattr(Module, "find_returned", fail_once)
    monkeypatch.setattr("forbear_audit.reading.packages._kept", kept := dict[Path, object]())
    result = Reading()
    for name in ("a.py", "b.py"):
        result.add(read_file(tmp_path / name, lambda rule, _: rule == "UNBOUNDED"))
        assert bool(kept) is (name == "b.py")
    assert [unread.reason for unread in result.unread] == ["its code is nested too deeply"]
    assert (result.files, result.findings) == (1, [])


def test_an_error_of_forbear_is_reported_and_the_rest_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file on which the rules themselves fail does not end the audit."""

    def fail(module: object) -> None:
        raise ZeroDivisionError("by accident")

    (tmp_path / "a.py").write_text(RETRIED)
    monkeypatch.setattr("forbear_audit.rules.file_findings.check", fail)
    (unread,) = audit([tmp_path], settings=SETTINGS).unread
    assert unread.reason == "forbear could not analyse it, please report this: ZeroDivisionError: by accident"


EVERY = AuditSettings(select=tuple(RULES))


WAIT = "import tenacity\nX0 = 1\n{}@tenacity.retry(wait=tenacity.wait_fixed(X9))\ndef f(): g()\n"


def notebook(*sources: str) -> str:
    """A notebook with these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": text} for text in sources]})


# Each met something whose time grew with the square of its size, or faster.
SLOW = {
    "comments.py": "# forbear: ignore[STATE]\n" * 5_000 + RETRIED * 500,
    "line.py": "retry(); " * 2_000 + "# forbear: ignore[STATE]" * 5_000 + "\n" + RETRIED,
    "whole.py": "# forbear: ignore-file[STATE]\n" * 5_000 + RETRIED * 500,
    "cells.ipynb": notebook(RETRIED, *["# forbear: ignore[STATE]\nx"] * 2_000),
    "tries.py": RETRIED + "def f():\n while True:\n" + "  try: a()\n  except E: retry()\n" * 1_000,
    "options.py": f"import tenacity\nK = {dict.fromkeys(map(str, range(1_000)), 1)}\n" + RETRIED * 300
    + "tenacity.Retrying(**K)(g)\n" * 300,
    "sums.py": WAIT.format("".join(f"X{i + 1} = X{i} + X{i}\n" for i in range(20))).replace("X9", "X17"),
    "tuples.py": WAIT.format("".join(f"X{i + 1} = ({f'X{i}, ' * 50})\n" for i in range(9))),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_what_is_large_in_one_respect_ends_soon(name: str, tmp_path: Path) -> None:
    """Very many comments, cells, tries, options and constants made of each other are read to the end."""
    (tmp_path / name).write_text(SLOW[name])
    result = audit([tmp_path], settings=EVERY)
    assert (result.files, result.unread) == (1, ())
    assert result.findings


GROWING: dict[str, Callable[[int], str]] = {
    "items behind policies": lambda n: "def f():\n o = {}\n" + "".join(f' o["k{i}"] = 1\n' for i in range(n))
    + " tenacity.Retrying(**o)(g)\n" * n,
    "a dictionary behind policies": lambda n: f"K = {dict.fromkeys(map(str, range(n)), 1)}\n"
    + "tenacity.Retrying(**K)(g)\n" * n,
    "tries in one loop": lambda n: "def f():\n while True:\n" + "  try: a()\n  except E: retry()\n" * n,
    "methods": lambda n: "class A:\n" + "".join(f" def f{i}(self): pass\n" for i in range(n))
    + " @tenacity.retry\n def g(self):\n" + f"  self.f{n - 1}()\n" * n,
}  # fmt: skip
"""Code by its size; policies, loops or calls each had a look at all of something else."""


def steps(code: str) -> int:
    """The number of calls, returns and loops of generators that an audit of this code makes."""
    count = 0

    def one(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(one)
    try:
        read_texts(Path("a.py"), [(0, f"import tenacity\n{code}")], EVERY.counts)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", GROWING)
def test_work_grows_no_faster_than_the_code(name: str) -> None:
    """Code of twice the size takes at most about twice as many steps; the square of its size would take four times."""
    make = GROWING[name]
    steps(make(1))  # patterns are compiled where they are used first
    assert steps(make(120)) <= 2.1 * steps(make(60))


RETRY = "@tenacity.retry\ndef f(): g()\n"


@pytest.mark.parametrize(("length", "count"), [(4_900, 612), (5_100, 0)])
def test_retries_in_a_very_long_line(length: int, count: int, tmp_path: Path) -> None:
    """A finding has its whole line, so findings in a longer one would have its square together."""
    line = "retry();" * (length // 8)
    (tmp_path / "a.py").write_text(f"from tenacity import retry\n@retry\ndef f(): g()\n{line}\n")
    (tmp_path / "b.py").write_text(f"import tenacity\n{RETRY}x = '{'x' * 10_000}'\n")
    result = audit([tmp_path], settings=AuditSettings(select=("UNBOUNDED",)))
    assert sum(finding.path.endswith("a.py") for finding in result.findings) == (count + 1 if count else 0)
    assert sum(finding.path.endswith("b.py") for finding in result.findings) == 1
    reasons = [] if count else ["a line with a retry has more than 5000 characters"]
    assert [unread.reason for unread in result.unread] == reasons


def test_files_that_take_each_others_code_are_read() -> None:
    """A call that was written out from the code of two files leads from one to the other, and not in a circle."""
    source = ROOT / "packages" / "forbear" / "src" / "forbear" / "clients" / "grpc" / "sync.py"
    assert audit([source], settings=EVERY).unread == ()
