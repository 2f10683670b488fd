"""Places: the local files that downloads are for, and the names of the part files beside them. They write nothing."""

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import BinaryIO, Self

from forbear.transfer.downloads.description import GZIP
from forbear.transfer.downloads.sinks import Gunzip
from forbear.transfer.errors import StrPath, TargetExists, TransferError, unwritable
from forbear.transfer.files import PIECE, OpenFolder, folder_below, open_locked
from forbear.transfer.objects import Object
from forbear.transfer.threads import in_steps

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


@dataclass(frozen=True, slots=True)
class Terms:
    """How the caller wants the file: see `download`."""

    no_clobber: bool = False
    slices: int | None = None
    decode: bool = True
    root: StrPath | None = None


async def land(part: Part, place: Place, version: Object, terms: Terms, *, decoded: bool) -> None:
    """Put the file in its place, at once; its gzip undone unless that is not wanted, or done by the server."""
    if terms.decode and version.content_encoding == GZIP and not decoded:
        with Part.fresh(place) as plain:
            await in_steps(gunzip(part.descriptor, plain.descriptor, place.path))
            plain.publish(version.mtime, no_clobber=terms.no_clobber)
        part.keep = False
    else:
        part.publish(version.mtime, no_clobber=terms.no_clobber)


def gunzip(source: int, target: int, name: str) -> Iterator[None]:
    """Decode one open file into another one, from the beginning, a piece at each step."""
    decoder = Gunzip(name)
    os.lseek(source, 0, os.SEEK_SET)
    try:
        while data := os.read(source, PIECE):
            for piece in decoder.feed(data):
                _write(target, piece)
            yield
        _write(target, decoder.finish())
    except OSError as error:
        raise unwritable(name, error) from error


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
