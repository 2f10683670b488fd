"""Locks on files, which the system releases when their process dies. They know no transfer."""

import errno
import os
import sys

from forbear.transfer.errors import Locked
from forbear.transfer.files import StrPath

_WITHOUT_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_CURE = "wait until it is done; it holds the lock only as long as it lives"


def open_locked(path: StrPath, flags: int, what: str, *, needed: bool = True) -> int:
    """Open a file of one's own and lock it, by the name that it has now; returns its descriptor.

    Raises Locked where another process, or another task, is at work on `what`, and OSError; unless the lock is `needed`
    a file system that has none is taken as it is.
    """
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            _lock(descriptor)
            if _is_at(descriptor, path):  # not one that its holder has just deleted, or renamed
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise Locked(f"another process is at work on this transfer: {what}", _CURE) from None
        except OSError as error:
            if not needed and error.errno in _WITHOUT_LOCKS:
                return descriptor
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(descriptor: int, path: StrPath) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
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
