"""Turn an error of a client library into the verdict on what was sent.

The service knows what error responses and exceptions mean by themselves. This module adds the phase in which the error
arose, and whether the client can follow the response. One of several commands may have been executed before another was
refused, and a script may answer with any error after it wrote.

The functions of the library in the traceback show the phase. The libraries raise the same errors while they connect and
while they wait for a response. Only while they connect is it certain that no command was sent. If a newer version has
renamed a function, the phase is unknown, which proves nothing. Cleaning up after a failure may fail, too: a second
error then hides the first, and `decisive` returns the one that belongs to the command.
"""

from collections.abc import Iterable
from enum import Enum
from types import FrameType

from forbear.core.dataclass import replace
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.interrupt import find_hidden, frames_of, has_frame, is_interrupt
from forbear.exchange.redis.descriptions import SentCommands
from forbear.run.runtime import AttemptTimeout
from forbear.services.redis.errors import (
    is_conflict,
    needs_reconnect,
    response_of,
    verdict_of_exception,
    verdict_of_response,
)

_CONNECTING = ("connect", "connect_check_health", "check_health")
_READING = ("parse_response", "read_response")
READS_QUEUED = "read_queued"
"""The name of our functions that read the responses to queued commands, before that of EXEC."""
READS_MULTI = "read_multi"
"""The name of our functions that read the response to MULTI."""

_CLEANUP = ("connect", "initialize", "release", "reset")


class Phase(Enum):
    """The phase of a command in which an error arose: before or after it was sent, in the cleanup, or unknown."""

    BEFORE = "before the command was sent"
    AFTER = "after the command was sent, at least in part"
    CLEANUP = "while the client cleaned up afterwards"
    UNKNOWN = "unknown"


def phase_of(error: BaseException) -> Phase:
    """Return the phase in which an error arose; the first function in its traceback that decides counts.

    UNKNOWN if none decides. For an attempt timeout, the traceback of the cancellation behind it counts.

    A client connects when it takes a connection from a pool, or when a command finds its own closed. It also checks the
    connection's health then. It asks a cluster for its nodes before it sends a command, and again after a failure. It
    renews some connections after the response has arrived, or to lift a WATCH.
    """
    return _phase(frames_of(_innermost(error)))


def decisive(error: BaseException) -> BaseException:
    """Return the error that shows what happened to the command; one of connecting or cleaning up may hide it."""
    first = latest = _innermost(error)
    path = list(frames_of(first))
    while (phase := _phase(path)) in (Phase.BEFORE, Phase.CLEANUP):
        hidden = find_hidden(first, path)
        if hidden is None or hidden.__traceback__ is None:
            break
        # A traceback begins where its error was caught; the frames above are those of the later error.
        path = [*path[: path.index(hidden.__traceback__.tb_frame)], *frames_of(hidden)]
        if phase is Phase.BEFORE and _phase(path) is Phase.BEFORE:
            break
        first = hidden
    return error if first is latest else first


def find_context(error: BaseException) -> BaseException | None:
    """Return the error that was being handled when this one was raised, None if they passed through different calls."""
    return find_hidden(error, list(frames_of(error)))


def is_unreadable(error: BaseException) -> bool:
    """Return whether an error is one of Python's own, raised while the client read a response with absurd contents.

    A number, size or nesting beyond reason makes the parsers raise ValueError or RecursionError. OSError does not
    count, nor does text that is not in the caller's encoding: another attempt returns the same text. An error that
    other code than the library's and asyncio's raised meanwhile does not count either.
    """
    if isinstance(error, UnicodeError | OSError) or type(error).__module__ != "builtins":
        return False
    frames = list(frames_of(error))
    readers = {_package(frame) for frame in frames if frame.f_code.co_name == "read_response"}
    return bool(readers) and _package(frames[-1]) in (*readers, "asyncio")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _phase(path: Iterable[FrameType]) -> Phase:
    names = [frame.f_code.co_name for frame in path]
    for name, then in zip(names, [*names[1:], ""], strict=False):  # an error that was never raised has no names
        if name == "get_connection" or (name in ("execute", "execute_command") and then == "initialize"):
            return Phase.BEFORE
        if name == "send_packed_command" and then != name:  # our own calls the library's
            return Phase.BEFORE if then in _CONNECTING else Phase.AFTER
        if name in _READING:
            return Phase.AFTER
        if name in _CLEANUP:
            return Phase.CLEANUP
    return Phase.UNKNOWN


def _innermost(error: BaseException) -> BaseException:
    """Return the cancellation behind an attempt timeout, which passed through the library; any other error as it is."""
    if isinstance(error, AttemptTimeout):
        while error.__cause__ is not None:
            error = error.__cause__
    return error


# The client cannot obey these: they name another node, or require a script that only its caller has.
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
# The text of the error that replaces READONLY where Sentinel manages the connection.
_DEMOTED = "The previous master is now a slave"
# Raised as soon as they are read, while other errors wait for the response to EXEC; the last two on clusters only.
_RAISED_AT_ONCE = ("BusyLoadingError", "ClusterDownError", "MasterDownError")


