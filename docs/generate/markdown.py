"""Make lines of Markdown: tables, lists, and paragraphs wrapped at `WIDTH`."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 150
"""The width at which text is wrapped; tables cannot be wrapped."""

_GLUE = "\0"  # stands for a space at which a line must not be wrapped


def text(*paragraphs: str) -> Iterator[str]:
    """Yield the lines of paragraphs, with an empty line after each."""
    for paragraph in paragraphs:
        yield from (*_wrapped(" ".join(paragraph.split())), "")


def bullets(items: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a list and an empty line, or nothing if there are no items."""
    lines = [line for item in items for line in _wrapped(f"- {item}", "  ")]
    yield from (*lines, "") if lines else ()


def _wrapped(line: str, indent: str = "") -> list[str]:
    """Wrap a text, but not inside of inline code."""
    glued = re.sub("`[^`]*`", lambda match: match[0].replace(" ", _GLUE), line)
    lines = textwrap.wrap(glued, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table and an empty line; columns that are empty in all rows are left out."""
    listed = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    shown = [index for index in range(len(headers)) if any(row[index] for row in listed)]
    for row in (headers, ["---"] * len(headers), *listed):
        yield f"| {' | '.join(row[index] for index in shown)} |"
    yield ""


def code(words: str) -> str:
    """Return words as inline code."""
    return f"`{words}`"


def codes(words: Iterable[str], joint: str = ", ") -> str:
    """Return each of the words as inline code, joined by `joint`."""
    return joint.join(map(code, words))


def between(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """Return the text of a page with `lines` in place of what stands between the lines `begin` and `end`.

    Raises ValueError if the page has no place for them.
    """
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"the page must have the lines {begin!r} and {end!r}, got a page without one of them")
    return "\n".join([f"{before}{begin}", "", *lines, f"{end}{after}"])
