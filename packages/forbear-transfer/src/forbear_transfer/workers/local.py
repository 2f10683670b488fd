"""The local side of items: the folders that files need, and files that are deleted or get another time or mode."""

import errno
import os
import sys
import time
from contextlib import suppress
from itertools import islice

from forbear_transfer.errors import TargetChanged, TransferError, unwritable, why_not
from forbear_transfer.files import FileIdentity, OpenFolder, check_listed, folder_below, real_below

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_MOST_READ = 1000
"""The names in a folder among which parts are looked for at once. Among more, each download looks for its own."""


class Folders:
    """Makes the local folders of files, and remembers them, so that each is made and checked once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], tuple[tuple[int, int], bool]] = {}

    def prepare(self, path: str, root: str | None) -> bool:
        """Make the folder of the file `path`, and the missing ones above it; UnsafeName if a link leads out of `root`.

        If `root` is None, no link is checked. A folder that is remembered, and has not been replaced since, is skipped.
        TransferError if it cannot be made. Return whether the folder may have parts that earlier downloads left.
        """
        folder = os.path.dirname(path)
        known = self._known.get((folder, root))
        if known is None or known[0] != _identify(folder):  # a link may have replaced it
            if root is not None:
                _make(root)
                real_below(root, folder)
            _make(folder)
            known = self._known[folder, root] = _identify(folder), _may_have_parts(folder)
        return known[1]


def remove(path: str, root: str | None, listed: FileIdentity | None = None) -> None:
    """Remove a file, and its folders below `root` that are empty then. It is no error if the file is gone already.

    A path that ends with a separator is that of an empty folder. If `root` is None, only the file is removed.
    UnsafeName if a symbolic link leads out of `root`. TargetChanged if the file is not the version that was `listed`
    (None: any), or the folder is not empty any more. TransferError if it cannot be deleted.
    """
    folder, name = os.path.split(path.rstrip(os.sep))
    try:
        with suppress(FileNotFoundError), OpenFolder(folder) if root is None else folder_below(root, folder) as opened:
            if path.endswith(os.sep):
                opened.rmdir(name)
            elif (status := opened.stat_listed(name)) is not None or listed is None:
                check_listed(path, status, listed, "deleted")
                opened.unlink(name)
    except OSError as error:
        if error.errno in _NOT_EMPTY:
            raise TargetChanged(f"{path} is not empty any more, and is not deleted", "run it again") from error
        raise unwritable(path, error, verb="delete") from error
    with suppress(OSError):  # stops at the first folder that is not empty
        while root is not None and len(folder) > len(root.rstrip(os.sep)):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def touch(
    path: str, root: str | None, mtime: float | None, listed: FileIdentity | None = None, *, mode: int | None = None
) -> None:
    """Set the modification time of a file, in epoch seconds, with its access time to now, and its mode, if not None.

    A symbolic link is not followed. UnsafeName if the file's folder does not lie below `root` (None: anywhere is
    right), TargetChanged if the file is not the version that was `listed`, TransferError if they cannot be set.
    """
    folder, name = os.path.split(path)
    try:
        with OpenFolder(folder) if root is None else folder_below(root, folder) as opened:
            check_listed(path, opened.stat_listed(name), listed, "given another time or mode")
            if mtime is not None:
                opened.utime(name, (time.time(), mtime))
            if mode is not None:
                _set_mode(opened, name, mode)
    except OSError as error:
        raise unwritable(path, error, verb="set the time or mode of", named=False) from error


def _set_mode(folder: OpenFolder, name: str, mode: int) -> None:
    """Set the permissions of a file in a folder; OSError for a symbolic link, except on Windows."""
    if sys.platform == "win32":
        os.chmod(folder.path_of(name), mode)
        return
    try:
        descriptor = folder.open(name, os.O_RDONLY)
    except PermissionError:  # the owner may change what nobody can read
        folder.chmod(name, mode)
        return
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


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


def _may_have_parts(folder: str) -> bool:
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _MOST_READ + 1)]
    except OSError:
        return True
    return len(names) > _MOST_READ or any(name.endswith(".forbear") for name in names)


def _identify(folder: str) -> tuple[int, int]:
    try:
        status = os.stat(folder or os.curdir)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
