"""Locks on files, which the system releases when their process dies. They know no transfer."""

import errno
import os
import sys
from contextlib import suppress

from forbear.transfer.errors import Locked
from forbear.transfer.files import Folder

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
