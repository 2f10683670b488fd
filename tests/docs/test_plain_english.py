"""The script that keeps the documentation and the source to plain English, which `make lint` runs on all of them."""

from pathlib import Path

import pytest

from tools.plain_english import HARD, LONG, NAME, OPENING, find, main


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("a.py", '"""What it does."""\n', [OPENING]),
        ("a.py", 'def f():\n    """Whether it is so.\n\n    How it goes.\n    """\n', [OPENING]),
        ("a.py", 'limit = 5\n"""How long it may take."""\n', [OPENING]),
        ("a.py", '"""Return what it does."""\nx = "What?"\n', []),
        ("a.py", "x = 1  # the reply\n", ["reply"]),
        ("a.py", "# The error\n# comes out.\nx = 1\n", ["comes out"]),
        ("a.py", "def f(asked: str) -> None:\n    found = told = asked\n", [NAME] * 3),
        ("a.py", "x = reply  # noqa: F821\n", []),
        ("a.md", "The replies of `reply`.\n", ["reply"]),
        ("a.md", "```python\nreply = 1\n```\n", []),
        ("a.md", "    reply\n", []),
        ("a.md", "[reply]: https://example.com/\n", []),
        ("a.md", "| a | reply |\n|---|---|\n| b | be it so |\n", ["reply", "be it"]),
        ("a.md", f"1. A list.\n\n   | {'word ' * 20}|\n   | {'word ' * 20}|\n", []),
        ("a.md", "It waits for\nso long.\n", ["so long"]),
        ("a.md", "It works so long as nothing fails.\n", []),
        ("a.md", f"{'word ' * 31}end.\n", [LONG]),
        ("a.md", f"{'word ' * 29}end.\n{'word ' * 29}end.\n", []),
        ("a.txt", "The reply.\n", []),
    ],
)
def test_a_rule(name: str, text: str, rules: list[str], tmp_path: Path) -> None:
    """A passage breaks the rules listed, and no others; code is not read."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [finding.rule for finding in find([tmp_path / name])] == rules


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command lists the findings below a folder, with `--hard` only the hard ones, and fails only for these."""
    page = tmp_path / "page.md"
    page.write_text("Fine.\n\nNobody knows.\n", encoding="utf-8")
    assert "nobody" not in HARD
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{page}:3: nobody: Nobody knows.\n"
    page.write_text(f"Nobody knows.\n\nThe last reply.\n\n{'word ' * 31}end.\n", encoding="utf-8")
    assert main(["--hard", str(tmp_path)]) == 1
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == ["reply", LONG]
