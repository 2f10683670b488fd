"""Open folders, locks on files, and reading and writing at a position.

Files are opened through the descriptor of their folder, except on Windows. A path would not be safe: any user who may
write to a folder above could replace part of it by a link.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Self

from forbear_transfer.checksum import Crc32c
from forbear_transfer.errors import Locked, TargetChanged, TransferError, UnsafeName

PIECE = 256 * 1024
"""The number of bytes that are read, hashed, sent and written at a time. Larger pieces are no faster."""

_BY_DESCRIPTOR = {os.open, os.stat, os.unlink, os.rename, os.link, os.mkdir, os.rmdir} <= os.supports_dir_fd
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_SAFELY = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a FIFO must not make us wait
_LINKS = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}
"""The error numbers of systems for a symbolic link that must not be followed."""

_REMOVE_LINK = "remove the symbolic link, or copy to where it leads"
_WITHOUT_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_MOST_ROUNDS = 100
"""The number of times that a file may be replaced between opening and locking it, before it counts as locked."""
_WAIT = "wait until it ends; the lock ends with the process"


class OpenFolder(AbstractContextManager["OpenFolder", None]):
    """An open folder, as a context manager. Its methods take the names of files in it and raise OSError.

    `path` is the path of the folder. If `inside`, another open folder, is given, `path` is the name of a folder in it,
    which must not be a symbolic link. On Windows nothing is held open, and the methods use paths.
    """

    def __init__(self, path: str, *, inside: Self | None = None) -> None:
        self.path = path
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR and inside is None:
            self._descriptor = os.open(path or os.curdir, _FOLDER)
        elif _BY_DESCRIPTOR and inside is not None:
            self._descriptor = os.open(path, _FOLDER | _NOFOLLOW, dir_fd=inside._descriptor)
            self.path = os.path.join(inside.path, path)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; closing it again does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def status(self) -> os.stat_result:
        return os.stat(self.path or os.curdir) if self._descriptor is None else os.fstat(self._descriptor)

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def stat(self, name: str) -> os.stat_result:
        """Return the os.stat_result of the file `name`. For a symbolic link, it is that of the link itself."""
        return os.stat(self._path_at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def stat_listed(self, name: str) -> os.stat_result | None:
        """Return the os.stat_result of the file `name`, or of the file to which it leads; None without one."""
        try:
            return os.stat(self._path_at(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int) -> int:
        """Open a file of this user alone, and return its descriptor; OSError for a link, except on Windows."""
        return os.open(self._path_at(name), flags | _SAFELY, 0o600, dir_fd=self._descriptor)

    def open_own(self, name: str, flags: int) -> int:
        """Open a regular file that belongs to this user, with the `flags` of os.open, and return its descriptor.

        TransferError for a symbolic link, for anything else that is not a regular file, and for another user's file.
        The owner that new files get in this folder counts as this user. On Windows links and owners are not checked.
        """
        try:
            descriptor = self.open(name, flags)
        except OSError as error:
            if error.errno in _LINKS and os.path.islink(self.path_of(name)):
                raise self._make_error(name, "it is a symbolic link") from error
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._make_error(name, "it is not a regular file")
            if sys.platform != "win32" and status.st_uid != os.geteuid() and status.st_uid != self._find_owner_of_new():
                raise self._make_error(name, "it belongs to another user")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def unlink(self, name: str) -> None:
        os.unlink(self._path_at(name), dir_fd=self._descriptor)

    def rmdir(self, name: str) -> None:
        os.rmdir(self._path_at(name), dir_fd=self._descriptor)

    def utime(self, name: str, times: tuple[float, float]) -> None:
        """Set access and modification time of the file `name`; for a symbolic link, those of the link itself."""
        os.utime(self._path_at(name), times, dir_fd=self._descriptor, follow_symlinks=sys.platform == "win32")

    def chmod(self, name: str, mode: int) -> None:
        """Set the permissions of the file `name`. OSError for a symbolic link, and where the system may follow one."""
        try:
            os.chmod(self._path_at(name), mode, dir_fd=self._descriptor, follow_symlinks=False)
        except (NotImplementedError, ValueError) as error:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error

    def rename(self, name: str, target: str) -> None:
        """Rename the file `name` to `target` in the same folder, and replace a file that has that name."""
        os.replace(self._path_at(name), self._path_at(target), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def link(self, name: str, target: str) -> None:
        """Give the file `name` a second name in its folder, `target` (a hard link); FileExistsError if it is taken."""
        at, to = self._path_at(name), self._path_at(target)
        os.link(at, to, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)

    def _find_owner_of_new(self) -> int:
        """Return who owns new files here, by making one: network file systems may give all to one user."""
        name = f".{os.urandom(6).hex()}.tmp"
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            return os.fstat(descriptor).st_uid
        finally:
            os.close(descriptor)
            self.unlink(name)

    def _path_at(self, name: str) -> str:
        return self.path_of(name) if self._descriptor is None else name

    def _make_error(self, name: str, why: str) -> TransferError:
        return TransferError(
            f"cannot use {self.path_of(name)}: {why}", "check who put it there, and delete it; or use another folder"
        )


def folder_below(root: str, path: str) -> OpenFolder:
    """Return the folder `path`, open; UnsafeName if it is not `root` or below it, or a symbolic link leads out.

    Links that stay below `root` are followed. Raises OSError if a folder cannot be opened. On Windows a link created
    later is not noticed.
    """
    if _BY_DESCRIPTOR:
        try:
            return _walk(root, path)
        except OSError as error:
            if error.errno not in _LINKS:
                raise
    real_root, real = real_below(root, path)
    return _walk(real_root, real) if _BY_DESCRIPTOR else OpenFolder(path)


def real_below(root: str, path: str) -> tuple[str, str]:
    """Return the real paths of `root` and `path`; UnsafeName if the latter does not lie in the former."""
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    if real != real_root and not real.startswith(os.path.join(real_root, "")):
        raise UnsafeName(f"{path} leads out of the target, to {real}", _REMOVE_LINK)
    return real_root, real


def _walk(root: str, path: str) -> OpenFolder:
    """Return the folder `path`, open, reached from `root` without following a symbolic link below `root`.

    OSError with ELOOP if `path` is not below `root`, and the system's OSError for a link on the way. The caller closes
    the folder.
    """
    above = root if root.endswith(os.sep) else f"{root}{os.sep}"
    is_prefix = f"{path}{os.sep}".startswith(above)  # nearly always
    below = path[len(above) :] if is_prefix else os.path.relpath(path, root)
    names = [name for name in below.split(os.sep) if name and name != os.curdir]
    if os.pardir in names:
        raise OSError(errno.ELOOP, "it does not lie below that folder")
    folder = OpenFolder(root)
    for name in names:
        with folder:
            folder = OpenFolder(name, inside=folder)
    return folder


def open_locked(folder: OpenFolder, name: str, flags: int, what: str, *, needed: bool = True) -> int:
    """Open the file `name` of this user with `flags`, lock it without waiting, and return its descriptor.

    The system releases the lock when the process dies. A file that has a second name may be in use: by a download that
    died between its two names, or as a backup by hard links. It is left alone: this name is removed from it, and the
    file is opened anew (with O_CREAT in `flags`, as a new file).

    Raises OSError, TransferError for the file of another user, and Locked if another process or task has locked the
    file; `what` names the transfer in its text. Unless the lock is `needed`, a file on a file system without locks is
    returned unlocked.
    """
    for _ in range(_MOST_ROUNDS):
        descriptor = folder.open_own(name, flags)
        try:
            _take(descriptor, needed=needed)
            status = os.fstat(descriptor)
            if _is_at(status, folder, name):  # its holder may have just deleted or renamed it
                if status.st_nlink == 1:
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
    raise Locked(f"another process is working on this transfer: {what}", _WAIT)


def _take(descriptor: int, *, needed: bool) -> None:
    try:
        _lock(descriptor)
    except BlockingIOError:
        raise
    except OSError as error:
        if needed or error.errno not in _WITHOUT_LOCKS:
            raise


def _is_at(status: os.stat_result, folder: OpenFolder, name: str) -> bool:
    try:
        return os.path.samestat(status, folder.stat(name))
    except FileNotFoundError:
        return False


FileIdentity = tuple[int, ...]
"""A version of a file: its device, inode, size, and times of the last change of contents and of status. () is none."""


def identify(status: os.stat_result) -> FileIdentity:
    """Return the identity of the version of a file that `status` describes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_listed(path: str, status: os.stat_result | None, listed: FileIdentity | None, otherwise: str) -> None:
    """Raise TargetChanged unless a file is still the version that was `listed`; None for a version that is not known.

    `status` is that of the file now, None if there is none. `otherwise` says what is not done to it.
    """
    if listed is not None and listed != (() if status is None else identify(status)):
        raise TargetChanged(
            f"{path} was written after it was listed, and is not {otherwise}", "look at it, then run it again"
        )


def hash_file(descriptor: int, start: int, count: int, checksum: Crc32c) -> Iterator[None]:
    """Update `checksum` with up to `count` bytes of an open file from position `start` on; it ends early with the file.

    Each step of the iterator reads one piece of at most 256 KiB and yields None.
    """
    while count and (data := read_at(descriptor, min(PIECE, count), start)):
        checksum.update(data)
        start += len(data)
        count -= len(data)
        yield


if sys.platform == "win32":
    import msvcrt

    def read_at(descriptor: int, count: int, position: int, /) -> bytes:
        """Return at most `count` bytes from a position of an open file; empty at its end.

        This moves the file's own position.
        """
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)

    def write_at(descriptor: int, data: bytes, position: int, /) -> int:
        """Write bytes at a position of an open file, and return how many were written.

        This moves the file's own position.
        """
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, data)

    def _lock(descriptor: int) -> None:
        """Lock one byte of a file without waiting; BlockingIOError if another process holds the lock. For Windows."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

else:
    import fcntl

    read_at = os.pread
    write_at = os.pwrite

    def _lock(descriptor: int) -> None:
        """Lock a file exclusively, without waiting; BlockingIOError if another process or task holds the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