def verdict_of(error: BaseException, commands: SentCommands) -> Verdict:
    """Return the verdict on `commands`, the description of what an attempt sent, after the attempt ended with `error`.

    Where the client failed again while it cleaned up, the first failure counts, unless the later error is permanent and
    the commands are repeatable. A proof that nothing was executed becomes CONFLICT for watched commands. It becomes
    TRANSIENT if a script was executed, or if several nodes got a part. What a signal handler raised is PERMANENT.
    """
    if is_interrupt(error):
        return PERMANENT
    verdict = _verdict_of_one(error, commands)
    first = _first(error)
    if first is not error and not (verdict.kind is Kind.PERMANENT and commands.repeatable):
        # A cancelled command says nothing about its outcome; a redirection was followed by the client itself.
        redirected = replace(commands, redirected=True)
        verdict = _verdict_of_one(first, redirected) if isinstance(first, Exception) else TRANSIENT
    if verdict.kind is Kind.NOT_EXECUTED:
        # A script may answer with any error after it wrote, also among the responses of EXEC. Before EXEC, and if that
        # was refused, none was executed. If MULTI was refused, what follows was executed at once, or refused.
        aborted = _is_aborted(first)
        refused = aborted or has_frame(first, READS_QUEUED)
        if (commands.scripted and phase_of(first) is not Phase.BEFORE and not refused) or (
            has_frame(first, READS_MULTI) and not aborted
        ):
            return verdict.replace(kind=Kind.TRANSIENT)
        if commands.watched:
            return CONFLICT
        if len(commands.nodes) > 1:
            return verdict.replace(kind=Kind.TRANSIENT)
    return verdict


def failure_of(error: Exception) -> Exception:
    """Return the failure of what was sent if `error` hides it, otherwise `error` itself.

    The libraries raise the same WatchError for a connection that is lost under WATCH as for a conflict. A caller's loop
    would then apply a change again that may have been applied. Cleaning up may fail as well and hide the failure. A
    hidden cancellation is not returned.
    """
    first = _first(error)
    return first if isinstance(first, Exception) else error


def is_watch_error(error: BaseException) -> bool:
    """Return whether an error is the libraries' WatchError, by its class name; callers then begin again with WATCH."""
    return any(cls.__name__ == "WatchError" for cls in type(error).__mro__)


def needs_new_connection(error: BaseException) -> bool:
    """Return whether the connection must be closed after an error, so that no other command is sent over it.

    An error that is no response may have come between sending and reading, as what a signal handler raises does: the
    next command would read the response to this one. Nor is a server of use that is no longer a primary.
    """
    response = response_of(error)
    if response is not None:
        return needs_reconnect(response)
    return not is_watch_error(error) and type(error).__name__ != "DataError"  # a response to EXEC; nothing was sent


def _first(error: BaseException) -> BaseException:
    first = decisive(error)
    if is_watch_error(first) and not is_conflict(first) and first.__context__ is not None:
        return decisive(first.__context__)
    return first


def _verdict_of_one(error: BaseException, commands: SentCommands) -> Verdict:
    """Return the verdict on `commands` after one error, without regard to the errors that it hides.

    A WatchError is a CONFLICT. An error before anything was sent is NOT_EXECUTED, but PERMANENT for a refused
    certificate and for errors that are permanent by themselves. Once something was sent, only words of the server can
    prove that nothing was executed.
    """
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
    response = response_of(error)
    if response is not None:
        return _verdict_of_response(error, response, verdict, commands)
    if str(error) == _DEMOTED:
        return NOT_EXECUTED if commands.atomic else TRANSIENT
    if is_unreadable(error):
        return TRANSIENT
    if verdict.throttled and commands.atomic:
        return verdict  # too many clients: the server refused the connection and closed it
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and phase is Phase.AFTER else verdict


def _verdict_of_response(error: BaseException, response: str, verdict: Verdict, commands: SentCommands) -> Verdict:
    """Return the verdict on `commands` after an error `response`; `verdict` is the service's on the error.

    If EXEC was refused, the service's verdict on the response alone counts instead. Otherwise NOT_EXECUTED becomes
    TRANSIENT for commands that are not atomic. It becomes PERMANENT for a response that only the caller can obey, such
    as MOVED or NOSCRIPT, unless they are `redirected`.
    """
    # Refused before EXEC, so nothing of the transaction was executed; no server answers EXEC itself with LOADING.
    at_once = type(error).__name__ in _RAISED_AT_ONCE and phase_of(error) is Phase.AFTER
    if _is_aborted(error) or (commands.atomic and at_once):
        verdict = verdict_of_response(response)
    elif verdict.kind is Kind.NOT_EXECUTED and not commands.atomic:
        return verdict.replace(kind=Kind.TRANSIENT)
    if verdict.kind is Kind.NOT_EXECUTED and response.startswith(_FOR_THE_CALLER) and not commands.redirected:
        return PERMANENT
    return verdict


def _is_aborted(error: BaseException) -> bool:
    """Return whether EXEC was refused because of this error of an earlier command: it was raised over EXECABORT."""
    return type(find_context(error)).__name__ == "ExecAbortError"


def _is_untrusted(error: BaseException) -> bool:
    """Return whether this error was raised over a refusal of the server's certificate, which would come again."""
    import ssl

    return isinstance(find_context(error), ssl.SSLCertVerificationError)


def is_refused(verdict: Verdict, error: Exception, commands: SentCommands) -> bool:
    """Return whether none of the commands was executed: that is proven, or the server has refused its one command.

    An error among the responses of EXEC says nothing about the other commands of the transaction.
    """
    if verdict.kind in (Kind.NOT_EXECUTED, Kind.CONFLICT):
        return True
    if verdict.kind is not Kind.PERMANENT or not commands.atomic or commands.scripted or len(commands.nodes) > 1:
        return False
    return response_of(error) is not None and (not commands.transaction or _is_aborted(error))
