"""Places: the local files that downloads are for, and the names of the part files beside them. They write nothing."""

import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from typing import BinaryIO, Self

from forbear.transfer.errors import TargetExists, TransferError
from forbear.transfer.files import StrPath, unwritable

_PERMISSIONS = 0o777  # what else there is, such as set-user-ID, was meant for the bytes that were there
_PART = re.compile(r"\..+\.[0-9a-f]{12}\.forbear", re.DOTALL)  # as `Place.beside` makes them
_LONGEST = 100


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
        return cls(path, found.st_mode & _PERMISSIONS, not stat.S_ISREG(found.st_mode))

    def beside(self, token: str) -> str:
        """A name for a part file in the same folder, hidden; `token` tells it from others."""
        folder, name = os.path.split(self.path)
        if len(name) > _LONGEST // 4:
            name = os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
        return os.path.join(folder, f".{name}.{token}.forbear")

    @property
    def absolute(self) -> str:
        """The path from the root."""
        return os.path.abspath(self.path)

    def part_path(self, *key: str) -> str:
        """The name of the part file that stays where a transfer ends halfway: the same for the same `key`."""
        text = "\n".join((*key, self.absolute)).encode("utf-8", "surrogateescape")
        return self.beside(hashlib.sha256(text).hexdigest()[:12])

    def has_part(self, *key: str) -> bool:
        """Whether an earlier transfer of the same `key` left something."""
        return os.path.lexists(self.part_path(*key))

    def opened(self) -> BinaryIO:
        """A special one, to be written to; TransferError for a pipe that nobody reads."""
        try:
            return open(self.path, "wb", buffering=0, opener=_open_at_once)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise TransferError(f"cannot write {self.path}: nobody reads it", "start its reader first") from error
            raise unwritable(self.path, error) from error


def _open_at_once(path: str, flags: int) -> int:
    """Open a pipe, but do not wait for a reader: nothing could end that wait."""
    descriptor = os.open(path, flags & ~os.O_CREAT & ~os.O_TRUNC | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return descriptor


def exists(path: str) -> TargetExists:
    """The error for a file that must stay."""
    return TargetExists(f"{path} is there already, and is not to be replaced")


def is_part(name: str) -> bool:
    """Whether the name of a file is one that part files have."""
    return _PART.fullmatch(name) is not None
