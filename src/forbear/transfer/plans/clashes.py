"""Clashes: objects whose files cannot be beside those of others, noticed in a listing by name."""

import os
import sys

from forbear.transfer.items import Action, Item


class Clashes:
    """Refuses what clashes with what came before it, in copies to a folder on disk."""

    def __init__(self, folder: str) -> None:
        self._nesting = Nesting()
        self._seen: dict[str, str] | None = {} if is_case_blind(folder) else None

    def checked(self, item: Item, name: str) -> Item:
        """The item, or a refused one; `name` is the one that it has below the folder."""
        if item.action is not Action.COPY:
            return item
        parent = self._nesting.parent(name)
        if parent is not None:
            return item.refused(f"{parent!r} is an object, too, and its file cannot be a folder as well")
        other = name if self._seen is None else self._seen.setdefault(name.casefold(), name)
        if other != name:
            return item.refused(f"its file would be that of {other!r}: capitals do not count on this disk")
        return item


class Nesting:
    """Notices objects below another object, in a listing by name: a file cannot be a folder as well."""

    def __init__(self) -> None:
        self._above: list[str] = []

    def parent(self, name: str) -> str | None:
        """See the next name; returns that of an object that it lies below, None where there is none."""
        while self._above and not name.startswith(self._above[-1]):
            self._above.pop()
        found = next((above for above in self._above if name.startswith("/", len(above))), None)
        if found is None and not name.endswith("/"):
            self._above.append(name)
        return found


def is_case_blind(folder: str) -> bool:
    """Whether the disk that a folder is on, or will be, takes capitals for small letters."""
    path = os.path.abspath(folder)
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    other = path.swapcase()
    if other == path:
        return sys.platform in {"win32", "darwin"}
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
