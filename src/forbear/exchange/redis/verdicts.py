"""Turn an error of a client library into the verdict on what was sent.

The service knows what error responses and exceptions mean by themselves. This module adds the phase in which the error
arose, and whether the client can follow the response. One of several commands may have been executed before another was
refused, and a script may answer with any error after it wrote.

The libraries raise the same errors while they connect and while they wait for a response. Only while they connect is it
certain that no command was sent. The library's functions in the traceback show which of the two it was. If a newer
version has renamed a function, a command counts as sent.

The libraries also clean up after a failure, and that may fail, too: a second error then hides the first. `decisive`
returns the error that belongs to the command.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from types import FrameType

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.redis.work import Work
from forbear.run.runtime import AttemptTimeout
from forbear.services.redis.errors import is_conflict, needs_reconnect, reply_of, verdict_of_exception, verdict_of_reply

_CONNECTING = ("connect", "connect_check_health", "check_health")
_READING = ("parse_response", "read_response")
_CLEANUP = ("connect", "initialize", "release", "reset")


class Phase(Enum):
    """The phase of a command in which an error arose."""

    BEFORE = "before the command was sent"
    AFTER = "after the command was sent, at least in part"
    CLEANUP = "while the client cleaned up afterwards"
    UNKNOWN = "unknown"


def phase_of(error: BaseException) -> Phase:
    """Return the phase in which an error arose; the first function in its traceback that decides counts.

    A client connects when it takes a connection from a pool, or when a command finds its own closed. It also checks the
    connection's health then. It asks a cluster for its nodes before it sends a command, and again after a
    failure. It renews some connections after the response has arrived, or to lift a WATCH.
    """
    return _phase(_frames(_innermost(error)))


def decisive(error: BaseException) -> BaseException:
    """Return the error that shows what happened to the command: `error`, or one that it hides.

    An error of connecting or cleaning up hides the failure of a command that was sent before.
    """
    first = latest = _innermost(error)
    path = list(_frames(first))
    while (phase := _phase(path)) in (Phase.BEFORE, Phase.CLEANUP):
        hidden = _behind(first, path)
        if hidden is None or hidden.__traceback__ is None:
            break
        # A traceback begins where its error was caught; the frames above are those of the later error.
        path = [*path[: path.index(hidden.__traceback__.tb_frame)], *_frames(hidden)]
        if phase is Phase.BEFORE and _phase(path) is Phase.BEFORE:
            break
        first = hidden
    return error if first is latest else first


def behind(error: BaseException) -> BaseException | None:
    """Return the error that was being handled when this one was raised, if both passed through the same call.

    Python also notes an error that the caller was handling at the time; that one has nothing to do with this one.
    """
    return _behind(error, list(_frames(error)))


def is_unreadable(error: BaseException) -> bool:
    """Return whether the client could not read a response, because its number, size or nesting is absurd.

    The parsers then raise Python's own errors, such as ValueError and RecursionError. Text that is not in the caller's
    encoding does not count: another attempt returns the same text.
    """
    if isinstance(error, UnicodeError | OSError) or type(error).__module__ != "builtins":
        return False
    return any(frame.f_code.co_name == "read_response" for frame in _frames(error))


def _phase(path: Iterable[FrameType]) -> Phase:
    names = [frame.f_code.co_name for frame in path]
    for name, then in zip(names, [*names[1:], ""], strict=False):  # an error that was never raised has no names
        if name == "get_connection" or (name in ("execute", "execute_command") and then == "initialize"):
            return Phase.BEFORE
        if name == "send_packed_command":
            return Phase.BEFORE if then in _CONNECTING else Phase.AFTER
        if name in _READING:
            return Phase.AFTER
        if name in _CLEANUP:
            return Phase.CLEANUP
    return Phase.UNKNOWN


def _behind(error: BaseException, path: Sequence[FrameType]) -> BaseException | None:
    context = error.__context__
    if context is None or context.__traceback__ is None:
        return None
    return context if context.__traceback__.tb_frame in path else None


def _innermost(error: BaseException) -> BaseException:
    """Return the cancellation behind an attempt timeout: it passed through the library, the timeout itself did not."""
    if isinstance(error, AttemptTimeout):
        while error.__cause__ is not None:
            error = error.__cause__
    return error


def _frames(error: BaseException) -> Iterator[FrameType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


# The client cannot obey these: they name another node, or require a script that only its caller has.
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
# The text of the error that replaces READONLY where Sentinel manages the connection.
_DEMOTED = "The previous master is now a slave"
# Raised as soon as they are read, while other errors wait for the response to EXEC; the last two on clusters only.
_RAISED_AT_ONCE = ("BusyLoadingError", "ClusterDownError", "MasterDownError")


def verdict_of(error: BaseException, work: Work) -> Verdict:
    """Return the verdict on `work` after an error, by the fate of the commands that were sent.

    Where the client failed again while it cleaned up, the first failure counts.
    """
    verdict = _verdict_of_one(error, work)
    first = _first(error)
    if first is not error and not (verdict.kind is Kind.PERMANENT and work.repeatable):
        # A cancelled command says nothing about its outcome; a redirection was followed by the client itself.
        redirected = replace(work, redirected=True)
        verdict = _verdict_of_one(first, redirected) if isinstance(first, Exception) else TRANSIENT
    if verdict.kind is Kind.NOT_EXECUTED:
        # A script may answer with any error after it wrote, unless EXEC says that nothing was executed.
        if work.scripted and phase_of(first) is not Phase.BEFORE and not _is_aborted(first):
            return verdict.replace(kind=Kind.TRANSIENT)
        if work.watched:
            return CONFLICT
        if len(work.nodes) > 1:
            return verdict.replace(kind=Kind.TRANSIENT)
    return verdict


def failure_of(error: Exception) -> Exception:
    """Return the failure of what was sent, where the library raises another error in its place.

    The libraries raise the same WatchError for a connection that is lost under WATCH as for a conflict. A caller's loop
    would then apply a change again that may have been applied. Cleaning up may fail as well and hide the failure.
    """
    first = _first(error)
    return first if isinstance(first, Exception) else error


def is_watch_error(error: BaseException) -> bool:
    """Return whether an error is the libraries' WatchError, after which callers begin again with WATCH."""
    return any(cls.__name__ == "WatchError" for cls in type(error).__mro__)


