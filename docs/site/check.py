"""Check a built site as a browser without a network would meet it: links, anchors, resources, search."""

import re
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

START = "docs/index.html"
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
_STYLES = {"stylesheet", "preload", "icon", "preconnect", "dns-prefetch", "modulepreload"}
_REMOTE_STYLE = re.compile(r"""(?:@import\s+|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """The links, the anchors and the resources of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and _STYLES & set(values.get("rel", "").split()):
            self.resources.append(values["href"])
        elif values.get(_LOADED.get(tag, "")):
            self.resources.append(values[_LOADED[tag]])


class Site:
    """The pages of a built site, by their path below its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, _Page]:
        """All pages, parsed."""
        files = sorted(self.folder.rglob("*.html"))
        return {file.relative_to(self.folder).as_posix(): _Page(file) for file in files}

    def lacks(self, page: str, link: str) -> str | None:
        """Return what is missing if `link` on `page` leads nowhere, None if it leads somewhere or to another site."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        target = (self.folder / page).parent / unquote(parts.path) if parts.path else self.folder / page
        target = target.resolve()
        if not target.is_relative_to(self.folder.resolve()) or not target.is_file():
            return "no such file"
        name = target.relative_to(self.folder.resolve()).as_posix()
        if parts.fragment and name in self.pages and unquote(parts.fragment) not in self.pages[name].anchors:
            return "no such anchor"
        return None


def problems(folder: Path) -> Iterator[str]:
    """Yield a line of text for each thing that is wrong with the site in a folder."""
    site = Site(folder)
    if START not in site.pages:
        yield f"{folder}: no start page {START}"
        return
    for name, page in site.pages.items():
        for link in (*page.links, *page.resources):
            if missing := site.lacks(name, link):
                yield f"{name}: {link}: {missing}"
        yield from (f"{name}: {link}: from another site" for link in page.resources if _is_remote(link))
    for style in sorted(folder.rglob("*.css")):
        for link in _REMOTE_STYLE.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(folder)}: {link}: from another site"
    yield from _search(folder, site)


def _is_remote(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in {"http", "https"}


def _search(folder: Path, site: Site) -> Iterator[str]:
    """Yield what keeps the search from working without a server: a file:// page loads an index only as a script."""
    index = folder / "searchindex.js"
    if not index.is_file():
        yield "searchindex.js: no such file"
        return
    text = index.read_text(encoding="utf-8")
    if not text.startswith("Search.setIndex("):
        yield "searchindex.js: it must call Search.setIndex"
    if not any(Path(link).name.startswith("searchindex.js") for link in _scripts(site)):
        yield "search.html: it does not load searchindex.js"
    yield from (
        f"searchindex.js: {name} is not in it"
        for name in site.pages
        if name.startswith("docs/") and f'"{name.removesuffix(".html")}"' not in text
    )


def _scripts(site: Site) -> list[str]:
    return (
        [link.partition("?")[0] for link in site.pages["search.html"].resources] if "search.html" in site.pages else []
    )
