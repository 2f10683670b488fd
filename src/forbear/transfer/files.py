"""Local files and folders: what all parts do with open ones, and the errors for those that cannot be used.

Files are reached through the descriptor of their folder where the system can do so (not on Windows): anybody who may
write to a folder above can make the path to it lead elsewhere a moment later.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from forbear.transfer.checksum import Crc32c
from forbear.transfer.errors import Locked, TransferError, UnsafeName

StrPath = str | os.PathLike[str]
"""A path as users give it."""

PIECE = 256 * 1024
"""How many bytes are read, hashed, sent and written at a time: larger ones are no faster."""

_BY_DESCRIPTOR = {os.open, os.stat, os.unlink, os.rename, os.link, os.mkdir} <= os.supports_dir_fd
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_SAFELY = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a FIFO must not make us wait
_LINKS = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}
"""The errors of systems for a symbolic link that may not be followed."""

_EXHAUSTED = {errno.EMFILE, errno.ENFILE}
_READING = {
    errno.EACCES: "ask for the permission to read it",
    errno.ENOENT: "check the path",
    errno.EPERM: "ask for the permission to read it",
}
_STAY = "remove the symbolic link, or copy to where it leads"
_WRITING = {
    errno.EACCES: "ask for the permission to write there, or choose another place",
    errno.ENOENT: "make the folder first",
    errno.ENOSPC: "make room, then start again",
    errno.EPERM: "ask for the permission to write there, or choose another place",
}


class Folder:
    """An open folder, as a context manager; the files in it are reached by their names alone. Raises OSError."""

    def __init__(self, path: str, *, inside: Self | None = None) -> None:
        self.path = path
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR and inside is None:
            self._descriptor = os.open(path or os.curdir, _FOLDER)
        elif _BY_DESCRIPTOR and inside is not None:
            self._descriptor = os.open(path, _FOLDER | _NOFOLLOW, dir_fd=inside._descriptor)
            self.path = os.path.join(inside.path, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def status(self) -> os.stat_result:
        """Return the status of the folder itself."""
        return os.stat(self.path or os.curdir) if self._descriptor is None else os.fstat(self._descriptor)

    def path_of(self, name: str) -> str:
        """Return the path of a file in it, for messages."""
        return os.path.join(self.path, name)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of a file; of a symbolic link that of the link itself."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def open(self, name: str, flags: int) -> int:
        """Open a file, which must not be a symbolic link; new ones are private."""
        return os.open(self._at(name), flags | _SAFELY, 0o600, dir_fd=self._descriptor)

    def open_own(self, name: str, flags: int) -> int:
        """Open a regular file of this user's; TransferError for what somebody else may have put there."""
        try:
            descriptor = self.open(name, flags)
        except OSError as error:
            if error.errno in _LINKS and os.path.islink(self.path_of(name)):
                raise self._not_own(name, "it is a symbolic link") from error
            raise
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._not_own(name, "it is not a regular file")
            if sys.platform != "win32" and found.st_uid != os.geteuid() and found.st_uid != self._owner_of_new():
                raise self._not_own(name, "it belongs to another user")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def unlink(self, name: str) -> None:
        """Delete a file."""
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def rename(self, name: str, target: str) -> None:
        """Rename a file, over what has that name."""
        os.replace(self._at(name), self._at(target), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def link(self, name: str, target: str) -> None:
        """Give a file a second name; FileExistsError where something has it."""
        at, to = self._at(name), self._at(target)
        os.link(at, to, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def _owner_of_new(self) -> int:
        """Return whom a new file here belongs to: file systems from elsewhere may give all of them to one user."""
        name = f".{os.urandom(6).hex()}.tmp"
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            return os.fstat(descriptor).st_uid
        finally:
            os.close(descriptor)
            self.unlink(name)

    def _at(self, name: str) -> str:
        return self.path_of(name) if self._descriptor is None else name

    def _not_own(self, name: str, why: str) -> TransferError:
        return TransferError(
            f"cannot use {self.path_of(name)}: {why}", "look at who put it there, and delete it; or use another folder"
        )


def folder_below(root: str, path: str) -> Folder:
    """Open the folder `path`, which must lie below the folder `root`; UnsafeName where a symbolic link leads out of it.

    Links that stay below it are followed. Raises OSError. On Windows a link that is put there later is not noticed.
    """
    if _BY_DESCRIPTOR:
        try:
            return _walked(root, path)
        except OSError as error:
            if error.errno not in _LINKS:
                raise
    inside, real = os.path.realpath(root), os.path.realpath(path)
    if real != inside and not real.startswith(os.path.join(inside, "")):
        raise UnsafeName(f"{path} leads out of the target, to {real}", _STAY)
    return _walked(inside, real) if _BY_DESCRIPTOR else Folder(path)


def _walked(root: str, path: str) -> Folder:
    """Go down from `root` folder by folder, through no symbolic link; OSError with ELOOP where the way leads up."""
    above = root if root.endswith(os.sep) else f"{root}{os.sep}"
    written = path.startswith(above) or path == root  # as nearly all are
    below = path[len(above) :] if written else os.path.relpath(path, root)
    names = [name for name in below.split(os.sep) if name and name != os.curdir]
    if os.pardir in names:
        raise OSError(errno.ELOOP, "it does not lie below that folder")
    folder = Folder(root)
    for name in names:
        with folder:
            folder = Folder(name, inside=folder)
    return folder


def unreadable(path: str, error: Exception) -> TransferError:
    """The error for a file that cannot be opened, or read."""
    return TransferError(f"cannot read {path!r}: {why_not(path, error)}", _READING.get(_number(error)))


def unwritable(path: StrPath, error: Exception, *, verb: str = "write", named: bool = True) -> TransferError:
    """The error for what cannot be written; a name that no file can have is shown so that its fault can be seen.

    `named` is whether its folder was to be written to: a file gets its name, or loses it.
    """
    shown = path if isinstance(error, OSError) else repr(path)
    why = why_not(path, error, named=named)
    return TransferError(f"cannot {verb} {shown}: {why}", _WRITING.get(_number(error)))


def why_not(path: StrPath, error: Exception, *, named: bool = False) -> str:
    """Return what an error says, and which folder above `path` is to blame, if one is.

    `named` is as for `unwritable`.
    """
    text = getattr(error, "strerror", None) or str(error)
    blamed = None
    if isinstance(error, OSError):
        with suppress(OSError, ValueError):
            blamed = _blamed(os.fspath(path), error.errno or 0, named=named)
    return text if blamed is None else f"{text}: {blamed}"


def _blamed(path: str, number: int, *, named: bool) -> str | None:
    """Say what is wrong with the first folder above a path that is the cause of an error of this number."""
    denied = number in (errno.EACCES, errno.EPERM)
    last = os.curdir
    for folder in _above(path):
        if not os.path.lexists(folder):
            if number == errno.ENOENT:
                return f"there is no folder {folder}"
            break
        if not os.path.isdir(folder):
            return f"{folder} is no folder"
        if denied and not _may(folder, os.X_OK):
            return f"the folder {folder} may not be looked into"
        last = folder
    return f"the folder {last} may not be written to" if denied and named and not _may(last, os.W_OK) else None


def _above(path: str) -> list[str]:
    """Return the folders that a path names above itself, the uppermost one first."""
    folders: list[str] = []
    folder = os.path.dirname(path.rstrip(os.sep))
    while folder and folder not in folders:
        folders.append(folder)
        folder = os.path.dirname(folder)
    return [*reversed(folders)] if os.path.isabs(path) else [os.curdir, *reversed(folders)]


def _may(folder: str, mode: int) -> bool:
    return os.access(folder, mode, effective_ids=os.access in os.supports_effective_ids)


def is_out_of_files(error: BaseException | None) -> bool:
    """Return whether an error, or one behind it, says that this process or machine can open no more files."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            return True
        error = getattr(error, "os_error", None) or error.__cause__ or error.__context__
    return False


def hash_file(descriptor: int, start: int, count: int, checksum: Crc32c) -> Iterator[None]:
    """Have `checksum` see `count` bytes of an open file (fewer where it ends) from `start` on, a piece at each step."""
    while count and (data := read_at(descriptor, min(PIECE, count), start)):
        checksum.update(data)
        start += len(data)
        count -= len(data)
        yield


def _number(error: Exception) -> int:
    return getattr(error, "errno", None) or 0


if sys.platform == "win32":

    def read_at(descriptor: int, count: int, position: int, /) -> bytes:
        """Read at most so many bytes from a place in an open file."""
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)

    def write_at(descriptor: int, data: bytes, position: int, /) -> int:
        """Write bytes to a place in an open file; returns how many it took."""
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, data)

else:
    read_at = os.pread
    write_at = os.pwrite


_WITHOUT_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_MOST_ROUNDS = 100
"""How often a file may be taken away between opening and locking it; more often is no chance."""

_CURE = "wait until it is done; it holds the lock only as long as it lives"


def open_locked(folder: Folder, name: str, flags: int, what: str, *, needed: bool = True) -> int:
    """Open a file of this user's and lock it, by the name that it has now; returns its descriptor.

    A file with a second name is not written to, since it may be one that is in use by now (a download that died between
    its two names, a backup by hard links): the name is taken from it, and given to a new file. Raises Locked where
    another process, or another task, is at work on `what`, TransferError for the file of another user, and OSError;
    unless the lock is `needed` a file system that has none is taken as it is.
    """
    for _ in range(_MOST_ROUNDS):
        descriptor = folder.open_own(name, flags)
        try:
            _take(descriptor, needed=needed)
            found = os.fstat(descriptor)
            if _is_at(found, folder, name):  # not one that its holder has just deleted, or renamed
                if found.st_nlink == 1:
                    return descriptor
                with suppress(FileNotFoundError):
                    folder.unlink(name)
        except BlockingIOError:
            os.close(descriptor)
            break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise Locked(f"another process is at work on this transfer: {what}", _CURE)


def _take(descriptor: int, *, needed: bool) -> None:
    try:
        _lock(descriptor)
    except BlockingIOError:
        raise
    except OSError as error:
        if needed or error.errno not in _WITHOUT_LOCKS:
            raise


def _is_at(found: os.stat_result, folder: Folder, name: str) -> bool:
    try:
        return os.path.samestat(found, folder.stat(name))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        """Lock a file or raise BlockingIOError."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock a file or raise BlockingIOError."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
