"""`python -m docs.site.look SITE PICTURES` looks at a built site in a real browser, from files and without a network.

Each page is seen in a wide and a narrow window, on a light and a dark ground; `look.js` says what is wrong with it.
"""

import base64
import csv
import os
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.site.browser import Browser, NoBrowserError, find
from docs.site.check import START, Site

WINDOWS = {"wide": (1280, 900), "narrow": (390, 844)}
THEMES = ("light", "dark")
PICTURES = (START, "docs/tutorial.html", "docs/why.html", "docs/migrate.html", "docs/reference/api/forbear.html")
"""The pages that pictures are taken of."""

ONE_SHEET = "docs/cheatsheet.html"
"""The page that people print."""

SEARCHES = {
    "retry_after": "docs/faq.html",
    "DEFAULT_RETRY_IF_GENERATION_SPECIFIED": "docs/google.html",
    "tenacity": "docs/migrate.html",
    "idempotency": "docs/vouching.html",
}
"""Words to search for, each with a page that must be among the results."""

with (Path(__file__).parent / "questions.csv").open(encoding="utf-8", newline="") as _file:
    QUESTIONS = {row["words"]: f"{row['page']}.html" for row in csv.DictReader(_file)}
"""The words that newcomers type, each with the page that must be among the first three."""

_LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")
_COLORS = """async (data) => {
  const picture = await createImageBitmap(await (await fetch(data)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  return new Set(new Uint32Array(canvas.getImageData(0, 0, picture.width, picture.height).data.buffer)).size;
}"""
_FOCUS = """() => {
  const style = getComputedStyle(document.activeElement);
  const name = document.activeElement.name || document.activeElement.getAttribute("href") || "the page";
  return [name, style.outlineStyle !== "none" && style.outlineWidth !== "0px"];
}"""
_TABS = 15  # how often Tab is pressed: the search and the first pages are near
_BLANK = 16  # letters alone have more shades at their edges
_PATIENCE = 5_000  # milliseconds, in which a menu has opened and a search has ended


def _playwright() -> Any:
    """Return the library that drives the browser; by name, for `make types` does without it."""
    return import_module("playwright.sync_api")


