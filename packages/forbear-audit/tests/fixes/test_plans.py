"""`--fix`: what is changed and what is left alone, and that a file keeps all else."""

import os
import re
import stat
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.fixes import FixedFile, FixFigures, fix
from forbear_audit.rules.baseline import Baseline
from forbear_audit.rules.catalog import RULES
from forbear_testkit.audit.corpus import snippets

SETTINGS = AuditSettings(select=tuple(RULES))
BOTH = FixFigures(deadline=60, cap=30)


def fixed(folder: Path, text: str, figures: FixFigures = BOTH) -> str:
    """The text of a file after its fixes."""
    file = folder / "shop.py"
    file.write_text(text, encoding="utf-8")
    fix(audit([file], settings=SETTINGS), settings=SETTINGS, figures=figures)
    return file.read_text(encoding="utf-8")


DECORATED = "import {}\n\n\n{}\ndef f():\n    return g()\n"

CHANGES = {
    name: (before, after if arrow else before)
    for name, before, arrow, after in re.findall(
        r"^# %% ([\w-]+)\n(.*?)(?:^(# ->)\n(.*?))?\n?(?=^# %% |\Z)",
        (Path(__file__).parent / "changes.txt").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_certain_is_fixed(name: str, tmp_path: Path) -> None:
    """A fix writes exactly this, the new code compiles, and a second run changes nothing; the rest stays as it is."""
    assert len(CHANGES) >= 41
    before, after = CHANGES[name]
    got = fixed(tmp_path, before)
    assert got == after
    compile(got, name, "exec")
    assert fixed(tmp_path, got) == got


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.soak), 4])
def test_the_corpus_is_fixed_once(step: int, tmp_path: Path) -> None:
    """All fixes in the corpus make code that compiles and has fewer findings of their rules; a second run has none."""
    for snippet in list(snippets())[::step]:
        (tmp_path / f"{snippet.name}.py").write_text(snippet.code, encoding="utf-8")
    result = audit([tmp_path], settings=SETTINGS)
    after, files = fix(result, settings=SETTINGS, figures=BOTH)
    assert (len(files) >= 30 // step, after.unread) == (True, result.unread)
    left = [(finding.path, finding.rule) for finding in after.findings]
    for item in files:
        compile(item.after, item.path, "exec")
        for one in item.fixes:
            assert left.count((one.path, one.rule)) < sum(
                (f.path, f.rule) == (one.path, one.rule) for f in result.findings
            )
    assert fix(after, settings=SETTINGS, figures=BOTH)[1] == []


def test_figures_are_the_users_choice(tmp_path: Path) -> None:
    """Without a figure no deadline and no cap is made up, and other findings are fixed all the same."""
    text = DECORATED.format("backoff", "@backoff.on_exception(backoff.expo, OSError, max_tries=12, jitter=None)")
    assert fixed(tmp_path, text, FixFigures()) == text.replace(", jitter=None", "")
    assert "max_time=2.5)" in fixed(tmp_path, text, FixFigures(deadline=2.5))


BACKOFF = (
    "import backoff\n\n\n@backoff.on_exception(backoff.expo, OSError, max_time=9, jitter=None){}\ndef f():\n    g()\n"
)


def files_fixed(folder: Path, baseline: Baseline | None = None) -> list[FixedFile]:
    """The files below a folder that a fix changes."""
    result = audit([folder], settings=SETTINGS, baseline=baseline)
    return fix(result, settings=SETTINGS, baseline=baseline)[1]


def test_what_is_suppressed_or_known_is_left(tmp_path: Path) -> None:
    """Findings that a comment or the baseline suppresses are no reason to change a file."""
    file = tmp_path / "a.py"
    file.write_text(BACKOFF.format("  # forbear: ignore[NO-JITTER]"))
    assert files_fixed(tmp_path) == []
    file.write_text(BACKOFF.format(""))
    known = Baseline.of(tmp_path / "known.json", audit([file], settings=SETTINGS).findings)
    assert files_fixed(tmp_path, known) == []
    assert len(files_fixed(tmp_path)) == 1


@pytest.mark.parametrize(
    ("head", "encoding", "newline"),
    [
        ("# -*- coding: latin-1 -*-\n# ä\n", "latin-1", "\n"),
        ("# ä😀\n", "utf-8", "\r\n"),
        ("# ä\n", "utf-8-sig", "\r\n"),
        ("\tx = 1\n".lstrip(), "utf-8", "\r"),
    ],
)
def test_a_file_keeps_its_encoding_and_its_lines(head: str, encoding: str, newline: str, tmp_path: Path) -> None:
    """Encoding, byte order mark, ends of lines and a missing one at the end stay; columns count characters."""
    file = tmp_path / "a.py"
    for end in ("", newline, newline + newline):
        text = (head + BACKOFF.format("  # é")).rstrip("\n").replace("\n", newline) + end
        file.write_bytes(text.encode(encoding))
        assert len(files_fixed(tmp_path)) == 1
        assert file.read_bytes() == text.replace(", jitter=None", "").encode(encoding)


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    """The file is replaced, with its permissions, and nothing else is left in the folder."""
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text(BACKOFF.format(""))
    file.chmod(0o4751)
    assert len(files_fixed(file)) == 1
    assert "jitter" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o4751
    assert [p.name for p in (tmp_path / "src").iterdir()] == ["a.py"]


def test_nothing_outside_of_the_folder_is_written(tmp_path: Path) -> None:
    """A symbolic link may lead anywhere, so the file behind it stays; so does a hard link to a fixed file."""
    (tmp_path / "src").mkdir()
    code = BACKOFF.format("")
    outside, inside = tmp_path / "outside.py", tmp_path / "src" / "a.py"
    outside.write_text(code)
    inside.write_text(code)
    (tmp_path / "src" / "link.py").symlink_to(outside)
    (tmp_path / "hard.py").hardlink_to(inside)
    result = audit([tmp_path / "src" / "link.py", inside], settings=SETTINGS)
    after, done = fix(result, settings=SETTINGS)
    assert [item.path for item in done] == [inside]
    assert (outside.read_text(), (tmp_path / "hard.py").read_text()) == (code, code)
    assert inside.read_text() != code
    (unread,) = after.unread
    assert unread.reason == "not fixed: it is a symbolic link: name the file that it leads to"


def test_a_file_that_was_changed_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that somebody else has written since, or may not write, is not overwritten but reported."""
    file = tmp_path / "a.py"
    file.write_text(BACKOFF.format(""))
    result = audit([file], settings=SETTINGS)
    (item,) = fix(result, settings=SETTINGS, dry=True)[1]
    file.write_text("x = 1\n")
    with pytest.raises(OSError, match="changed meanwhile"):
        item.write()
    assert file.read_text() == "x = 1\n"
    file.write_text(BACKOFF.format(""))

    def refuse(path: Path, mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)
    after, done = fix(result, settings=SETTINGS)
    assert (done, [u.reason for u in after.unread]) == ([], ["not fixed: it is read-only"])
    assert after.findings == result.findings


def test_the_new_audit_is_returned(tmp_path: Path) -> None:
    """The findings that are left have their new lines, and the fixes name the old ones."""
    (tmp_path / "a.py").write_text(CHANGES["loop-jitter"][0])
    (tmp_path / "b.py").write_text(DECORATED.format("tenacity", "@tenacity.retry"))
    result = audit([tmp_path], settings=SETTINGS)
    after, (item,) = fix(result, settings=SETTINGS)
    assert after == audit([tmp_path], settings=SETTINGS)
    assert [str(one) for one in item.fixes] == [
        f"{tmp_path / 'a.py'}:12: NO-JITTER: the wait times `random.uniform(0.5, 1)`"
    ]
    assert "+import random\n" in item.diff()
