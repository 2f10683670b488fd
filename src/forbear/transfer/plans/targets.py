"""Goal: where copies go, and which name each has there. It knows no source, and writes nothing."""

import os
import sys
from dataclasses import dataclass, replace

from forbear.transfer.errors import UnsafeName
from forbear.transfer.items import Action, Item
from forbear.transfer.objects import Url, is_cloud


@dataclass(frozen=True, slots=True)
class Goal:
    """Where copies go: `at` is an address in the cloud, a path, or "-"; `folder` is whether they go below it.

    `root` is the folder that the user named, where `at` is one below it.
    """

    at: Url | str
    folder: bool
    root: str | None = None

    def below(self, name: str) -> "Goal":
        """The folder of that name in this folder; the folder itself if it is empty. Raises UnsafeName."""
        if not name:
            return Goal(self.at, folder=True)
        if isinstance(self.at, Url):
            return Goal(Url(self.at.bucket, f"{self.at.prefix}{name}/"), folder=True)
        return Goal(os.path.join(self.at, relative_path(name)), folder=True, root=self.root or self.at)

    def take(self, item: Item, name: str) -> Item:
        """The item with a target of that name in this folder; a refused one where it can have none."""
        try:
            if isinstance(self.at, Url):
                key = f"{self.at.prefix}{name}"
                target = Url(self.at.bucket, key if isinstance(item.source, Url) else object_name(key))
                return unless_same(replace(item, target=target))
            return replace(item, target=os.path.join(self.at, relative_path(name)), root=self.root or self.at)
        except UnsafeName as error:
            return item.refused(error)


def unless_same(item: Item) -> Item:
    """Return the item, refused where it would copy an object onto itself."""
    return item.refused("source and target are the same") if item.source == item.target else item


def names_folder(target: str) -> bool:
    """Whether a target is a folder as it is written, or by what is on disk."""
    if is_cloud(target):
        name = Url.parse(target).name
        return not name or name.endswith("/")
    return target.endswith(("/", os.sep)) or os.path.isdir(target)


_LONGEST = 1024
_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}
_FORBIDDEN = frozenset('<>:"\\|?*')
_CURE = "copy it by itself, to a file name of your choice"


def relative_path(name: str, *, windows: bool = sys.platform == "win32") -> str:
    """The path that an object has below the target folder; `name` is what follows the name of the source folder."""
    segments = name.split("/")
    for segment in segments:
        fault = _fault(segment) or (_windows_fault(segment) if windows else None)
        if fault is not None:
            raise UnsafeName(f"no file below the target can have the name of the object {name!r}: {fault}", _CURE)
    try:
        name.encode()
        os.fsencode(name)
    except UnicodeEncodeError:
        raise UnsafeName(
            f"no file can have the name of the object {name!r}: it cannot be written in {sys.getfilesystemencoding()}",
            _CURE,
        ) from None
    return name.replace("/", os.sep)


def object_name(path: str) -> str:
    """The name of the object for a path with the separators of this system, below the source folder or by itself."""
    name = path if os.sep == "/" else path.replace(os.sep, "/")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UnsafeName(
            f"no object can have the name of the file {name!r}: it is not valid Unicode", "rename the file"
        ) from None
    if size > _LONGEST:
        raise UnsafeName(f"no object can have a name of more than {_LONGEST} bytes: {name!r}", "rename the file")
    if "\n" in name or "\r" in name:
        raise UnsafeName(f"no object can have a name with a line end: {name!r}", "rename the file")
    if name in {"", ".", ".."}:
        raise UnsafeName(f"no object can have the name {name!r}", "name the target")
    return name


def _fault(segment: str) -> str | None:
    if segment in {".", ".."}:
        return f"its part {segment!r} leads to another folder"
    if not segment:
        return "it has an empty part, for it begins with a slash or has two in a row"
    if "\0" in segment:
        return "it has a zero character"
    return None


def _windows_fault(segment: str) -> str | None:
    if segment.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return f"{segment!r} is a device"
    if segment[-1] in ". ":
        return "a part of it ends with a dot or a space"
    wrong = next((character for character in segment if character in _FORBIDDEN or character < " "), None)
    return None if wrong is None else f"it has the character {wrong!r}"


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
