"""Places: the local file that a download is for, and the part file beside it until all is right. It sends nothing."""

import errno
import hashlib
import os
import shutil
import stat
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import BinaryIO, Self

from forbear.transfer.errors import TargetExists, TransferError
from forbear.transfer.files import StrPath, unwritable

SUFFIX = ".forbear"
_LONGEST = 100
_CREATE = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is to be: `path`, links followed; `mode` is that of the file there, None where there is none.

    A `special` one is there to be written to, not to be replaced: a device, a pipe.
    """

    path: str
    mode: int | None = None
    special: bool = False

    @classmethod
    def of(cls, target: StrPath, *, no_clobber: bool = False) -> Self:
        """Look at `target`; raises TargetExists where something is there and must stay, TransferError for a folder."""
        path = os.fspath(target)
        try:
            found = os.lstat(path)
            if no_clobber:
                raise exists(path)
            if stat.S_ISLNK(found.st_mode):
                path = os.path.realpath(path)
                found = os.stat(path)
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError) as error:
            raise unwritable(path, error) from error
        if stat.S_ISDIR(found.st_mode):
            raise TransferError(f"cannot write {path}: it is a folder", "name a file in it")
        return cls(path, stat.S_IMODE(found.st_mode), not stat.S_ISREG(found.st_mode))

    def beside(self, token: str) -> str:
        """A name for a part file in the same folder, hidden; `token` tells it from others."""
        folder, name = os.path.split(self.path)
        if len(name) > _LONGEST // 4:
            name = os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
        return os.path.join(folder, f".{name}.{token}{SUFFIX}")

    @property
    def absolute(self) -> str:
        """The path from the root."""
        return os.path.abspath(self.path)

    def keeping(self, *parts: str) -> str:
        """The name of the part file that stays where a transfer ends halfway: the same for the same `parts`."""
        key = "\n".join((*parts, self.absolute)).encode("utf-8", "surrogateescape")
        return self.beside(hashlib.sha256(key).hexdigest()[:12])

    def has_part(self, *parts: str) -> bool:
        """Whether an earlier transfer of the same `parts` left something."""
        return os.path.lexists(self.keeping(*parts))

    def opened(self) -> BinaryIO:
        """A special one, to be written to; TransferError for a pipe that nobody reads."""
        try:
            return open(self.path, "wb", buffering=0, opener=_open_at_once)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise TransferError(f"cannot write {self.path}: nobody reads it", "start its reader first") from error
            raise unwritable(self.path, error) from error


class Part:
    """A part file: private and beside the place, to be put there once it is right; deleted at exit unless `keep`."""

    def __init__(self, place: Place, path: str, *, keep: bool = False) -> None:
        self.path = path
        self.keep = keep
        self._place = place
        self._there = False
        try:
            self.descriptor = os.open(path, _CREATE | (0 if keep else os.O_EXCL), 0o600)
        except (OSError, ValueError) as error:
            raise unwritable(place.path, error) from error

    @classmethod
    def fresh(cls, place: Place) -> Self:
        """One that no other process or task has."""
        return cls(place, place.beside(os.urandom(6).hex()))

    @classmethod
    def kept(cls, place: Place, *parts: str) -> Self:
        """The one that an earlier transfer of the same `parts` left, or an empty one."""
        return cls(place, place.keeping(*parts), keep=True)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self.descriptor).st_size

    @property
    def free(self) -> int | None:
        """How many bytes there is room for on its disk; None where that cannot be told."""
        if sys.platform == "win32":
            return shutil.disk_usage(os.path.dirname(self.path)).free
        found = os.fstatvfs(self.descriptor)
        return found.f_bfree * found.f_frsize if found.f_blocks else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        if not self._there and not self.keep:
            with suppress(OSError):
                os.unlink(self.path)

    def publish(self, mtime: float | None, *, no_clobber: bool) -> None:
        """Put the file in its place, at once; TargetExists where `no_clobber` and there is something now."""
        place = self._place
        try:
            if sys.platform != "win32":
                os.fchmod(self.descriptor, _mode() if place.mode is None else place.mode)
            os.close(self.descriptor)
            self.descriptor = -1
            if mtime is not None:
                os.utime(self.path, (time.time(), mtime))
            if no_clobber:
                _rename_new(self.path, place.path)
            else:
                os.replace(self.path, place.path)
        except FileExistsError as error:
            raise exists(place.path) from error
        except (OSError, OverflowError) as error:
            raise unwritable(place.path, error) from error
        self._there = True


def _open_at_once(path: str, flags: int) -> int:
    """Open a pipe, but do not wait for a reader: nothing could end that wait."""
    descriptor = os.open(path, flags & ~os.O_CREAT & ~os.O_TRUNC | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def exists(path: str) -> TargetExists:
    """The error for a file that must stay."""
    return TargetExists(f"{path} is there already, and is not to be replaced")


def _rename_new(path: str, target: str) -> None:
    """Rename a file, but not over another one."""
    if sys.platform == "win32":
        os.rename(path, target)
        return
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an empty file claims the name
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(path, target)
    else:
        os.unlink(path)


@cache
def _mode() -> int:
    """The mode of new files: it can only be asked for by setting it, so for an instant they are more private."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
