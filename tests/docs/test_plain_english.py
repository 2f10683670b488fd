"""The documentation and the source are in plain English, as far as a script can tell."""

from pathlib import Path

import pytest

from tools.plain_english import HARD, LONG, NAME, OPENING, broken, find, main

_ROOT = Path(__file__).parents[2]
_PLAIN = [*(_ROOT / name for name in ("docs", "examples", "README.md", "CHANGELOG.md", "tools", "src"))]
"""The files and folders that keep the hard rules."""

_GENERATED = _ROOT / "docs" / "reference"  # from the tables, whose texts are code


def test_the_documentation_and_the_source_keep_the_hard_rules() -> None:
    """No page and no module breaks a hard rule; `tools/plain_english.py` lists all candidates."""
    assert [line for line in broken(_PLAIN) if not line.startswith(str(_GENERATED))] == []


def test_the_guides_have_short_sentences() -> None:
    """No sentence of the pages that people write is over 30 words."""
    written = ("README.md", "CHANGELOG.md", "examples/README.md")
    guides = [*(_ROOT / name for name in written), *(_ROOT / "docs").glob("*.md")]
    assert broken(guides, frozenset({LONG})) == []


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
    """The command lists the findings below a folder, and fails only if one breaks a hard rule."""
    page = tmp_path / "page.md"
    page.write_text("Fine.\n\nNobody knows.\n", encoding="utf-8")
    assert "nobody" not in HARD
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{page}:3: nobody: Nobody knows.\n"
    page.write_text("Fine.\n\nThe last reply comes out.\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
