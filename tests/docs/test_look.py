"""The look of the site: what the browser finds wrong with a page, which browser that is, and the site itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site.browser import NAMES, PACKAGE, Browser, NoBrowserError, find
from docs.site.look import ONE_SHEET, PICTURES, QUESTIONS, SEARCHES, Eyes, opened, problems
from forbear_testkit import ROOT

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>{head}</head>
<body><article><h1>A page</h1><p>Text.</p>{body}</article></body></html>"""
CODE = '<div class="highlight-python"><pre>' + "<span>x</span>" * 10 + "</pre></div>"


def _program(folder: Path, name: str, text: str = "exit 0") -> Path:
    """Write an executable script, and return its path."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_the_browser_that_is_named(tmp_path: Path) -> None:
    """`CHROMIUM` comes before any browser on PATH."""
    named, path = _program(tmp_path, "mine"), tmp_path / "path"
    path.mkdir()
    _program(path, "chromium")
    assert find(tmp_path, {"CHROMIUM": str(named), "PATH": str(path)}) == Browser(named, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_on_path(tmp_path: Path, name: str) -> None:
    """Each usual name of Chromium is looked for."""
    program = _program(tmp_path, name)
    assert find(tmp_path, {"PATH": str(tmp_path)}) == Browser(program, {})


def test_a_browser_that_is_named_wrongly(tmp_path: Path) -> None:
    """A name that leads nowhere is an error, even if there is a browser on PATH."""
    _program(tmp_path, "chromium")
    with pytest.raises(NoBrowserError, match="CHROMIUM must name a program, got '/gone': install it"):
        find(tmp_path, {"CHROMIUM": "/gone", "PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("programs", "error"),
    [
        ({}, "no npm to fetch"),
        ({"npm": "exit 0"}, "no npm to fetch"),
        ({"npm": "echo E404 >&2; exit 1", "node": ""}, "npm cannot fetch .*E404"),
        ({"npm": "exit 0", "node": ""}, "npm cannot fetch"),
        ({"npm": "echo other > chromium.tgz", "node": ""}, "is not the known"),
    ],
)
def test_no_browser_at_all(
    tmp_path: Path, programs: dict[str, str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reason why no browser can be fetched is an error with the cure; no other file is taken for the package."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    path = tmp_path / "path"
    path.mkdir()
    for name, text in programs.items():
        _program(path, name, text)
    with pytest.raises(NoBrowserError, match=f"(?s){error}") as caught:
        find(tmp_path / "cache", {"PATH": str(path)})
    assert "make site-look CHROMIUM=" in str(caught.value)


def test_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that the package is not made for, the error names the right kind of machine."""
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(NoBrowserError, match=rf"{PACKAGE} is for Linux on x86-64 only: install it"):
        find(tmp_path, {"PATH": ""})


def test_a_browser_that_was_fetched(tmp_path: Path) -> None:
    """It is fetched once; its own libraries go with it."""
    folder = tmp_path / PACKAGE.rpartition("@")[2]
    folder.mkdir()
    program = _program(folder, "chromium")
    browser = find(tmp_path, {"PATH": ""})
    assert browser.program == program
    assert browser.environment["LD_LIBRARY_PATH"] == str(folder / "lib")


@pytest.fixture(scope="module")
def eyes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Eyes]:
    """A browser that looks at a folder of test pages."""
    folder = tmp_path_factory.mktemp("site")
    with opened(find(ROOT / "build" / "browser"), folder, folder / "pictures") as eyes:
        yield eyes


def _look(eyes: Eyes, body: str, head: str = "") -> list[str]:
    """Return what is wrong with a page."""
    (eyes.site / "page.html").write_text(PAGE.format(head=head, body=body), encoding="utf-8")
    return [*eyes.look("page.html")]