def is_demoted(error: BaseException) -> bool:
    """Return whether the server says that it is a primary no longer, so that only another connection helps."""
    response = reply_of(error)
    return response is not None and needs_reconnect(response)


def _first(error: BaseException) -> BaseException:
    first = decisive(error)
    if is_watch_error(first) and not is_conflict(first) and first.__context__ is not None:
        return decisive(first.__context__)
    return first


def _verdict_of_one(error: BaseException, work: Work) -> Verdict:
    """Return the verdict after one error, whatever errors it hides."""
    if is_watch_error(error):
        return CONFLICT
    verdict = verdict_of_exception(error)
    phase = phase_of(error)
    if phase is Phase.BEFORE:
        if verdict.kind is Kind.PERMANENT or _is_untrusted(error):
            return PERMANENT
        return verdict.replace(kind=Kind.NOT_EXECUTED)
    if phase is Phase.CLEANUP:
        return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED else verdict
    response = reply_of(error)
    if response is not None:
        return _verdict_of_response(error, response, verdict, work)
    if str(error) == _DEMOTED:
        return NOT_EXECUTED if work.atomic else TRANSIENT
    if is_unreadable(error):
        return TRANSIENT
    if verdict.throttled:
        return verdict  # too many clients: the server refused the connection and closed it
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and phase is Phase.AFTER else verdict


def _verdict_of_response(error: BaseException, response: str, verdict: Verdict, work: Work) -> Verdict:
    """Return the verdict after an error response, which may be one of several."""
    # Refused before EXEC, so nothing of the transaction was executed; no server answers EXEC itself with LOADING.
    at_once = type(error).__name__ in _RAISED_AT_ONCE and phase_of(error) is Phase.AFTER
    if _is_aborted(error) or (work.atomic and at_once):
        verdict = verdict_of_reply(response)
    elif verdict.kind is Kind.NOT_EXECUTED and not work.atomic:
        return verdict.replace(kind=Kind.TRANSIENT)
    if verdict.kind is Kind.NOT_EXECUTED and response.startswith(_FOR_THE_CALLER) and not work.redirected:
        return PERMANENT
    return verdict


def _is_aborted(error: BaseException) -> bool:
    """Return whether EXEC was refused because this error came before it."""
    return type(behind(error)).__name__ == "ExecAbortError"


def _is_untrusted(error: BaseException) -> bool:
    """Return whether the server's certificate was refused, which another attempt does not change."""
    import ssl

    return isinstance(behind(error), ssl.SSLCertVerificationError)
