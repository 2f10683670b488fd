"""Read entries from an XML body that is not trusted: a document type, and so entities to expand, is refused.

Time and memory are linear in the body. A body of more than MAX_BODY bytes is not read.
"""

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from forbear.http.preconditions import MAX_BODY

_DEEPEST = 32
_LONGEST_TEXT = 4096


class _Refused(Exception):
    """The body is not in the expected form: too deep, with too long a text, or with a document type."""


class _Entries:
    """The texts of the elements called `element` in each `entry` of an XML body, by the handlers of a parser."""

    def __init__(self, entry: str, element: str) -> None:
        self.texts: list[list[str]] = []
        self._path = (entry, element)
        self._open: list[str] = []  # below the root
        self._depth = 0

    def start(self, name: str, _: Any) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Refused
        if self._depth > 1:
            self._open.append(name.rpartition(":")[2])
        if self._depth == 2 and self._open[0] == self._path[0]:
            self.texts.append([])
        elif self._is_inside():
            self.texts[-1].append("")

    def end(self, _: str) -> None:
        self._depth -= 1
        if self._open:
            self._open.pop()

    def text(self, data: str) -> None:
        if self._is_inside():
            self.texts[-1][-1] += data
            if len(self.texts[-1][-1]) > _LONGEST_TEXT:  # adding small pieces one by one would take quadratic time
                raise _Refused

    def refuse(self, *_: Any) -> None:
        raise _Refused

    def _is_inside(self) -> bool:
        return self._depth == 3 and (self._open[0], self._open[1]) == self._path


def has_in_every_entry(body: bytes | None, entry: str, element: str, valid: Callable[[object], bool]) -> bool:
    """Return whether all entries below the root, at least one, have one child `element` each, with a valid text."""
    if body is None or len(body) > MAX_BODY:
        return False
    entries = _Entries(entry, element)
    parser = expat.ParserCreate()
    parser.StartElementHandler = entries.start
    parser.EndElementHandler = entries.end
    parser.CharacterDataHandler = entries.text
    parser.StartDoctypeDeclHandler = entries.refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, _Refused, ValueError, LookupError):
        return False
    return bool(entries.texts) and all(len(texts) == 1 and valid(texts[0].strip()) for texts in entries.texts)
