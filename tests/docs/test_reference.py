"""The reference pages are complete, are made again when out of date, and can be read."""

import json
import re
from pathlib import Path

import pytest

from docs.generate import comparison, demo
from docs.generate.__main__ import API, COMPARISON, EXPORTS, FLEET, FOLDER, WHY, main, page
from docs.generate.pages import PAGES
from forbear.answers import tables


def test_every_page_is_made() -> None:
    """No page stands there that nothing makes; `make lint` checks that the pages are up to date."""
    committed = {path.stem for path in FOLDER.glob("*.md")}
    assert committed == {name for name in PAGES if not name.startswith(API)}


def test_pages_of_the_api_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--api` writes them and nothing else; they are made of docstrings, and not committed."""
    monkeypatch.setattr("docs.generate.__main__.FOLDER", tmp_path)
    assert main(["--api"]) == 0
    built = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    assert built == {name for name in PAGES if name.startswith(API)}
    assert (tmp_path / "api" / "index.md").read_text(encoding="utf-8") == page("api/index")


def test_a_page_out_of_date_is_found_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` fails and names the pages, without it they are made."""
    exports = tmp_path / "export.md"
    exports.write_text(EXPORTS.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr("docs.generate.__main__.FOLDER", tmp_path)
    fleet = tmp_path / "fleet.md"
    fleet.write_text(FLEET.read_text(encoding="utf-8"), encoding="utf-8")
    why = tmp_path / "why.md"
    why.write_text(WHY.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr("docs.generate.__main__.WHY", why)
    compared = tmp_path / "comparison.md"
    compared.write_text(COMPARISON.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr("docs.generate.__main__.COMPARISON", compared)
    monkeypatch.setattr("docs.generate.pictures.FOLDER", tmp_path / "pictures")
    monkeypatch.setattr("docs.generate.__main__.LLMS", tmp_path / "llms.txt")
    monkeypatch.setattr("docs.generate.__main__.EXPORTS", exports)
    monkeypatch.setattr("docs.generate.__main__.FLEET", fleet)
    (tmp_path / "iam.md").write_text("# something else\n", encoding="utf-8")
    assert main(["--check"]) == 1
    assert "error: iam.md is out of date\nhint: make reference\n" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0
    assert (tmp_path / "redis.md").read_text(encoding="utf-8") == page("redis")
    assert "forbear explain DELETE" in (tmp_path / "pictures" / "explain.svg").read_text(encoding="utf-8").replace(
        "&#160;", " "
    )


@pytest.mark.parametrize("name", tables.names())
def test_every_operation_is_on_its_page(name: str) -> None:
    """No operation of a table is left out of its page."""
    text = page(name.partition(".")[0])
    for entry in tables.find(name):
        short = re.split("[/.]", entry.id)[-1] if name != "redis" else entry.id
        assert f"{short}`" in text, entry.id


@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_read(name: str) -> None:
    """No line is endless, and every row of a table has as many cells as its head."""
    cells = 0
    for line in page(name).splitlines():
        assert len(line) <= 240, line
        if line.startswith("|"):
            found = len(re.findall(r"(?<!\\)\|", line))
            assert found == (cells or found), line
            cells = found
        else:
            cells = 0


@pytest.mark.parametrize("name", ["cloud_storage", "iam", "memorystore"])
def test_no_operation_is_there_twice(name: str) -> None:
    """The sections of a page share out the operations of its tables: each is in one row, or in one list of reads."""
    text = page(name).partition("## Profiles")[2]
    rows = re.findall(r"^\| `[^`]+` \|", text, re.MULTILINE)
    lists = re.findall(r"\*\*Reads\*\*.*?\n\n(.*?)\n\n", text, re.DOTALL)
    known = [entry for table in tables.names() if table.partition(".")[0] == name for entry in tables.find(table)]
    assert len(rows) + sum(one.count("`") // 2 for one in lists) == len(known)


@pytest.mark.soak
def test_the_stored_behaviour_of_libraries_is_that_of_today() -> None:
    """The libraries do today what docs/comparison.md says that they do."""
    stored = json.loads(comparison.FIGURES.read_text(encoding="utf-8"))
    assert comparison.measured_behaviour() == stored["behaviour"]


@pytest.mark.soak
def test_the_stored_figures_of_the_demo_are_those_of_today() -> None:
    """A run of the demo with the same seed gives the figures in docs/why.md; counts of requests may differ a little."""
    measured = {name: score["counts"] for name, score in json.loads(demo.measured()).items()}
    assert measured == {name: score.counts for name, score in demo.scores().items()}
