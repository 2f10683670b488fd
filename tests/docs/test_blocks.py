"""Every block of code in the documentation is run or checked; here are those without a test of their page."""

import doctest
import json
import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from benchmarks.transfers import __main__ as transfers
from forbear.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(page, kind, block) for page, text in TEXTS.items() for kind, block in BLOCK.findall(text)]

OF_THEIR_OWN = {
    "docs/cli.md": "tests/cli/test_docs.py",
    "docs/simulate.md": "tests/cli/test_simulate.py",
    "docs/tools.md": "tests/docs/test_tools.py",
    "docs/transfer.md": "tests/cli/test_cp_docs.py",
}
"""Pages whose commands another module runs."""
SAMPLES = {("docs/google.md", "text"), ("docs/support.md", "text"), ("docs/export.md", "js"), ("docs/curl.md", "json")}
"""Blocks that show what is seen elsewhere. That of docs/curl.md is checked below, the others are beside their code."""

TYPED = [
    (page, line)
    for page, kind, block in BLOCKS
    if kind in {"console", "shell"} and page not in OF_THEIR_OWN
    for line in re.findall(r"^(?:\$ )?((?:forbear|make|pip|python) (?:.*\\\n)*.*)$", block, re.MULTILINE)
] + [
    (page, line)
    for page, text in TEXTS.items()
    for line in re.findall(r"^    ((?:forbear|make|pip) .*)$", BLOCK.sub("", text), re.MULTILINE)
]
"""The lines that a reader types, in blocks and in indented text."""


def test_every_kind_of_block_is_checked() -> None:
    """Python and its output are run by test_examples.py, commands by a module named here or by this one."""
    unknown = {
        (page, kind)
        for page, kind, _ in BLOCKS
        if kind not in {"python", "output", "console", "shell"}
        and (page, kind) not in SAMPLES
        and page not in OF_THEIR_OWN
    }
    assert unknown == set()
    assert all((ROOT / module).is_file() for module in OF_THEIR_OWN.values())


@pytest.mark.parametrize(("page", "line"), TYPED, ids=[f"{page}: {line}" for page, line in TYPED])
def test_what_a_reader_types_is_right(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extras, targets of make, and options exist; a command of forbear takes its line. Nothing is sent."""
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    if words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        named = re.findall(r"\[([\w,-]+)\]", " ".join(words))
        assert {name for each in named for name in each.split(",")} <= set(extras)
    elif words[0] == "make":
        assert f"\n.PHONY: {words[1]}\n" in (ROOT / "Makefile").read_text("utf-8")
    elif words[0] == "python":
        if words[1:4] == ["-m", "benchmarks", "transfers"]:
            source = Path(transfers.__file__).read_text("utf-8")
            assert [word for word in words[4:] if word.startswith("--") and f'"{word}"' not in source] == []
    else:
        monkeypatch.chdir(tmp_path)
        for name in ("fleet.toml", "docs/fleet/budget.toml", "report.csv", "photos/a.jpg", "docs/a.md"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text("")
        assert _takes([*takewhile(lambda word: word != ">", words[1:])]), page


def _takes(words: list[str]) -> bool:
    """Return whether the command line takes the words; a click.UsageError says why not."""
    command = app.get_command(click.Context(app), words[0])
    assert command is not None
    return command.make_context(words[0], words[1:], parent=click.Context(app, info_name="forbear")).command is command


SHOWN = [
    (line, expected)
    for page, kind, block in BLOCKS
    if kind == "console" and page not in OF_THEIR_OWN
    for line, expected in re.findall(r"^\$ (forbear explain .*)\n((?:(?!\$ ).*\n)+)", block, re.MULTILINE)
]


@pytest.mark.parametrize(("line", "expected"), SHOWN, ids=[line for line, _ in SHOWN])
def test_what_explain_prints(line: str, expected: str) -> None:
    """`forbear explain` prints what stands below it; "..." stands for anything."""
    done = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="forbear", catch_exceptions=False)
    assert doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS), done.stdout


def test_the_report_in_the_page_of_curl_agrees_with_its_schema() -> None:
    """The sample of `--report json` is a document that the command could print."""
    schema = json.loads((ROOT / "docs" / "schemas" / "curl.json").read_text(encoding="utf-8"))
    samples = [block for page, kind, block in BLOCKS if (page, kind) == ("docs/curl.md", "json")]
    assert len(samples) == 1
    assert [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(samples[0]))] == []
