"""The state of a transfer on disk, from which another process can continue it: atomic, private and locked.

If the folder cannot be made or written to, the transfer continues without a state.
"""

import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Self

from forbear_transfer.errors import StrPath, TransferError, is_out_of_files, why_not
from forbear_transfer.files import OpenFolder, open_locked

SMALL = 8 * 1024 * 1024
"""The largest transfer in bytes that keeps no state, and starts anew in the next process."""

DIRECTORY_VARIABLE = "FORBEAR_STATE_DIR"
_VERSION = 1
_LASTING, _PASSING = ".new", ".now"
_CURE = f"name a folder that can be written to: {DIRECTORY_VARIABLE}=/path"
_OLD = 31 * 24 * 60 * 60.0
"""Seconds after which a state is deleted as useless: the server forgets its upload session after a week."""
_MOST_COLLECTED = 1000
"""The number of files that are checked for their age, so that a folder with very many takes no time."""
_FILE = re.compile(r"([0-9a-f]{32})\.(?:lock|json|new|now)")
_LONGEST = 1024 * 1024
"""The bytes of a state that are read. A state has the URL of a session or a few numbers, and never reaches 64 KiB."""


def default_directory() -> Path:
    """Return the folder for states: $FORBEAR_STATE_DIR, or forbear/transfers in the user's state folder.

    That is $XDG_STATE_HOME or ~/.local/state, on Windows %LOCALAPPDATA%. The folder may not exist. FileNotFoundError if
    the user has no home folder.
    """
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named:
        return Path(named)
    try:
        if sys.platform == "win32":
            home = os.environ.get("LOCALAPPDATA")
            return Path(home or Path.home() / "AppData" / "Local") / "forbear" / "transfers"
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "forbear" / "transfers"
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, "this user has no home folder", "~") from error


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)


