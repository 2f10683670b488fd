"""Names: which file an object's name stands for, and the other way round. It asks neither the cloud nor the disk.

A name that could lead out of the target folder, or that no file or object can have, raises UnsafeName.
"""

import os
import sys

from forbear.transfer.errors import UnsafeName

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