@pytest.mark.soak
@pytest.mark.parametrize(
    "body",
    [
        "",
        '<div style="overflow-x: auto"><pre style="width: 3000px">x</pre></div>',
        f'<img src="{PIXEL}" alt="a pixel">',
        '<p style="color: #666; background: rgb(255 255 255 / 50%)">x</p>',
        '<p style="color: #888; font-size: 24px">large</p>',
        '<p style="color: #fff; visibility: hidden">x</p>',
        CODE.replace("<span>", '<span style="color: #060">', 3).replace("<span>", '<span style="color: #006">', 3),
    ],
)
def test_a_page_without_faults(eyes: Eyes, body: str) -> None:
    """Near misses of each rule are fine: a wide box that scrolls, a picture, contrast just enough, colored code."""
    assert _look(eyes, body) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("body", "head", "problem"),
    [
        ('<p style="width: 600px">wide</p>', "", "page.html (narrow, light): it is 608 pixels wide in a window of 390"),
        (
            '<div style="overflow: hidden"><p class="a" style="width: 600px">cut</p></div>',
            "",
            'page.html (narrow, light): it ends beyond the edge of the window: <p class="a"> "cut"',
        ),
        ('<img src="gone.png" alt="x">', "", "page.html: cannot be loaded: gone.png"),
        ('<img src="data:image/png,x" alt="x">', "", "page.html (wide, light): no picture: data:image/png,x"),
        (f'<img src="{PIXEL}">', "", f"page.html (wide, light): a picture without a text: {PIXEL}"),
        ("<script>console.error(1 + 1)</script>", "", "page.html: error on the console: 2"),
        ("<script>console.warn(3)</script>", "", "page.html: warning on the console: 3"),
        ("<script>throw Error('oh')</script>", "", "page.html: error in a script: oh"),
        ("", '<link rel="stylesheet" href="gone.css">', "page.html: cannot be loaded: gone.css"),
        (
            '<img src="https://example.com/a.png" alt="x">',
            "",
            "page.html: asks the network for https://example.com/a.png",
        ),
        (
            '<p style="color: #999">pale</p>',
            "",
            'page.html (wide, light): contrast of 2.85, rgb 153,153,153 on 255,255,255: <p> "pale"',
        ),
        (
            "<p>x</p>",
            "<style>@media (prefers-color-scheme: dark) { body { background: #111 } }</style>",
            'page.html (wide, dark): contrast of 1.11, rgb 0,0,0 on 17,17,17: <h1> "A page"',
        ),
        ("", "<style>h1 { display: none }</style>", "page.html (wide, light): no heading is visible"),
        ("<script>document.title = ''</script>", "", "page.html (wide, light): it has no title"),
        (CODE, "", "page.html (wide, light): its code has no colors"),
    ],
)
def test_a_fault_of_a_page(eyes: Eyes, body: str, head: str, problem: str) -> None:
    """Each fault that a reader would see is a line of text that names the page and the view."""
    assert problem in _look(eyes, body, head)


@pytest.mark.soak
def test_faults_of_a_site(eyes: Eyes) -> None:
    """A blank page, a start page without a way on and a search without results are faults."""
    for name in (*PICTURES, "search.html", ONE_SHEET):
        (eyes.site / name).parent.mkdir(parents=True, exist_ok=True)
        (eyes.site / name).write_text("<title>x</title><h1></h1>")
    results = '<div id="search-results"><p class="search-summary">1</p><li><a href="gone.html">x</a></li></div>'
    (eyes.site / "search.html").write_text(f"<title>x</title><h2>x</h2>{results}")
    bare = "<style>:focus { outline: none }</style>"
    (eyes.site / PICTURES[0]).write_text(f'<title>x</title>{bare}<form action="../search.html"><input name="q"></form>')
    (eyes.site / ONE_SHEET).write_text("<title>x</title><h1>x</h1><p style='height: 1500px'>x</p>")
    faults = [*problems(eyes)]
    assert f"{ONE_SHEET}: it needs 2 sheets of A4" in faults
    for name in PICTURES[1:]:
        assert f"{name} (narrow, dark): it looks blank" in faults
    for view in ("wide, light", "narrow, dark"):
        assert f"{PICTURES[0]} ({view}): the first code block is not in the first view" in faults
        assert f"{PICTURES[0]} ({view}): a link to the tutorial is not in the first view" in faults
        assert f"{PICTURES[0]} ({view}): the contents cannot be reached" in faults
    assert f"{PICTURES[0]}: nothing shows that the keyboard is at q" in faults
    assert f"{PICTURES[0]}: the keyboard does not reach the tutorial" in faults
    for words, page in SEARCHES.items():
        assert f"search for {words}: gone.html: no such file" in faults
        assert f"search for {words}: {page} is not among the 1 results" in faults
    for words, page in QUESTIONS.items():
        assert f"search for {words}: {page} is not among the first results" in faults


@pytest.mark.soak
def test_a_browser_that_does_not_run(tmp_path: Path) -> None:
    """A program that is no browser is an error with the cure, and no success."""
    program = _program(tmp_path, "mine", "echo no library >&2; exit 127")
    command = [sys.executable, "-m", "docs.site.look", str(tmp_path), str(tmp_path / "pictures")]
    environment = {**os.environ, "CHROMIUM": str(program)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {program} does not run; CHROMIUM= names another: ")
    assert "no library" in done.stderr


@pytest.mark.soak
def test_the_site_is_built_without_a_warning_and_looks_right() -> None:
    """`make site-look` finds no fault, and the start page begins with code and lists the parts in their order."""
    done = subprocess.run(["make", "site-look"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'http-equiv="refresh" content="0; url=docs/index.html"' in (ROOT / "build/site/index.html").read_text()
    start = (ROOT / "build/site/docs/index.html").read_text(encoding="utf-8")
    article = start[start.index("<article") : start.index("</article>")]
    parts = ["forbear[httpx,cli]", "explain.svg", "Start here", "Your client", "How to", "Reference", "Explanation"]
    places = [article.index(part) for part in parts]
    assert places == sorted(places)
    captions = re.findall(r'<span class="caption-text">([^<]+)', start)
    assert captions == ["Start here", "Your client", "How to", "Reference", "Explanation"]
    for name in ("index-wide-light", "index-narrow-dark", "contents-narrow-light", "search-tenacity"):
        assert (ROOT / f"build/site-look/{name}.png").stat().st_size > 10_000


def test_twenty_questions() -> None:
    """Newcomers have at least twenty, and each has a page that exists."""
    assert len(QUESTIONS) >= 20
    assert [page for page in QUESTIONS.values() if not (ROOT / page).with_suffix(".md").is_file()] == []
