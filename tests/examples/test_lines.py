"""The examples are small: each needs at most five lines of forbear, and the index lists them all."""

import re
from pathlib import Path

import pytest

from forbear_testkit.examples.load import FOLDER, lines_of_forbear

_MOST = 5
_PROGRAMS = sorted(path for path in FOLDER.iterdir() if path.suffix in {".py", ".sh"})


def _lines(program: Path) -> list[str]:
    source = program.read_text(encoding="utf-8")
    if program.suffix == ".py":
        return lines_of_forbear(source)
    return [line for line in source.splitlines() if "forbear" in line and not line.startswith("#")]


@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda program: program.name)
def test_a_program_needs_few_lines_of_forbear(program: Path) -> None:
    """A program has between one and five lines that mention forbear or its objects."""
    assert 1 <= len(_lines(program)) <= _MOST, _lines(program)


def test_the_index_lists_the_programs_and_their_lines() -> None:
    """The table in `examples/README.md` has one row for each program, with its count of lines of forbear."""
    rows = re.findall(r"^\| \[(\S+)\]\(\1\) \|.*\| (\d) \|$", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == [(program.name, str(len(_lines(program)))) for program in _PROGRAMS]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import os\nos.getcwd()\n", []),
        ("import forbear\nforbear.report(1)\n", [1, 2]),
        ("import forbear.clients.httpx as adapter\nx = (\n    adapter.RetryTransport(\n    )\n)\n", [1, 2, 3, 4]),
        ("from forbear.clients import (\n    httpx,\n    requests,\n)\n", [1, 2, 3, 4]),
        (
            "from forbear import retry\np = retry(on=OSError)\nq = p.with_attempts(2)\n\n@q\ndef f(): ...\nf()\n",
            [1, 2, 3, 5],
        ),
        ("from forbear.clients.redis import Redis\nwith Redis() as r:\n    r.get('a')\nprint(1)\n", [1, 2, 3]),
        ("from forbear.clients.grpc import RetryInterceptor as I\nchannel(I())\nchannel(1)\n", [1, 2]),
    ],
)
def test_what_counts(source: str, lines: list[int]) -> None:
    """Imports, calls with all their lines, decorators and bound objects count; what the program owns does not."""
    text = source.splitlines()
    assert lines_of_forbear(source) == [text[number - 1] for number in lines]