class Eyes:
    """A page of a browser that looks at the pages of one site; `wrong` takes what the browser itself complains of."""

    def __init__(self, page: Any, site: Path, pictures: Path) -> None:
        self.page = page
        self.site = site.resolve()
        self.pictures = pictures
        self._links = Site(self.site)
        self.wrong: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("requestfailed", self._failed)

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.wrong.append(f"{message.type} on the console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.wrong.append(f"asks the network for {request.url}")

    def _error(self, error: Any) -> None:
        self.wrong.append(f"error in a script: {error}")

    def _failed(self, request: Any) -> None:
        self.wrong.append(f"cannot be loaded: {request.url.removeprefix(self.site.as_uri() + '/')}")

    def open(self, name: str) -> None:
        """Open a page of the site."""
        self.wrong.clear()
        self.page.goto((self.site / name).as_uri())

    def views(self) -> Iterator[str]:
        """Show the open page in each window and on each ground, and yield what this view is called."""
        for window, (width, height) in WINDOWS.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for theme in THEMES:
                self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                yield f"{window}, {theme}"

    def look(self, name: str) -> Iterator[str]:
        """Open a page, and yield a line of text for each thing that is wrong with it."""
        self.open(name)
        seen: set[str] = set()
        for view in self.views():
            new = set(self.page.evaluate(_LOOK)) - seen
            seen |= new
            yield from (f"{name} ({view}): {text}" for text in sorted(new))
            if name in PICTURES and self.picture(f"{Path(name).stem}-{view.replace(', ', '-')}") < _BLANK:
                yield f"{name} ({view}): it looks blank"
        yield from (f"{name}: {text}" for text in self.wrong)

    def picture(self, name: str) -> int:
        """Write a picture of what the window shows, and return how many colors it has."""
        taken = self.page.screenshot(path=str(self.pictures / f"{name}.png"))
        return int(self.page.evaluate(_COLORS, "data:image/png;base64," + base64.b64encode(taken).decode()))

    def start(self) -> Iterator[str]:
        """Yield what a newcomer would miss in the first view of the start page: code, a way on, the contents."""
        self.open(START)
        for view in self.views():
            for what, selector in {
                "the first code block": "article pre",
                "a link to the tutorial": 'article a[href="tutorial.html"]',
            }.items():
                if not self._in_first_view(selector):
                    yield f"{START} ({view}): {what} is not in the first view"
            try:
                if "narrow" in view:
                    self.page.locator("header label[for=__navigation]").first.click(timeout=_PATIENCE)
                self.page.locator(".sidebar-tree a[href='tutorial.html']").click(trial=True, timeout=_PATIENCE)
            except _playwright().Error:
                yield f"{START} ({view}): the contents cannot be reached"
            if "narrow" in view:
                self.picture(f"contents-{view.replace(', ', '-')}")
                self.open(START)

    def keyboard(self) -> Iterator[str]:
        """Yield what cannot be reached on the start page by the keyboard alone, or without seeing where one is."""
        self.open(START)
        self.page.set_viewport_size(dict(zip(("width", "height"), WINDOWS["wide"], strict=True)))
        wanted = {"q": "the search", "tutorial.html": "the tutorial", "adopt.html": "the page on adoption"}
        for _ in range(_TABS):
            self.page.keyboard.press("Tab")
            name, is_marked = self.page.evaluate(_FOCUS)
            if not is_marked:
                yield f"{START}: nothing shows that the keyboard is at {name}"
            wanted.pop(name, None)
        yield from (f"{START}: the keyboard does not reach {what}" for what in wanted.values())

    def print(self, name: str) -> Iterator[str]:
        """Yield an error for each kind of paper of which the page needs more than one sheet."""
        self.open(name)
        for paper in ("A4", "Letter"):
            margin = dict.fromkeys(("top", "right", "bottom", "left"), "10mm")
            sheets = len(re.findall(rb"/Type\s*/Page\b", self.page.pdf(format=paper, margin=margin)))
            if sheets != 1:
                yield f"{name}: it needs {sheets} sheets of {paper}"

    def _in_first_view(self, selector: str) -> bool:
        first = self.page.locator(selector).first
        if not first.count() or not first.is_visible():
            return False
        box = first.bounding_box()
        return bool(box["y"] >= 0 and box["y"] + box["height"] <= self.page.viewport_size["height"])

    def search(self, words: str, page: str, *, first: int | None = None) -> Iterator[str]:
        """Type words into the search of the start page; yield an error unless `page` is found and all links lead on.

        With `first`, it must be among so many pages.
        """
        self.open(START)
        self.page.set_viewport_size(dict(zip(("width", "height"), WINDOWS["wide"], strict=True)))
        self.page.fill("input[name=q]", words)
        self.page.press("input[name=q]", "Enter")
        try:
            self.page.wait_for_selector("#search-results .search-summary:not(:empty)", timeout=_PATIENCE)
        except _playwright().Error:
            yield f"search for {words}: it does not end"
        yield from (f"search for {words}: {text}" for text in self.page.evaluate(_LOOK))
        links = [link.get_attribute("href") for link in self.page.locator("#search-results li > a").all()]
        for link in links:
            if missing := self._links.lacks("search.html", link):
                yield f"search for {words}: {link}: {missing}"
        if page not in [*dict.fromkeys(link.partition("#")[0] for link in links)][:first]:
            yield f"search for {words}: {page} is not among the {'first' if first else len(links)} results"
        self.picture(f"search-{words.replace(' ', '-')}")
        yield from (f"search for {words}: {text}" for text in self.wrong)


@contextmanager
def opened(browser: Browser, site: Path, pictures: Path) -> Generator[Eyes]:
    """Start a browser without a network, and yield its eyes for one site. Raise `NoBrowserError` if it does not run."""
    playwright = _playwright()
    pictures.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(
                executable_path=str(browser.program), env={**os.environ, **browser.environment}
            )
        except playwright.Error as error:
            raise NoBrowserError(f"{browser.program} does not run; CHROMIUM= names another: {error}") from None
        try:
            context = chromium.new_context(offline=True, service_workers="block")
            yield Eyes(context.new_page(), site, pictures)
        finally:
            chromium.close()


def problems(eyes: Eyes) -> Iterator[str]:
    """Look at every page of a site, at its start and at its search, and yield a line of text for each fault."""
    for file in sorted(eyes.site.rglob("*.html")):
        name = file.relative_to(eyes.site).as_posix()
        if name not in {"index.html", "search.html"}:  # one leads to the start page, the other is empty without words
            yield from eyes.look(name)
    yield from eyes.start()
    yield from eyes.keyboard()
    yield from eyes.print(ONE_SHEET)
    for words, page in SEARCHES.items():
        yield from eyes.search(words, page)
    for words, page in QUESTIONS.items():
        yield from eyes.search(words, page, first=3)


def main(arguments: list[str]) -> int:
    """Look at the site in the first folder, write pictures into the second, and return 1 if something is wrong."""
    site, pictures = map(Path, arguments)
    try:
        with opened(find(pictures.with_name("browser")), site, pictures) as eyes:
            wrong = [*problems(eyes)]
    except NoBrowserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for problem in wrong:
        sys.stderr.write(f"error: {problem}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
