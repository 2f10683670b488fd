"""What a transfer needs to go on after its process has died, on disk: atomic, private, and locked. It sends nothing."""

import hashlib
import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forbear.transfer.errors import TransferError
from forbear.transfer.files import Folder, StrPath
from forbear.transfer.locks import open_locked

SMALL = 8 * 1024 * 1024
"""Up to this many bytes a transfer keeps no state, and begins anew in the next process."""

DIRECTORY_VARIABLE = "FORBEAR_STATE_DIR"
_VERSION = 1
_LASTING, _PASSING = ".new", ".now"
_CURE = f"name a folder that can be written to: {DIRECTORY_VARIABLE}=/path"
_LONGEST = 1024 * 1024
"""How many bytes of a state are read: one has a session's address, or a few numbers, and never as many as 64 KiB."""


def default_directory() -> Path:
    """Where states are kept: $FORBEAR_STATE_DIR, or forbear/transfers among the user's other states."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
        return Path(home or Path.home() / "AppData" / "Local") / "forbear" / "transfers"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "forbear" / "transfers"


class State:
    """The state of one transfer, as a context manager that holds its lock: `with State(directory, "upload", ...)`.

    `directory` is where it is kept, None for the usual place. `key` is what makes it this transfer and no other; it is
    not secret, but is hashed all the same, because it may be long. Raises Locked where another process,
    or another task, holds the lock, and TransferError for a folder or a file in which somebody else may write. A state
    that was not forgotten stays for the next run; one that cannot be read is treated as none.
    """

    def __init__(self, directory: StrPath | None, *key: str) -> None:
        self._path = os.fspath(default_directory() if directory is None else directory)
        self._name = hashlib.sha256("\n".join(key).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._key = key
        self._opened: Folder | None = None
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            _make_private(self._path)
            self._opened = Folder(self._path)
            _check_private(self._opened)
            self._lock = open_locked(self._opened, f"{self._name}.lock", os.O_RDWR | os.O_CREAT, " ".join(self._key))
        except BaseException as error:
            self._close()
            if isinstance(error, OSError):
                raise self._unkept(error) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if sys.platform != "win32":  # there an open file cannot be deleted, and the next run finds it free
            with suppress(OSError):
                self._folder.unlink(f"{self._name}.lock")
        self._close()

    def load(self) -> dict[str, Any]:
        """Return what was saved last; empty where there is nothing, or nothing of use, or the file of somebody else."""
        try:
            descriptor = self._folder.open_own(f"{self._name}.json", os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file:
                if os.fstat(descriptor).st_nlink > 1:  # another name of something else
                    return {}
                saved: Any = json.loads(file.read(_LONGEST))
            return dict(saved["values"]) if saved["version"] == _VERSION else {}
        except (OSError, TransferError, ValueError, RecursionError, KeyError, TypeError):
            return {}

    def save(self, values: dict[str, Any], *, lasting: bool = True) -> None:
        """Put `values` on disk: either all of them are there afterwards, or what was there before.

        It outlives the process, and the machine where it is to be `lasting`, which costs a while. One of either kind
        may be under way at a time.
        """
        data = json.dumps({"version": _VERSION, "values": values}).encode()
        folder, temporary = self._folder, f"{self._name}{_LASTING if lasting else _PASSING}"
        try:
            with suppress(FileNotFoundError):  # another process may have died here
                folder.unlink(temporary)
            descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if lasting:
                    os.fsync(descriptor)
            folder.rename(temporary, f"{self._name}.json")
        except OSError as error:
            with suppress(OSError):
                folder.unlink(temporary)
            raise self._unkept(error) from error

    def forget(self) -> None:
        """Delete what was saved: the transfer is over."""
        for suffix in (_PASSING, _LASTING, ".json"):
            with suppress(OSError):  # what stays tells the next run no more than that it is over
                self._folder.unlink(f"{self._name}{suffix}")

    @property
    def _folder(self) -> Folder:
        if self._opened is None:
            raise RuntimeError("a State must be entered before it is used: `with State(...) as state:`")
        return self._opened

    def _close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
        folder, self._opened = self._opened, None
        if folder is not None:
            folder.close()

    def _unkept(self, error: OSError) -> TransferError:
        return TransferError(f"cannot keep the state of the transfer in {self._path}: {error.strerror or error}", _CURE)


def _make_private(path: str) -> None:
    """Make a folder that only this user may use, and those above it that are missing."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip(os.sep))
        if above in ("", path):
            raise
        _make_private(above)
        _make_private(path)


def _check_private(folder: Folder) -> None:
    """Raise TransferError for a folder in which another user may delete or replace this user's files.

    In one that is sticky, such as /tmp, others can only add files, and theirs are not used.
    """
    if sys.platform == "win32":
        return
    found = folder.status()
    if found.st_uid not in (os.geteuid(), 0):
        why = "it belongs to another user"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        why = "others may write to it"
    else:
        return
    raise TransferError(
        f"cannot keep the state of the transfer in {folder.path}: {why}",
        f"take that right from them (chmod go-w), or name a folder of your own: {DIRECTORY_VARIABLE}=/path",
    )
