"""The errors of transfers, and texts for errors of the file system. Texts hold no secrets; a `hint` names the cure."""

import errno
import os
from collections.abc import Mapping
from contextlib import suppress

from forbear.core.redact import redact
from forbear.core.report import report, text_of
from forbear.http.status import reason

StrPath = str | os.PathLike[str]
"""A path as users give it."""

_EXHAUSTED = {errno.EMFILE, errno.ENFILE}
_READING = {
    errno.EACCES: "ask for the permission to read it",
    errno.ENOENT: "check the path",
    errno.EPERM: "ask for the permission to read it",
}
_WRITING = {
    errno.EACCES: "ask for the permission to write there, or choose another folder",
    errno.ENOENT: "make the folder first",
    errno.ENOSPC: "make room, then start again",
    errno.EPERM: "ask for the permission to write there, or choose another folder",
}
_HINTS = {
    401: "log in with `gcloud auth application-default login`, or name a key file as `credentials`",
    403: "ask the owner of the bucket for the permission",
    404: "check the names of the bucket and the object",
    412: "another client changed the object: look at it, then start again",
}


class TransferError(Exception):
    """A transfer failed. `hint` is the cure, or None; most subclasses have a default hint.

    The text is redacted, because it may quote a server or the URL of an upload session.
    """

    hint: str | None = None

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(redact(text))
        if hint is not None:
            self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # keeps the hint when another process sends it


class HttpError(TransferError):
    """A response that ended a transfer, with its `status`, `message` and `headers`; `what` names the request."""

    def __init__(self, what: str, status: int, message: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.message = redact(message)
        why = f": {self.message}" if message else ""
        super().__init__(f"{what}: {reason(status)}{why}", _HINTS.get(status))
        self.what = what
        self.status = status
        self.headers = headers or {}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.status, self.message), self.__dict__


class ChecksumMismatch(TransferError):
    """The bytes that arrived differ from the bytes that were sent, by their CRC32C."""

    hint = "start again; if it happens again, suspect the network or the memory of this machine"


class SourceChanged(TransferError):
    """The source changed while it was read."""

    hint = "start again when no program writes to it"


class TargetExists(TransferError):
    """The target exists and must not be replaced."""

    hint = "remove it, or allow it to be replaced"


class TargetChanged(TransferError):
    """Another client wrote to the target during the transfer."""

    hint = "look at it, then start again"


class Locked(TransferError):
    """Another process is working on the same transfer."""


class UnsafeName(TransferError):
    """An object's name would lead out of the target folder, or no file can have it."""


class NoCredentials(TransferError):
    """There are no credentials, no token can be obtained for them, or the token must not be sent."""


class Stalled(TransferError):
    """No byte moved for too long."""

    hint = "check the network, or allow more time (`stall_timeout`)"


class WrongResponse(TransferError):
    """A response does not fit its request. The next attempt may get a correct one."""

    hint = "check the server: a proxy or an emulator may be wrong"


def describe(error: BaseException) -> str:
    """Return the text of an error without secrets, preceded by its type unless it is a TransferError."""
    text = redact(text_of(error))
    if isinstance(error, TransferError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def maybe_done(error: BaseException) -> bool:
    """Return whether an earlier attempt in the error's report may have taken effect."""
    tried = report(error)
    return tried is not None and tried.maybe_done


def hint_of(error: BaseException) -> str | None:
    """Return the hint of a TransferError, None for other errors."""
    return error.hint if isinstance(error, TransferError) else None


def unreadable(path: str, error: Exception) -> TransferError:
    """Return the error for a file that cannot be opened or read."""
    return TransferError(f"cannot read {path!r}: {why_not(path, error)}", _READING.get(_number(error)))


def unwritable(path: StrPath, error: Exception, *, verb: str = "write", named: bool = True) -> TransferError:
    """Return the error for a file or folder that cannot be written.

    `named` says that the operation adds or removes a name, which needs the right to write to the folder above. A path
    that no file can have is shown with escapes, so that the faulty character is visible.
    """
    shown = path if isinstance(error, OSError) else repr(path)
    why = why_not(path, error, named=named)
    return TransferError(f"cannot {verb} {shown}: {why}", _WRITING.get(_number(error)))


def why_not(path: StrPath, error: Exception, *, named: bool = False) -> str:
    """Return the system's text for an error, and the folder above `path` that caused it, if there is one.

    `named` is as for `unwritable`.
    """
    text = getattr(error, "strerror", None) or str(error)
    blamed = None
    if isinstance(error, OSError):
        with suppress(OSError, ValueError):
            blamed = _blamed(os.fspath(path), error.errno or 0, named=named)
    return text if blamed is None else f"{text}: {blamed}"


def is_out_of_files(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that this process or machine can open no more files."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            return True
        error = getattr(error, "os_error", None) or error.__cause__ or error.__context__
    return False


def _blamed(path: str, number: int, *, named: bool) -> str | None:
    """Describe the first folder above a path that explains an error with this number; None if no folder does."""
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
            return f"the folder {folder} may not be entered"
        last = folder
    return f"the folder {last} may not be written to" if denied and named and not _may(last, os.W_OK) else None


def _above(path: str) -> list[str]:
    """Return the folders above a path that its text names, the uppermost one first."""
    folders: list[str] = []
    folder = os.path.dirname(path.rstrip(os.sep))
    while folder and folder not in folders:
        folders.append(folder)
        folder = os.path.dirname(folder)
    return [*reversed(folders)] if os.path.isabs(path) else [os.curdir, *reversed(folders)]


def _may(folder: str, mode: int) -> bool:
    return os.access(folder, mode, effective_ids=os.access in os.supports_effective_ids)


def _number(error: Exception) -> int:
    return getattr(error, "errno", None) or 0
