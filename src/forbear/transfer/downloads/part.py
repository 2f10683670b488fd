"""Parts: the file beside a place that takes the bytes of a download until all of them are right. It sends nothing."""

import os
import shutil
import sys
import time
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self

from forbear.transfer.downloads.place import Place, exists
from forbear.transfer.errors import unwritable
from forbear.transfer.files import OpenFolder, open_locked

_CREATE = os.O_RDWR | os.O_CREAT


class Part:
    """A part file: private and beside the place, to be put there once it is right; deleted at exit unless `keep`.

    One to be kept is locked, for the lock of the state is not enough: others may keep their states elsewhere, as
    another user or on another machine. Each of two that write to one file would take it for right, and be wrong.
    """

    def __init__(self, place: Place, name: str, *, keep: bool = False) -> None:
        self.keep = keep
        self._name = name
        self._place = place
        self._folder = place.folder
        self._there = False
        try:
            if keep:
                self.descriptor = open_locked(self._folder, name, _CREATE, f"download to {place.path}", needed=False)
            else:
                self.descriptor = self._folder.open(name, _CREATE | os.O_EXCL)
        except (OSError, ValueError) as error:
            denied = keep and isinstance(error, PermissionError) and place.has_file(name)  # that file, not its folder
            raise unwritable(self.path if denied else place.path, error, named=not denied) from error

    @classmethod
    def fresh(cls, place: Place) -> Self:
        """One that no other process or task has."""
        return cls(place, place.beside(os.urandom(6).hex()))

    @classmethod
    def kept(cls, place: Place, *key: str) -> Self:
        """The one that an earlier transfer of the same `key` left, or an empty one."""
        return cls(place, place.part_name(*key), keep=True)

    @property
    def path(self) -> str:
        """The path of the part file itself, for errors that only its deletion mends."""
        return self._folder.path_of(self._name)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self.descriptor).st_size

    @property
    def free(self) -> int | None:
        """How many bytes there is room for on its disk; None where that cannot be told."""
        if sys.platform == "win32":
            return shutil.disk_usage(self._folder.path or os.curdir).free
        found = os.fstatvfs(self.descriptor)
        return found.f_bfree * found.f_frsize if found.f_blocks else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if sys.platform == "win32":  # there an open file can neither be deleted nor renamed
            self._close()
        if not self._there and not self.keep:
            with suppress(OSError):
                self._folder.unlink(self._name)
        self._close()

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def publish(self, mtime: float | None, *, no_clobber: bool) -> None:
        """Put the file in its place, at once; TargetExists where `no_clobber` and there is something now."""
        place = self._place
        try:
            if mtime is not None and os.utime in os.supports_fd:
                os.utime(self.descriptor, (time.time(), mtime))
            if sys.platform != "win32":
                os.fchmod(self.descriptor, _mode() if place.mode is None else place.mode)
            else:
                self._close()
            if mtime is not None and os.utime not in os.supports_fd:
                os.utime(self._folder.path_of(self._name), (time.time(), mtime))
            if no_clobber:
                _rename_new(self._folder, self._name, place.name)
            else:
                self._folder.rename(self._name, place.name)
        except FileExistsError as error:
            raise exists(place.path) from error
        except (OSError, OverflowError) as error:
            raise unwritable(place.path, error) from error
        self._there = True
        self._close()  # and not before: the lock must last until it has its name


def _rename_new(folder: OpenFolder, name: str, target: str) -> None:
    """Rename a file, but not over another one."""
    if sys.platform == "win32":
        os.rename(folder.path_of(name), folder.path_of(target))
        return
    try:
        folder.link(name, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an empty file claims the name
        os.close(folder.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        folder.rename(name, target)
    else:  # a process that dies here leaves one file with both names: `open_locked` does not write to such a one
        folder.unlink(name)


@cache
def _mode() -> int:
    """The mode of new files: it can only be asked for by setting it, so for an instant they are more private."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
