"""Comments of the audit that are wrong, suppress nothing, or are very many."""

from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.rules.comments import read_comments

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef f():\n    return g()\n"


SETTINGS = AuditSettings(select=("UNBOUNDED",))


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


def test_many_comments_in_one_line() -> None:
    """Each part of a comment is read once, also where ten thousand begin and none is closed."""
    comments = read_comments("x = 1  " + "# forbear: ignore[" * 10_000)
    assert len(comments.comments) == 10_000
    assert {name for _, name in comments.unknown} == {"["}
