"""The errors of transfers, and texts for errors of the file system.

The text of a TransferError holds no secrets; its `hint` names the cure, or is None.
"""

import errno
import os
from collections.abc import Mapping
from contextlib import suppress

from forbear import report
from forbear.adapters import error_text, redact, status_phrase

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
_NAME_KEY = "name the key that the object was written with: `decryption_keys`"
_HINTS_BY_REASON = {
    "resourceIsEncryptedWithCustomerEncryptionKey": _NAME_KEY,
    "customerEncryptionKeyIsIncorrect": _NAME_KEY,
    "objectUnderActiveHold": "have its hold released, then start again",
    "retentionPolicyNotMet": "start again when its retention has ended",
}


class TransferError(Exception):
    """The base of all errors of transfers. `hint` is the cure, or None; many subclasses have a default hint.

    The text is redacted, because it may quote a server or the URL of an upload session; `hint` is not.

    >>> stat("gs://my-bucket/no-such-object")
    Traceback (most recent call last):
        ...
    forbear_transfer.errors.TransferError: gs://my-bucket/no-such-object does not exist
    """

    hint: str | None = None

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(redact(text))
        if hint is not None:
            self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # keeps the hint when another process sends it


class HttpError(TransferError):
    """A response whose `status` ended a transfer; `what` names the request, `message` is the server's redacted text.

    `headers` are those of the response, empty if not given. `cause` is the word by which the service names the reason,
    empty without one. The statuses 401, 403, 404 and 412 have a hint, and so have errors about keys, holds, retention.

    >>> try:
    ...     ls("gs://no-such-bucket/")
    ... except HttpError as error:
    ...     error.status, error.hint
    (404, 'check the names of the bucket and the object')
    """

    def __init__(
        self, what: str, status: int, message: str = "", headers: Mapping[str, str] | None = None, cause: str = ""
    ) -> None:
        self.message = redact(message)
        self.cause = cause
        why = f": {self.message}" if message else ""
        super().__init__(f"{what}: {status_phrase(status)}{why}", _HINTS_BY_REASON.get(cause) or _HINTS.get(status))
        self.what = what
        self.status = status
        self.headers = headers or {}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.status, self.message), self.__dict__


class ChecksumMismatch(TransferError):
    """The bytes that arrived differ from the bytes that were sent, by their CRC32C or their number.

    Example: see `TransferError`.
    """

    hint = "start again; if it happens again, suspect the network or the memory of this machine"


class SourceChanged(TransferError):
    """The source, a local file or an object, changed while it was read. Example: see `TransferError`."""

    hint = "start again when no program writes to it"


class TargetExists(TransferError):
    """The target exists and must not be replaced. Example: see `TransferError`."""

    hint = "remove it, or allow it to be replaced"


class TargetChanged(TransferError):
    """Another client wrote to the target: it is not the version that may be replaced, or not what was just made.

    Example: see `TransferError`.
    """

    hint = "look at it, then start again"


class Locked(TransferError):
    """Another process, or another task of this process, is working on the same transfer.

    Example: see `TransferError`.
    """


class UnsafeName(TransferError):
    """A name must not be used: it leads out of the target folder, or no file or no object can have it.

    Example: see `TransferError`.
    """


class NoEncryptionKey(TransferError):
    """An object is encrypted by a customer-supplied key, and the keys that were named are other ones, or none.

    Example: see `TransferError`.
    """

    hint = _NAME_KEY


class NoCredentials(TransferError):
    """There are no credentials, no token can be obtained for them, or the token must not be sent.

    Example: see `TransferError`.
    """


class Stalled(TransferError):
    """The server neither took nor sent a byte for too long, or a response took too long in all.

    Example: see `TransferError`.
    """

    hint = "check the network, or allow more time (`stall_timeout`)"


class WrongResponse(TransferError):
    """A response does not fit its request, for example because it describes no object."""

    hint = "check the server: a proxy or an emulator may be wrong"


def describe(error: BaseException) -> str:
    """Return the redacted text of an error, with the name of its type before it unless it is a TransferError.

    For an error without a text, of any type, return the name of the type alone.
    """
    text = redact(error_text(error))
    if isinstance(error, TransferError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def maybe_done(error: BaseException) -> bool:
    """Return whether the report that an error carries says that an earlier attempt may have succeeded.

    False if it carries no report.
    """
    tried = report(error)
    return tried is not None and tried.maybe_done


def hint_of(error: BaseException) -> str | None:
    """Return the hint of a TransferError, which may be None; None for other errors."""
    return error.hint if isinstance(error, TransferError) else None


def unreadable(path: str, error: Exception) -> TransferError:
    """Return the TransferError for the file `path` that cannot be opened or read; `error` is the reason."""
    return TransferError(f"cannot read {path!r}: {why_not(path, error)}", _READING.get(_find_errno(error)))


def unwritable(path: StrPath, error: Exception, *, verb: str = "write", named: bool = True) -> TransferError:
    """Return the TransferError for `error`, raised when a file or folder was to be written to or deleted.

    `verb`, such as "write" or "delete", names the operation in its text. `named` says that the operation adds or
    removes a name, which needs the right to write to the folder above. If `error` is not an OSError, the path is shown
    with escapes, so that a faulty character is visible.
    """
    shown = path if isinstance(error, OSError) else repr(path)
    why = why_not(path, error, named=named)
    return TransferError(f"cannot {verb} {shown}: {why}", _WRITING.get(_find_errno(error)))


def why_not(path: StrPath, error: Exception, *, named: bool = False) -> str:
    """Return the text of `error`, and after it the folder above `path` that caused it, if there is one.

    The text is the system's for an OSError, and that of the error itself otherwise. `named` says that the operation
    adds or removes a name, so a folder that may not be written to can be the cause.
    """
    text = getattr(error, "strerror", None) or str(error)
    blamed = None
    if isinstance(error, OSError):
        with suppress(OSError, ValueError):
            blamed = _find_blamed(os.fspath(path), error.errno or 0, named=named)
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


def _find_blamed(path: str, number: int, *, named: bool) -> str | None:
    """Describe the folder above `path` that explains an error with the errno `number`; None if no folder does.

    The first folder from the top counts that is no folder, is missing (ENOENT), or may not be entered (EACCES, EPERM).
    Otherwise, with `named`, it is the lowest folder that exists, if it may not be written to (EACCES, EPERM).
    """
    denied = number in (errno.EACCES, errno.EPERM)
    last = os.curdir
    for folder in _list_above(path):
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


def _list_above(path: str) -> list[str]:
    """Return the folders above a path that its text names, the uppermost first.

    For a relative path, "." comes first.
    """
    folders: list[str] = []
    folder = os.path.dirname(path.rstrip(os.sep))
    while folder and folder not in folders:
        folders.append(folder)
        folder = os.path.dirname(folder)
    return [*reversed(folders)] if os.path.isabs(path) else [os.curdir, *reversed(folders)]


def _may(folder: str, mode: int) -> bool:
    return os.access(folder, mode, effective_ids=os.access in os.supports_effective_ids)


def _find_errno(error: Exception) -> int:
    return getattr(error, "errno", None) or 0
