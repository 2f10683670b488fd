"""Lines of Markdown: tables, lists and text that is broken where it gets long. It knows nothing of what it writes."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 150
"""Where text is broken; tables cannot be."""

_GLUE = "\0"  # a space at which no line is broken


def text(*paragraphs: str) -> Iterator[str]:
    """Paragraphs, each followed by an empty line."""
    for paragraph in paragraphs:
        yield from (*_wrapped(" ".join(paragraph.split())), "")


def bullets(items: Iterable[str]) -> Iterator[str]:
    """A list, followed by an empty line; nothing for no items."""
    lines = [line for item in items for line in _wrapped(f"- {item}", "  ")]
    yield from (*lines, "") if lines else ()


def _wrapped(line: str, indent: str = "") -> list[str]:
    """The lines of a text; what is code is not broken."""
    glued = re.sub("`[^`]*`", lambda found: found[0].replace(" ", _GLUE), line)
    lines = textwrap.wrap(glued, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, followed by an empty line, without the columns in which nothing stands."""
    listed = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    shown = [index for index in range(len(headers)) if any(row[index] for row in listed)]
    for row in (headers, ["---"] * len(headers), *listed):
        yield f"| {' | '.join(row[index] for index in shown)} |"
    yield ""


def code(words: str) -> str:
    """Words as they are typed."""
    return f"`{words}`"


def codes(words: Iterable[str], joint: str = ", ") -> str:
    """The same for each, joined."""
    return joint.join(map(code, words))
