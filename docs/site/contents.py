"""Make the tables of contents of the site from the lists of links in the pages, so that nothing is listed twice."""

import re
from collections.abc import Iterator
from posixpath import normpath

HUBS = ("docs/index", "docs/reference/api/index")
"""The pages whose lists of links order the site."""

_LINK = re.compile(r"^- \[([^]]+)\]\(([^):#]+)\.md\)", re.MULTILINE)
_PART = re.compile(r"^## (.+)$", re.MULTILINE)


def listed(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each part of a page (its heading, "" before the first) with the titles and targets of its list items.

    A target is the path of a Markdown file without `.md`. Parts without such items are left out.
    """
    headings = ["", *_PART.findall(text)]
    for heading, part in zip(headings, re.split(_PART, text)[::2], strict=True):
        if links := _LINK.findall(part):
            yield heading, links


_ABSOLUTE = re.compile(
    r"https://(?:github\.com/[^/\s]+/[^/\s]+/blob|raw\.githubusercontent\.com/[^/\s]+/[^/\s]+)/main/"
)


def with_local_links(name: str, text: str) -> str:
    """Return the text of a page; links of README to the code host become links into the site."""
    return _ABSOLUTE.sub("", text) if name == "README" else text


_NOTE = re.compile(r"^`make reference` generates this page .+?\. Do not edit it by hand\.\s+", re.MULTILINE)
_TITLES = {"README": "# Overview of ", "docs/reference/api/forbear": "# API: "}


def for_readers(name: str, text: str) -> str:
    """Return the text of a page without its note to editors, and with a title that only one page of the site has."""
    title = next((title for start, title in _TITLES.items() if name.startswith(start)), "# ")
    return re.sub(_NOTE, "", text, count=1).replace("# ", title, 1)


def with_contents(name: str, text: str) -> str:
    """Return the text of a page; one of `HUBS` gets a hidden table of contents for each part that has links."""
    if name not in HUBS:
        return text
    trees = (
        "\n".join(
            ["```{toctree}", ":hidden:", *([f":caption: {heading}"] if heading else ()), "",
             *(f"{title} <{normpath(target)}>" for title, target in links), "```"]
        )
        for heading, links in listed(text)
    )  # fmt: skip
    return "\n\n".join([text, *trees]) + "\n"
