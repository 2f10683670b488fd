"""Places: the local files that downloads are for, and the names of the part files beside them. They write nothing."""

import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

from forbear.transfer.errors import StrPath, TargetExists, TransferError, unwritable
from forbear.transfer.files import OpenFolder, folder_below

_PERMISSIONS = 0o777  # what else there is, such as set-user-ID, was meant for the bytes that were there
_PART = re.compile(r"\..+\.[0-9a-f]{12}\.forbear", re.DOTALL)  # as `Place.beside` makes them
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is to be, in an open folder: `name`, links followed; a context manager that closes the folder.

    `mode` is that of the file there, None where there is none. A `special` one is there to be written to, not to be
    replaced: a device, a pipe.
    """

    folder: OpenFolder
    name: str
    mode: int | None = None
    special: bool = False

    @classmethod
    def of(cls, target: StrPath, *, no_clobber: bool = False, root: StrPath | None = None) -> Self:
        """Look at `target`, which must lie below the folder `root` if there is one.

        Raises TargetExists where something is there and must stay, UnsafeName where a link leads out of `root`,
        TransferError for a folder.
        """
        path = os.fspath(target)
        below = None if root is None else os.fspath(root)
        folder: OpenFolder | None = None
        try:
            folder, name = _opened(path, below)
            found = _status(folder, name)
            if found is not None and no_clobber:
                raise exists(path)
            if found is not None and stat.S_ISLNK(found.st_mode):
                folder.close()
                path = os.path.realpath(path)
                folder, name = _opened(path, below)
                found = _status(folder, name)
                if found is not None and stat.S_ISLNK(found.st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if found is None:
                return cls(folder, name)
            if stat.S_ISDIR(found.st_mode):
                raise TransferError(f"cannot write {path}: it is a folder", "name a file in it")
            return cls(folder, name, found.st_mode & _PERMISSIONS, not stat.S_ISREG(found.st_mode))
        except BaseException as error:
            if folder is not None:
                folder.close()
            if isinstance(error, OSError | ValueError):
                raise unwritable(path, error) from error
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folder.close()

    @property
    def path(self) -> str:
        """Where the file is to be, for messages."""
        return self.folder.path_of(self.name)

    def beside(self, token: str) -> str:
        """Return a name for a part file in the same folder, hidden; `token` tells it from others."""
        name = self.name
        if len(name) > _LONGEST // 4:
            name = os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
        return f".{name}.{token}.forbear"

    @property
    def absolute(self) -> str:
        """The path from the root."""
        return os.path.abspath(self.path)

    def part_name(self, *key: str) -> str:
        """Return the name of the part file that stays where a transfer ends halfway: the same for the same `key`."""
        text = "\n".join((*key, self.absolute)).encode("utf-8", "surrogateescape")
        return self.beside(hashlib.sha256(text).hexdigest()[:12])

    def has_part(self, *key: str) -> bool:
        """Return whether an earlier transfer of the same `key` left something."""
        return self.has_file(self.part_name(*key))

    def has_file(self, name: str) -> bool:
        """Return whether there is a file of that name in its folder."""
        return _status(self.folder, name) is not None

    def opened(self) -> BinaryIO:
        """Open a special one to be written to; TransferError for a pipe that nobody reads."""
        try:
            return open(self.path, "wb", buffering=0, opener=self._open_at_once)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise TransferError(f"cannot write {self.path}: nobody reads it", "start its reader first") from error
            raise unwritable(self.path, error, named=False) from error

    def _open_at_once(self, path: str, flags: int) -> int:
        """Open a pipe, but do not wait for a reader: nothing could end that wait."""
        descriptor = self.folder.open(self.name, flags & ~os.O_CREAT & ~os.O_TRUNC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # put there a moment ago: a file is replaced, not written to
            os.close(descriptor)
            raise OSError(errno.EAGAIN, "it was replaced meanwhile")
        os.set_blocking(descriptor, True)
        return descriptor


def _opened(path: str, root: str | None) -> tuple[OpenFolder, str]:
    """Open the folder of a file; returns it, and the name of the file in it."""
    folder, name = os.path.split(path)
    return OpenFolder(folder) if root is None else folder_below(root, folder), name


def _status(folder: OpenFolder, name: str) -> os.stat_result | None:
    try:
        return folder.stat(name)
    except FileNotFoundError:
        return None


def exists(path: str) -> TargetExists:
    """The error for a file that must stay."""
    return TargetExists(f"{path} is there already, and is not to be replaced")


def is_part(name: str) -> bool:
    """Whether the name of a file is one that part files have."""
    return _PART.fullmatch(name) is not None
