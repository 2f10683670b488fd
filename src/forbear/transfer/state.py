"""What a transfer needs to go on after its process has died, on disk: atomic, private, and locked. It sends nothing."""

import hashlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forbear.transfer.errors import TransferError
from forbear.transfer.files import StrPath
from forbear.transfer.locks import open_locked

SMALL = 8 * 1024 * 1024
"""Up to this many bytes a transfer keeps no state, and begins anew in the next process."""

DIRECTORY_VARIABLE = "FORBEAR_STATE_DIR"
_VERSION = 1
_LASTING, _PASSING = ".new", ".now"


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
    or another task, holds the lock. A state that was not forgotten stays for the next run; one that cannot be read is
    treated as none.
    """

    def __init__(self, directory: StrPath | None, *key: str) -> None:
        folder = default_directory() if directory is None else Path(directory)
        digest = hashlib.sha256("\n".join(key).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._path = folder / f"{digest}.json"
        self._lock = _Lock(folder / f"{digest}.lock", key)

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.take()
        except OSError as error:
            raise self._unkept(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def load(self) -> dict[str, Any]:
        """What was saved last; empty where there is nothing, or nothing of use."""
        try:
            saved: Any = json.loads(self._path.read_bytes())
            return dict(saved["values"]) if saved["version"] == _VERSION else {}
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return {}

    def save(self, values: dict[str, Any], *, lasting: bool = True) -> None:
        """Put `values` on disk: either all of them are there afterwards, or what was there before.

        It outlives the process, and the machine where it is to be `lasting`, which costs a while. One of either kind
        may be under way at a time.
        """
        data = json.dumps({"version": _VERSION, "values": values}).encode()
        temporary = self._path.with_suffix(_LASTING if lasting else _PASSING)
        try:
            temporary.unlink(missing_ok=True)  # another process may have died here
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if lasting:
                    os.fsync(descriptor)
            temporary.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise self._unkept(error) from error

    def forget(self) -> None:
        """Delete what was saved: the transfer is over."""
        for suffix in (_PASSING, _LASTING, ".json"):
            with suppress(OSError):  # what stays tells the next run no more than that it is over
                self._path.with_suffix(suffix).unlink()

    def _unkept(self, error: OSError) -> TransferError:
        return TransferError(
            f"cannot keep the state of the transfer in {self._path.parent}: {error.strerror or error}",
            f"name a folder that can be written to: {DIRECTORY_VARIABLE}=/path",
        )


class _Lock:
    """A lock on a file, which the system releases when the process dies."""

    def __init__(self, path: Path, key: tuple[str, ...]) -> None:
        self._path = path
        self._key = key
        self._descriptor: int | None = None

    def take(self) -> None:
        """Raises Locked where another has it."""
        self._descriptor = open_locked(self._path, os.O_RDWR | os.O_CREAT, " ".join(self._key))

    def release(self) -> None:
        """Let go, and leave no file behind."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if sys.platform != "win32":  # there an open file cannot be deleted, and the next run finds it free
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        os.close(descriptor)
