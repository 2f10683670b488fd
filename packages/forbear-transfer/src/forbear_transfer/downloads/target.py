"""The file that a download is for: its path, the part file beside it, and how the part file takes its name.

The bytes of a download go to a part file in the folder of the target. Once they are right, the part file is renamed to
the target (published), so that the target is always a whole file.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import time
from contextlib import AbstractContextManager, suppress
from functools import cache, lru_cache
from typing import BinaryIO, Self

from forbear.adapters import dataclass
from forbear_transfer.downloads.description import GZIP
from forbear_transfer.downloads.sinks import decode_file, is_open_pipe
from forbear_transfer.errors import StrPath, TargetExists, TransferError, unwritable
from forbear_transfer.files import FileIdentity, OpenFolder, check_listed, folder_below, open_locked
from forbear_transfer.objects import Object
from forbear_transfer.threads import run_steps

_CREATE = os.O_RDWR | os.O_CREAT
_LONGEST = 100
_EXISTS = "{} exists already, and must not be replaced"
_PART = re.compile(r"\..+\.[0-9a-f]{12}\.forbear", re.DOTALL)  # as `TargetPath.part_name` makes them
_PERMISSIONS = 0o777  # other bits, such as set-user-ID, were meant for the content that is replaced


@dataclass(slots=True, kw_only=True)
class DownloadOptions:
    """The options of `download`; `state` is the folder for states. No part was left before if not `resumable`."""

    no_clobber: bool = False
    slices: int | None = None
    decode: bool = True
    root: StrPath | None = None
    state: StrPath | None = None
    listed: FileIdentity | None = None
    preserve_posix: bool = False
    resumable: bool = True


@dataclass(slots=True)
class TargetPath(AbstractContextManager["TargetPath", None]):
    """The path of a target, as an open folder and the `name` of a file in it; links are resolved.

    `mode` has the permissions of the file that is there, None if there is none. A `special` file, such as a device or
    a pipe, is written to, not replaced. One `by_link` has no other name. The context manager closes the folder.
    """

    folder: OpenFolder
    name: str
    mode: int | None = None
    special: bool = False
    by_link: bool = False

    @classmethod
    def of(cls, target: StrPath, *, no_clobber: bool = False, root: StrPath | None = None) -> Self:
        """Return the path of `target`, with links resolved; it must lie below the folder `root` unless that is None.

        Raise TargetExists if `no_clobber` is true and the target exists, even as a broken link. Raise UnsafeName if a
        symbolic link leads out of `root`, and TransferError if the target is a folder or its folder cannot be opened.
        """
        path = os.fspath(target)
        folder: OpenFolder | None = None
        try:
            folder, name = _open_folder(path, root)
            status = _stat(folder, name)
            if status is not None and no_clobber:
                raise TargetExists(_EXISTS.format(path))
            if status is not None and stat.S_ISLNK(status.st_mode):
                if root is None and is_open_pipe(path):
                    return cls(folder, name, special=True, by_link=True)
                folder.close()
                path = os.path.realpath(path)
                folder, name = _open_folder(path, root)
                status = _stat(folder, name)
                if status is not None and stat.S_ISLNK(status.st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if status is None:
                return cls(folder, name)
            if stat.S_ISDIR(status.st_mode):
                raise TransferError(f"cannot write {path}: it is a folder", "name a file in it")
            return cls(folder, name, status.st_mode & _PERMISSIONS, not stat.S_ISREG(status.st_mode))
        except BaseException as error:
            if folder is not None:
                folder.close()
            if isinstance(error, OSError | ValueError):
                raise unwritable(path, error) from error
            raise

    def __exit__(self, *_: object) -> None:
        self.folder.close()

    @property
    def path(self) -> str:
        return self.folder.path_of(self.name)

    @property
    def absolute(self) -> str:
        return _find_start(self.folder.path, "" if os.path.isabs(self.folder.path) else os.getcwd()) + self.name

    def part_name(self, token: str) -> str:
        """Return a hidden name, ".NAME.TOKEN.forbear"; a long NAME is cut to 100 bytes, TOKEN has 12 hex digits."""
        name = self.name
        if len(name) > _LONGEST // 4:
            name = os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
        return f".{name}.{token}.forbear"

    def resumable_part_name(self, *key: str) -> str:
        """Return the part name that is always the same for a `key` and the absolute path of the target."""
        text = "\n".join((*key, self.absolute)).encode("utf-8", "surrogateescape")
        return self.part_name(hashlib.sha256(text).hexdigest()[:12])

    def has_file(self, name: str) -> bool:
        return _stat(self.folder, name) is not None

    def open_special(self) -> BinaryIO:
        """Open the target, a device or a pipe, for writing. TransferError if that fails, as without a reader."""
        try:
            return open(self.path, "wb", buffering=0, opener=self._open_without_waiting)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise TransferError(f"cannot write {self.path}: it has no reader", "start its reader first") from error
            raise unwritable(self.path, error, named=False) from error

    def _open_without_waiting(self, path: str, flags: int) -> int:
        """Open the target without waiting for a reader: nothing could end that. OSError for a regular file."""
        flags &= ~os.O_CREAT & ~os.O_TRUNC
        waits_not = flags | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, waits_not) if self.by_link else self.folder.open(self.name, flags)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # put there a moment ago: a file is replaced
            os.close(descriptor)
            raise OSError(errno.EAGAIN, "it was replaced meanwhile")
        os.set_blocking(descriptor, True)
        return descriptor


class PartFile(AbstractContextManager["PartFile", None]):
    """The private file beside a target that takes the bytes of a download until they are published.

    The context manager deletes the file at exit, unless it was published or `keep` is true. A resumable part file is
    locked. The lock of the download's state would not be enough. Another user or another machine may keep states
    elsewhere, and two downloads that write to one file would each take it for right.
    """

    def __init__(self, target: TargetPath, name: str, *, keep: bool = False) -> None:
        self.keep = keep
        self._name = name
        self._target = target
        self._published = False
        try:
            if keep:
                self.descriptor = open_locked(target.folder, name, _CREATE, f"download to {target.path}", needed=False)
            else:
                self.descriptor = target.folder.open(name, _CREATE | os.O_EXCL)
        except (OSError, ValueError) as error:
            denied = keep and isinstance(error, PermissionError) and target.has_file(name)  # the file, not its folder
            raise unwritable(self.path if denied else target.path, error, named=not denied) from error

    @classmethod
    def temporary(cls, target: TargetPath) -> Self:
        """Make a part file with a random name, which is deleted at exit unless published."""
        return cls(target, target.part_name(os.urandom(6).hex()))

    @classmethod
    def resumable(cls, target: TargetPath, *key: str) -> Self:
        """Open and lock the part file that a download with the same `key` left, or make it; it is kept at exit."""
        return cls(target, target.resumable_part_name(*key), keep=True)

    @property
    def path(self) -> str:
        return self._target.folder.path_of(self._name)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    @property
    def free(self) -> int | None:
        """Return the free space in bytes on the disk of the part file, None if the system does not say."""
        if sys.platform == "win32":
            return shutil.disk_usage(self._target.folder.path or os.curdir).free
        disk = os.fstatvfs(self.descriptor)
        return disk.f_bfree * disk.f_frsize if disk.f_blocks else None

    def __exit__(self, *_: object) -> None:
        if sys.platform == "win32":  # on Windows, an open file can be neither deleted nor renamed
            self._close()
        if not self._published and not self.keep:
            with suppress(OSError):
                self._target.folder.unlink(self._name)
        self._close()

    async def publish(self, version: Object, options: DownloadOptions, *, decoded: bool) -> None:
        """Replace the target by this file in one step, after decoding its gzip if `options` ask for it.

        `decoded` says that the server has decoded it already. The file gets the modification time of `version` if there
        is one, and the mode of the file that it replaces; with `preserve_posix`, the mode of `version` if there is one.
        Raise TargetExists if `no_clobber` is set and the target exists by now, and TransferError for invalid gzip or a
        file that cannot be renamed.
        """
        if options.decode and version.content_encoding == GZIP and not decoded:
            with PartFile.temporary(self._target) as plain:
                await run_steps(decode_file(self.descriptor, plain.descriptor, self._target.path, sync=self.keep))
                plain._rename_to_target(version, options)
            self.keep = False
        else:
            self._rename_to_target(version, options)

    def _rename_to_target(self, version: Object, options: DownloadOptions) -> None:
        target, mtime, kept = self._target, version.mtime, version.mode if options.preserve_posix else None
        mode = target.mode if kept is None else kept
        if options.listed is not None:
            check_listed(target.path, target.folder.stat_listed(target.name), options.listed, "replaced")
        try:
            if sys.platform == "win32":
                self._close()
            else:
                os.fchmod(self.descriptor, _find_default_mode() if mode is None else mode)
            if mtime is not None:
                os.utime(self.descriptor if os.utime in os.supports_fd else self.path, (time.time(), mtime))
            if options.no_clobber or options.listed == ():
                _rename_new(target.folder, self._name, target.name)
            else:
                target.folder.rename(self._name, target.name)
        except FileExistsError as error:
            raise TargetExists(_EXISTS.format(target.path)) from error
        except (OSError, OverflowError) as error:
            raise unwritable(target.path, error) from error
        self._published = True
        self._close()  # not earlier: the lock must last until the file has its name

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def is_part(name: str) -> bool:
    """Return whether `name` has the form of the names of part files: ".NAME.TOKEN.forbear"."""
    return _PART.fullmatch(name) is not None


@lru_cache(64)
def _find_start(folder: str, _: str) -> str:
    return os.path.join(os.path.abspath(folder), "")


def _open_folder(path: str, root: StrPath | None) -> tuple[OpenFolder, str]:
    """Return the open folder of a file, and its name; UnsafeName if a link leads out of `root`."""
    folder, name = os.path.split(path)
    return OpenFolder(folder) if root is None else folder_below(os.fspath(root), folder), name


def _stat(folder: OpenFolder, name: str) -> os.stat_result | None:
    try:
        return folder.stat(name)
    except FileNotFoundError:
        return None


def _rename_new(folder: OpenFolder, name: str, target: str) -> None:
    if sys.platform == "win32":
        os.rename(folder.path_of(name), folder.path_of(target))
        return
    try:
        folder.link(name, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an empty file claims the name
        os.close(folder.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            folder.rename(name, target)
        except OSError:
            folder.unlink(target)  # empty, it would look like a copy that is done
            raise
    else:  # a process that dies here leaves a file with both names, to which `open_locked` does not write
        folder.unlink(name)


@cache
def _find_default_mode() -> int:
    """Return the mode of new files, by the umask. Reading it sets it, for an instant, so it is read only once."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