class State:
    """The state of one transfer, as a context manager that holds its lock: `with State(directory, "upload", ...)`.

    `directory` is the folder for states, None for the default one. `key` identifies the transfer; it is hashed, because
    it may be long. Entering raises Locked if another process or task holds the lock. It raises TransferError if another
    user may write to the folder or owns the lock file, or if no more files can be opened. A state stays for the next
    run until it is forgotten; one that cannot be read counts as empty.

    If the folder cannot be made or written to, or its disk is full, `kept` is False and `warn` gets the reason. The
    default `warn` issues a RuntimeWarning. States and locks that are older than a month are deleted.
    """

    def __init__(self, directory: StrPath | None, *key: str, warn: Callable[[str], object] = _warn) -> None:
        self.kept = False
        self._directory = directory
        self._path = ""
        self._name = hashlib.sha256("\n".join(key).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._key = key
        self._warn = warn
        self._is_entered = False
        self._opened: OpenFolder | None = None
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self._is_entered = True
        try:
            self._path = os.fspath(default_directory() if self._directory is None else self._directory)
            _make_private(self._path)
            self._opened = OpenFolder(self._path)
            _check_private(self._opened)
            self._lock = open_locked(self._opened, f"{self._name}.lock", os.O_RDWR | os.O_CREAT, " ".join(self._key))
            self.kept = True
        except OSError as error:
            self._close()
            self._lose(error)
        except BaseException:
            self._close()
            raise
        else:
            _collect_once(self._opened)
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None and sys.platform != "win32":
            # On Windows an open file cannot be deleted; the next run can lock it.
            with suppress(OSError):
                self._opened.unlink(f"{self._name}.lock")
        self._close()
        self._is_entered = False

    @property
    def path(self) -> str:
        """The path of the file with the saved values, for messages."""
        return os.path.join(self._path, f"{self._name}.json")

    def load(self) -> dict[str, Any]:
        """Return the values that were saved last; empty if there are none, or if the file is damaged or not ours."""
        folder = self._folder
        if folder is None:
            return {}
        try:
            descriptor = folder.open_own(f"{self._name}.json", os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file:
                if os.fstat(descriptor).st_nlink > 1:  # it may be a second name of another file
                    return {}
                saved: Any = json.loads(file.read(_LONGEST))
            return dict(saved["values"]) if saved["version"] == _VERSION else {}
        except (OSError, TransferError, ValueError, RecursionError, KeyError, TypeError):
            return {}

    def save(self, values: dict[str, Any], *, lasting: bool = True) -> None:
        """Write `values` to disk at once, and replace those saved before; do nothing if the folder could not be opened.

        They survive the death of the process. If `lasting`, they also survive a crash of the machine, which takes time
        for a sync. One lasting and one other save may run at the same time. If a lasting save fails, the state is
        forgotten and a warning given. If another save fails, the values from before stay.
        """
        data = json.dumps({"version": _VERSION, "values": values}).encode()
        folder, temporary = self._folder, f"{self._name}{_LASTING if lasting else _PASSING}"
        if folder is None:
            return
        try:
            with suppress(FileNotFoundError):  # left by a process that died here
                folder.unlink(temporary)
            descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if lasting:
                    os.fsync(descriptor)
            folder.rename(temporary, f"{self._name}.json")
            self.kept = True
        except OSError as error:
            with suppress(OSError):
                folder.unlink(temporary)
            if lasting:
                self.forget()
                self._lose(error)

    def forget(self) -> None:
        """Delete the saved values, because the transfer is done. The lock is held until the block ends."""
        folder = self._folder
        if folder is not None:
            _delete(folder, self._name)

    @property
    def _folder(self) -> OpenFolder | None:
        """The open folder, None if nothing can be kept; RuntimeError outside of the `with` block."""
        if not self._is_entered:
            raise RuntimeError("a State must be entered before it is used: `with State(...) as state:`")
        return self._opened

    def _close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
        folder, self._opened = self._opened, None
        if folder is not None:
            folder.close()

    def _lose(self, error: OSError) -> None:
        """Set `kept` to False, and warn that another process cannot continue the transfer; `error` is the reason.

        If it says that no more files can be opened, raise TransferError instead, so that the item runs later.
        """
        self.kept = False
        path = self._path or str(error.filename)  # the user has no home folder
        text = _make_error(path, why_not(path, error, named=True))
        if is_out_of_files(error):
            raise TransferError(text, _CURE) from error
        self._warn(f"{text}; it goes on, but another process cannot continue it; {_CURE}")


_collected: set[tuple[int, int]] = set()
"""The folders in which this process has deleted old states."""


def _collect_once(folder: OpenFolder) -> None:
    """Delete the old states and locks of a folder, once in this process."""
    with suppress(OSError):
        status = folder.status()
        if (status.st_dev, status.st_ino) not in _collected:
            _collected.add((status.st_dev, status.st_ino))
            for name in _find_old(folder):
                _collect(folder, name)


def _find_old(folder: OpenFolder) -> list[str]:
    """Return the names of the states whose files are all older than a month, among the first 1000 entries."""
    newest: dict[str, float] = {}
    with os.scandir(folder.path or os.curdir) as entries:
        for entry in islice(entries, _MOST_COLLECTED):
            match = _FILE.fullmatch(entry.name)
            if match is not None:
                with suppress(FileNotFoundError):
                    modified = folder.stat(entry.name).st_mtime
                    newest[match[1]] = max(modified, newest.get(match[1], modified))
    before = time.time() - _OLD
    return [name for name, modified in newest.items() if modified < before]


def _collect(folder: OpenFolder, name: str) -> None:
    """Delete all files of the state `name`, unless it is locked or belongs to another user."""
    try:
        lock = open_locked(folder, f"{name}.lock", os.O_RDWR | os.O_CREAT, name)
    except (OSError, TransferError):
        return
    try:
        _delete(folder, name)
        if sys.platform != "win32":
            with suppress(OSError):
                folder.unlink(f"{name}.lock")
    finally:
        os.close(lock)


def _delete(folder: OpenFolder, name: str) -> None:
    for suffix in (_PASSING, _LASTING, ".json"):
        with suppress(OSError):  # the next run copes with files that stay
            folder.unlink(f"{name}{suffix}")


def _make_private(path: str) -> None:
    """Make a folder and the missing folders above it, for this user only; one that exists stays as it is."""
    for folder in reversed(list(_list_missing(path))):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _list_missing(path: str) -> Iterator[str]:
    """Yield `path`, also if it exists, and then the missing folders above it, from the lowest up."""
    yield path
    above = os.path.dirname(path.rstrip(os.sep))
    while above not in ("", path) and not os.path.lexists(above):
        yield above
        path, above = above, os.path.dirname(above)


def _check_private(folder: OpenFolder) -> None:
    """Raise TransferError for a folder in which another user may delete or replace this user's files.

    The folder must belong to this user or root, and others must not have the right to write to it. In a sticky folder,
    such as /tmp, other users can only add files, so that right does no harm. Nothing is checked on Windows.
    """
    if sys.platform == "win32":
        return
    status = folder.status()
    if status.st_uid not in (os.geteuid(), 0):
        why = "it belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        why = "others may write to it"
    else:
        return
    cure = f"take that right from them (chmod go-w), or name a folder of your own: {DIRECTORY_VARIABLE}=/path"
    raise TransferError(_make_error(folder.path, why), cure)


def _make_error(path: str, why: str) -> str:
    return f"cannot keep the state of the transfer in {path}: {why}"
