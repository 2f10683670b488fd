"""The pages that a newcomer reads first stay short, and each of their lines works: README and the cheat sheet."""

import re
import threading
from typing import Any

import httpx
import pytest

import forbear
from forbear_testkit import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHEET = (ROOT / "docs" / "cheatsheet.md").read_text(encoding="utf-8")
LINES: list[str] = re.findall(r"^\| .+ \| `(.+)` \|$", SHEET, re.MULTILINE)


class _Busy(Exception):
    """The error `E` of the lines."""

    wait = 1.0


def test_the_readme_is_short() -> None:
    """It has at most 6 000 characters, and no list of commands is longer than six lines."""
    assert len(README) <= 6000
    blocks = re.findall(r"^```(?:shell|console)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert blocks
    assert max(block.count("\n") for block in blocks) <= 6


def test_the_readme_begins_with_what_a_careful_team_asks() -> None:
    """The pages on adoption and on the comparison are linked in the first ten lines."""
    first = "\n".join(README.splitlines()[:10])
    assert "][adopt]" in first
    assert "][comparison]" in first


def test_the_cheat_sheet_is_one_sheet() -> None:
    """It has as many lines as a sheet of paper at a small size; no line of its table breaks into more than two."""
    assert len(SHEET.splitlines()) <= 75
    assert max(map(len, LINES)) <= 110


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_cheat_sheet(line: str) -> None:
    """Each line is an expression that works: its names and its arguments are right."""
    client, cell = httpx.Client(), {"value": 1}
    try:
        raise _Busy("busy")
    except _Busy as caught:
        error = caught
    names: dict[str, Any] = {
        "forbear": forbear,
        "E": _Busy,
        "policy": forbear.retry(_Busy),
        "shutdown": threading.Event(),
        "client": client,
        "error": error,
        "read": cell.copy,
        "modify": dict,
        "write": cell.update,
        "is_conflict": bool,
    }
    with client:
        value = eval(line, names)
    assert value is not None or line.startswith(("forbear.report(", "forbear.update("))


def test_the_cheat_sheet_knows_every_code_of_a_note() -> None:
    """Each code that a note may end with links to its section on the page of troubleshooting."""
    linked = re.findall(r"\[`(\w+)`\]\(troubleshooting\.md#(\w+)\)", SHEET)
    assert {code for code, _ in linked} == {reason.code for reason in forbear.events.Reason}
    assert all(code == anchor for code, anchor in linked)
