"""Folders: makes those that files are to be written to, and removes what is left over; never beyond the target."""

import os
import time
from contextlib import suppress

from forbear.transfer.errors import TransferError, UnsafeName
from forbear.transfer.files import Folder, folder_below, unwritable, why_not

_CURE = "remove the symbolic link, or copy to where it leads"


class Folders:
    """The folders that are known to be there."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], tuple[int, int]] = {}

    def prepare(self, path: str, root: str | None) -> None:
        """Make the folder of the file `path`; UnsafeName where a symbolic link leads out of `root`."""
        folder = os.path.dirname(path)
        known = self._known.get((folder, root))
        if known is None or known != _identity(folder):  # a link may have taken its place meanwhile
            if root is not None:
                _make(root)
                _stay_inside(folder, root)
            _make(folder)
            self._known[folder, root] = _identity(folder)


def remove(path: str, root: str | None) -> None:
    """Remove a file, and the folders below `root` that become empty by it; that it is gone already is no error."""
    folder, name = os.path.split(path)
    try:
        with suppress(FileNotFoundError), Folder(folder) if root is None else folder_below(root, folder) as opened:
            opened.unlink(name)
    except OSError as error:
        raise unwritable(path, error, verb="delete") from error
    with suppress(OSError):  # from the first that is not empty
        while root is not None and len(folder) > len(root.rstrip(os.sep)):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def touch(path: str, root: str | None, mtime: float) -> None:
    """Set the modification time of a file, in epoch seconds."""
    if root is not None:
        _stay_inside(os.path.dirname(path), root)
    try:
        os.utime(path, (time.time(), mtime), follow_symlinks=False)
    except OSError as error:
        raise unwritable(path, error, verb="set the time of", named=False) from error


def _make(folder: str) -> None:
    try:
        os.makedirs(folder or os.curdir, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        why = why_not(os.path.join(folder, os.curdir), error)
        raise TransferError(
            f"cannot make the folder {folder}: {why}", "move what is in the way, or choose another target"
        ) from error
    except OSError as error:
        raise unwritable(folder, error, verb="make the folder") from error


def _identity(folder: str) -> tuple[int, int]:
    try:
        seen = os.stat(folder or os.curdir)
    except OSError:
        return 0, 0
    return seen.st_dev, seen.st_ino


def _stay_inside(path: str, root: str) -> None:
    inside, real = os.path.realpath(root), os.path.realpath(path)
    if real != inside and not real.startswith(os.path.join(inside, "")):
        raise UnsafeName(f"{path} leads out of the target, to {real}", _CURE)
