"""The site: its order comes from the lists of links, and a built site is checked for links, anchors and the network."""

import re
import tomllib
from pathlib import Path

import pytest

from docs.generate.__main__ import API, FOLDER, page
from docs.generate.pages import PAGES
from docs.site.__main__ import main
from docs.site.check import problems
from docs.site.contents import HUBS, for_readers, listed, with_contents, with_local_links
from forbear_testkit import ROOT

PAGE = '<html><head><link rel="stylesheet" href="a.css"></head><body><h1 id="top">x</h1>{}</body></html>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A built site without faults."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text('<a href="page.html#top">page</a>')
    (tmp_path / "docs" / "page.html").write_text(
        PAGE.format('<a href="#top">up</a> <a href="https://example.com/">out</a>')
    )
    (tmp_path / "docs" / "a.css").write_text("body { background: url(data:image/png;base64,AA) }")
    (tmp_path / "search.html").write_text('<script src="searchindex.js?v=1"></script>')
    (tmp_path / "searchindex.js").write_text('Search.setIndex({"docnames":["docs/index","docs/page"]})')
    return tmp_path


def test_a_site_without_faults(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Links to pages, to anchors and to other sites are fine, and so is an index that knows every page."""
    assert [*problems(site)] == []
    assert main([str(site)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("docs/index.html", '<a href="gone.html">x</a>', "docs/index.html: gone.html: no such file"),
        ("docs/index.html", '<a href="page.html#gone">x</a>', "docs/index.html: page.html#gone: no such anchor"),
        ("docs/index.html", '<a href="../../out.html">x</a>', "docs/index.html: ../../out.html: no such file"),
        ("docs/index.html", '<img src="gone.svg">', "docs/index.html: gone.svg: no such file"),
        (
            "docs/index.html",
            '<script src="https://cdn.example/x.js"></script>',
            "docs/index.html: https://cdn.example/x.js: from another site",
        ),
        (
            "docs/index.html",
            '<link rel="preconnect" href="//fonts.example">',
            "docs/index.html: //fonts.example: from another site",
        ),
        (
            "docs/a.css",
            '@font-face { src: url("https://fonts.example/a.woff") }',
            "docs/a.css: https://fonts.example/a.woff: from another site",
        ),
        ("docs/new.html", "", "searchindex.js: docs/new.html is not in it"),
        ("searchindex.js", "x", "searchindex.js: it must call Search.setIndex"),
        ("search.html", "", "search.html: it does not load searchindex.js"),
    ],
)
def test_a_fault_of_a_site(site: Path, file: str, text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault is one line of text, and the command fails."""
    (site / file).write_text(text)
    assert problem in [*problems(site)]
    assert main([str(site)]) == 1
    assert f"error: {problem}\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["docs/index.html", "searchindex.js"])
def test_a_site_without_a_start_page_or_an_index(site: Path, name: str) -> None:
    """A site needs a start page, and an index for its search."""
    (site / name).unlink()
    assert any(name in problem for problem in problems(site))


def test_the_order_of_the_site_is_that_of_its_start_page() -> None:
    """Each part of the start page is one part of the contents; text that is no list of pages is left out."""
    part = "## Part\n\n- [One](one.md): first\n- [Two](../two.md)\n"
    text = f"# A\n\n- [x](x.md#y): no page of its own\n\n{part}\n## Empty\n\nText.\n"
    assert [*listed(text)] == [("Part", [("One", "one"), ("Two", "../two")])]
    made = with_contents("docs/index", text)
    assert made.startswith(text)
    assert made.endswith("```{toctree}\n:hidden:\n:caption: Part\n\nOne <one>\nTwo <../two>\n```\n")
    assert with_contents("docs/other", text) == text


def test_the_links_of_the_readme_are_absolute() -> None:
    """On a package index README is alone: its links begin with the source's address, and name files that exist."""
    source = tomllib.loads((ROOT / "packages/forbear/pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = dict(re.findall(r"^\[(\w+)\]: (\S+)$", text, re.MULTILINE))
    assert set(re.findall(r"\]\[(\w+)\]", text)) == set(links)
    assert re.findall(r"\]\((?!#)", text) == []
    raw = source.replace("github.com", "raw.githubusercontent.com")
    for link in links.values():
        assert link.startswith((f"{source}/blob/main/", f"{raw}/main/"))
        assert (ROOT / with_local_links("README", link).partition("#")[0]).is_file(), link
    assert with_local_links("docs/other", text) == text


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("README", "# forbear\n\nText.\n", "# Overview of forbear\n\nText.\n"),
        ("docs/index", "# forbear\n\n# x\n", "# forbear\n\n# x\n"),
        ("docs/reference/api/index", "# API\n", "# API\n"),
        ("docs/reference/api/forbear.http", "# forbear.http\n\n# x\n", "# API: forbear.http\n\n# x\n"),
    ],
)
def test_titles_of_pages(name: str, text: str, shown: str) -> None:
    """README and the pages of the API get titles that say in a list of results which page it is."""
    assert for_readers(name, text) == shown


def test_readers_see_no_note_to_editors() -> None:
    """The note that a page is generated is for those who edit it; it is on each generated page, and not on the site."""
    for name in PAGES:
        text = page(name)
        assert name.startswith(API) or "Do not edit it by hand." in text
        assert "make reference" not in for_readers(f"docs/reference/{name}", text)


def test_every_page_is_in_the_contents() -> None:
    """Each page for readers is listed on the start page, or on a page that it lists."""
    pages = set()
    start, index = HUBS
    hubs = {start: (ROOT / f"{start}.md").read_text(encoding="utf-8"), index: page(f"{API}index")}
    for hub, text in hubs.items():
        folder = (ROOT / hub).parent
        for _, links in listed(text):
            pages |= {(folder / f"{target}.md").resolve() for _, target in links}
    built = {FOLDER / f"{name}.md" for name in PAGES if name.startswith(API)}
    written = {
        *built,
        *(file for file in (ROOT / "docs").rglob("*.md") if file.parent != FOLDER / "api"),
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "ARCHITECTURE", "SECURITY")),
        *(ROOT / "packages").glob("*/ARCHITECTURE.md"),
    }
    assert written - pages == {ROOT / "docs" / "index.md"}
