"""Reading entries off an XML body without trusting it: no document type, so no entities to expand. It knows no API."""

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from forbear.http.preconditions import MAX_BODY


class _Refused(Exception):
    """The body is not what it should be."""


class _Entries:
    """The texts of one element in each entry of a body; namespaces are left out of account."""

    def __init__(self, entry: str, element: str) -> None:
        self.found: list[list[str]] = []
        self._entry = entry
        self._element = element
        self._open: list[str] = []

    def start(self, name: str, _: Any) -> None:
        self._open.append(name.rpartition(":")[2])
        if self._open[1:] == [self._entry]:
            self.found.append([])
        elif self._open[1:] == [self._entry, self._element]:
            self.found[-1].append("")

    def end(self, _: str) -> None:
        self._open.pop()

    def text(self, data: str) -> None:
        if self._open[1:] == [self._entry, self._element]:
            self.found[-1][-1] += data

    def refuse(self, *_: Any) -> None:
        raise _Refused


def every(body: bytes | None, entry: str, element: str, valid: Callable[[object], bool]) -> bool:
    """Whether `body` is XML in which every `entry` below the root (and there is one) has one `element` that is valid.

    A body that is not at hand, too large, broken or declares a document type has none.
    """
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
    return bool(entries.found) and all(len(texts) == 1 and valid(texts[0].strip()) for texts in entries.found)
