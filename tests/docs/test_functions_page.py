"""The page about functions: its table is that of the code."""

from pathlib import Path

from forbear.judges.functions import ROWS, Ruling
from forbear.services import at_least_once

PAGE = (Path(__file__).parents[2] / "docs" / "functions.md").read_text(encoding="utf-8")


def line_of(row: Ruling) -> str:
    """Return the line of the table for a row that stops."""
    why = row.why.format(what="The request")
    cure = row.cure.format(cure="say that it does no harm: `safe=` or `repeatable=True`")
    return f"| `{row.code}` | {why} | {cure[0].upper()}{cure[1:]} |"


def test_every_row_that_stops_is_on_the_page() -> None:
    """The table has the reasons and the cures of the code, in their order."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4]
    assert lines == [line_of(row) for row in ROWS if not row.repeats]


def test_the_second_sentence_says_what_cannot_be_seen() -> None:
    """Nobody has to read the page to its end for its limits."""
    sentences = PAGE.partition("\n\n")[2].replace("\n", " ").split(". ")
    assert "cannot be seen" in sentences[1]


def test_the_operations_of_at_least_once() -> None:
    """Each has its line, with its source."""
    for row in at_least_once.ROWS:
        (line,) = (line for line in PAGE.splitlines() if line.startswith("| `") and f"`{row.operation}`" in line)
        assert f"({row.source})" in line
