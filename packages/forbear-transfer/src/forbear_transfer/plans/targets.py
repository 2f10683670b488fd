"""The targets of copies: the folder or file that they go to, the name that each gets there, and names that clash.

Objects get the names of files with slashes as separators, and files get the names of objects. A name that could lead
out of the target folder, or that no file or object can have, raises UnsafeName.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from forbear.adapters import dataclass, replace
from forbear_transfer.encryption import DEFAULT_ENCRYPTION, ObjectEncryption
from forbear_transfer.errors import TransferError, UnsafeName
from forbear_transfer.items import Action, Item
from forbear_transfer.metadata import NO_METADATA, ObjectMetadata
from forbear_transfer.objects import Url, is_cloud

_LONGEST = 1024
_MOST_NAMES = 100
_RESERVED = ".well-known/acme-challenge/"
_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}
_FORBIDDEN = frozenset('<>:"\\|?*')
_CURE = "copy it by itself, to a file name of your choice"


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The target of a copy: `at` is an address in the cloud, a path, or "-"; `folder` says that copies go below it.

    `root` is the local folder that the user named, if `at` lies below it. An object may be copied onto itself, to give
    it the key for new objects in `encryption`, or the settings in `metadata`.
    """

    at: Url | str
    folder: bool
    root: str | None = None
    encryption: ObjectEncryption = DEFAULT_ENCRYPTION
    metadata: ObjectMetadata | None = None

    @property
    def changes(self) -> bool:
        """True if an object that is copied onto itself may change."""
        return self.encryption.encrypts or self.metadata is not None

    def below(self, name: str) -> "CopyTarget":
        """Return this folder, or the one of that `name` in it; UnsafeName if no local folder can have that name."""
        if not name:
            return replace(self, folder=True, root=None)
        if isinstance(self.at, Url):
            return replace(self, at=Url(self.at.bucket, f"{self.at.prefix}{name}/"), folder=True)
        return replace(self, at=os.path.join(self.at, relative_path(name)), folder=True, root=self.root or self.at)

    def with_target(self, item: Item, name: str) -> Item:
        """Return a new item with the target `name` in this folder; refused if nothing can have that name."""
        try:
            if isinstance(self.at, Url):
                key = f"{self.at.prefix}{name}"
                if not isinstance(item.source, Url):
                    item.target = Url(self.at.bucket, object_name(key))
                    return item
                item.target = Url(self.at.bucket, key)
                return self.refuse_same(item)
            item.target, item.root = _find_start(self.at) + relative_path(name), self.root or self.at
            return item
        except UnsafeName as error:
            return item.refuse(error)

    def refuse_same(self, item: Item) -> Item:
        """Return the item, changed if its source and its target are equal.

        It is refused if there is nothing to change, and skipped if the listing says that the object has its key and
        settings already. It only updates the metadata if the contents need not be written anew, for another key or
        storage class.
        """
        if item.source != item.target:
            return item
        if not self.changes:
            return item.refuse(TransferError("source and target are the same", "choose another target"))
        there, chosen = item.object, self.metadata or NO_METADATA
        if there is None:
            return item
        has_key = not self.encryption.encrypts or self.encryption.is_of(there)
        if has_key and chosen.is_of(there):
            return item.skip("it has this key already" if self.metadata is None else "it has these settings already")
        moves = not has_key or chosen.storage_class not in (None, there.storage_class)
        return item if moves else replace(item, action=Action.UPDATE, size=0)


@lru_cache(64)
def _find_start(folder: str) -> str:
    """Return how the paths of the files in a folder begin; it is the same for many files."""
    return os.path.join(folder, "")


def names_folder(target: str) -> bool:
    """Return whether a target is a folder, by its name or on disk; the cloud is not queried."""
    if is_cloud(target):
        name = Url.parse(target, versions=False).name
        return not name or name.endswith("/")
    return target.endswith(("/", os.sep)) or os.path.isdir(target)


def relative_path(name: str, *, windows: bool = sys.platform == "win32") -> str:
    """Return the path, below the target folder, of the file for an object; its separators are those of this system.

    `name` is the object's name below the source folder. UnsafeName if it leads elsewhere, has an empty part, or no file
    can have it, on `windows` also for device names and other forbidden names.
    """
    segments = name.split("/")
    for segment in segments:
        fault = _find_fault(segment) or (_find_windows_fault(segment) if windows else None)
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
    """Return the name of the object for a path that uses the separators of this system: it has slashes instead.

    UnsafeName if Cloud Storage has no such name: if it is empty, ".", ".." or not Unicode, has a line end, begins with
    .well-known/acme-challenge/, or has more than 1024 bytes.
    """
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
    if name.startswith(_RESERVED):
        raise UnsafeName(f"no object can have a name that begins with {_RESERVED}: {name!r}", "rename the file")
    if name in {"", ".", ".."}:
        raise UnsafeName(f"no object can have the name {name!r}", "name the target")
    return name


