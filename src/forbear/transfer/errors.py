"""Errors of transfers besides those of the network; each says what to do about it, and none holds a secret."""

from collections.abc import Mapping

from forbear.core.redact import redact
from forbear.core.report import report, text_of
from forbear.http.status import reason


class TransferError(Exception):
    """A transfer that failed; `hint` is the cure, where there is one: most kinds have a usual one.

    Its text is redacted: it may quote a server, or the URL of an upload session.
    """

    hint: str | None = None

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(redact(text))
        if hint is not None:
            self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # it comes back from other processes as it was


class HttpError(TransferError):
    """A reply that ended a transfer: `what` was asked for; `status`, `message` and `headers` are what came back."""

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
    """The bytes that arrived are not those that were sent, by their CRC32C."""

    hint = "start again; if it stays so, suspect the network or the memory of this machine"


class SourceChanged(TransferError):
    """The source became another one while it was read."""

    hint = "start again when nobody writes to it any more"


class TargetExists(TransferError):
    """There is something at the target, and it is not to be replaced."""

    hint = "remove it, or allow it to be replaced"


class TargetChanged(TransferError):
    """Somebody else wrote to the target meanwhile."""

    hint = "look at it, then start again"


class Locked(TransferError):
    """Another process is at work on the same transfer."""


class UnsafeName(TransferError):
    """An object's name that would lead out of the target folder, or that no file can have."""


class NoCredentials(TransferError):
    """There are no credentials, or no token is to be had for them, or it may not be sent."""


class Stalled(TransferError):
    """No byte moved for too long."""

    hint = "check the network, or allow for more (`stall_timeout`)"


class WrongReply(TransferError):
    """A reply that is not what was asked for; the next one may be."""

    hint = "look at what answers: a proxy or an emulator may be wrong"


_HINTS = {
    401: "log in with `gcloud auth application-default login`, or name a key file as `credentials`",
    403: "ask the owner of the bucket for the permission",
    404: "check the names of the bucket and the object",
    412: "somebody else changed the object meanwhile: look at it, then start again",
}


def said(error: BaseException) -> str:
    """Return the text of an error without secrets, with its kind where it is not one that says all by itself."""
    text = redact(text_of(error))
    if isinstance(error, TransferError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def maybe_done(error: BaseException) -> bool:
    """Whether what ended with this error may have been done, or was, by an attempt that it tells of."""
    tried = report(error)
    return tried is not None and tried.maybe_done


def cure(error: BaseException) -> str | None:
    """The hint of an error, where it has one."""
    return error.hint if isinstance(error, TransferError) else None