def _find_fault(segment: str) -> str | None:
    if segment in {".", ".."}:
        return f"its part {segment!r} leads to another folder"
    if not segment:
        return "it has an empty part, because it begins with a slash, ends with one, or has two in a row"
    if "\0" in segment:
        return "it has a zero character"
    return None


def _find_windows_fault(segment: str) -> str | None:
    if segment.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return f"{segment!r} is a device"
    if segment[-1] in ". ":
        return "a part of it ends with a dot or a space"
    wrong = next((character for character in segment if character in _FORBIDDEN or character < " "), None)
    return None if wrong is None else f"it has the character {wrong!r}"


class Clashes:
    """Refuses objects whose files would clash in a folder on disk, by nesting, or as the disk ignores case."""

    def __init__(self, folder: str) -> None:
        self._nesting = Nesting()
        self._seen: dict[str, str] | None = {} if is_case_blind(folder) else None

    def check(self, item: Item, name: str) -> Item:
        """Return the item, refused if its name below the folder clashes with an earlier one; names come in order."""
        if item.action is not Action.COPY:
            return item
        parent = self._nesting.parent(name)
        if parent is not None:
            return item.refuse(f"{parent!r} is an object, too, and its file cannot be a folder as well")
        other = name if self._seen is None else self._seen.setdefault(fold_name(name), name)
        if other != name:
            ignored = "upper and lower case" if other.casefold() == name.casefold() else "how accents are encoded"
            return item.refuse(f"its file would be that of {other!r}: this disk ignores {ignored}")
        return item


def fold_name(name: str) -> str:
    """Return what is the same for all names that are one file on a disk which ignores case.

    Except on Windows, such a disk also takes an accented letter for the letter with an accent after it.
    """
    if name.isascii() or sys.platform == "win32":
        return name.casefold()
    from unicodedata import normalize  # few names need it

    return normalize("NFC", normalize("NFD", name).casefold())


class Nesting:
    """Finds objects whose names lie below another object, in a listing by name: a file cannot also be a folder."""

    def __init__(self) -> None:
        self._above: list[str] = []

    def parent(self, name: str, *, keeps: bool = True) -> str | None:
        """Return the earlier name that this one lies below (`name` + "/"), None if there is none.

        Call it with each name of the sorted listing; with `keeps=False` no later name lies below this one. Of several
        such names, the outermost is returned. A name that ends with "/" is never one.
        """
        while self._above and not name.startswith(self._above[-1]):
            self._above.pop()
        parent = next((above for above in self._above if name.startswith("/", len(above))), None)
        if keeps and parent is None and not name.endswith("/"):
            self._above.append(name)
        return parent


def is_case_blind(folder: str) -> bool:
    """Return whether the disk of a folder ignores the case of names. The folder need not exist yet.

    A name on that disk is looked up in the other case: one in the nearest folder that exists, or that of this folder or
    of one above it. On a disk without such names, a file is made, and deleted. If it cannot be made, the system
    decides: True for Windows and macOS.
    """
    path = os.path.realpath(folder)
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    told = next((blind for known in _list_names(path) if (blind := _compare_cases(known)) is not None), None)
    try:
        return _make_probe(path) if told is None else told
    except OSError:
        return sys.platform in {"win32", "darwin"}


def _list_names(folder: str) -> Iterator[str]:
    """Yield paths on the disk of a folder: of some files in it, then its own and those of the folders above it."""
    with suppress(OSError), os.scandir(folder) as entries:
        yield from [entry.path for entry in islice(entries, _MOST_NAMES)]
    above = os.path.dirname(folder)
    with suppress(OSError):
        while above != folder and os.lstat(above).st_dev == os.lstat(folder).st_dev:  # up to where it is mounted
            yield folder
            folder, above = above, os.path.dirname(above)


def _compare_cases(path: str) -> bool | None:
    """Return whether a path leads to the same file with its last name in the other case; None if nobody can tell.

    Another name of a file (a hard link) does not count, nor a file that is replaced meanwhile.
    """
    folder, name = os.path.split(path)
    other = os.path.join(folder, name.swapcase())
    if not name.isascii() or other == path:
        return None
    try:
        before = os.lstat(path)
        there = os.lstat(other) if os.path.lexists(other) else None
        if not os.path.samestat(before, os.lstat(path)):
            return None
    except OSError:
        return None
    if there is None:
        return False
    is_one = stat.S_ISDIR(before.st_mode) or before.st_nlink <= 1
    return True if is_one and os.path.samestat(before, there) else None


def _make_probe(folder: str) -> bool:
    """Make a file, return whether it has a name in capitals, too, and delete it; OSError if it cannot be made."""
    name = f".forbear-{os.urandom(8).hex()}.tmp"
    path = os.path.join(folder, name)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        return os.path.lexists(os.path.join(folder, name.upper()))
    finally:
        os.unlink(path)
