"""Turn an error of a client library into the verdict on what was sent.

The service knows what error responses and exceptions mean by themselves. This module adds the phase in which the error
arose, and whether the client can follow the response. One of several commands may have been executed before another was
refused, and a script may answer with any error after it wrote.
"""

from dataclasses import replace

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.interrupt import is_interrupt
from forbear.exchange.redis.descriptions import SentCommands
from forbear.exchange.redis.phase import (
    Phase,
    decisive,
    find_context,
    is_of_multi,
    is_read_before_exec,
    is_unreadable,
    phase_of,
)
from forbear.services.redis.errors import (
    is_conflict,
    needs_reconnect,
    response_of,
    verdict_of_exception,
    verdict_of_response,
)

# The client cannot obey these: they name another node, or require a script that only its caller has.
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
# The text of the error that replaces READONLY where Sentinel manages the connection.
_DEMOTED = "The previous master is now a slave"
# Raised as soon as they are read, while other errors wait for the response to EXEC; the last two on clusters only.
_RAISED_AT_ONCE = ("BusyLoadingError", "ClusterDownError", "MasterDownError")


def verdict_of(error: BaseException, work: SentCommands) -> Verdict:
    """Return the verdict on `work`, the description of what an attempt sent, after the attempt ended with `error`.

    Where the client failed again while it cleaned up, the first failure counts, unless the later error is permanent and
    the work is repeatable. A proof that nothing was executed becomes CONFLICT for watched work. It becomes TRANSIENT if
    a script was executed, or if several nodes got a part. What a signal handler raised is PERMANENT.
    """
    if is_interrupt(error):
        return PERMANENT
    verdict = _verdict_of_one(error, work)
    first = _first(error)
    if first is not error and not (verdict.kind is Kind.PERMANENT and work.repeatable):
        # A cancelled command says nothing about its outcome; a redirection was followed by the client itself.
        redirected = replace(work, redirected=True)
        verdict = _verdict_of_one(first, redirected) if isinstance(first, Exception) else TRANSIENT
    if verdict.kind is Kind.NOT_EXECUTED:
        # A script may answer with any error after it wrote. Before EXEC, and if EXEC was refused, none was executed.
        refused = _is_aborted(first) or is_read_before_exec(first)
        if (work.scripted and phase_of(first) is not Phase.BEFORE and not refused) or (
            is_of_multi(first) and not _is_aborted(first)
        ):
            return verdict.replace(kind=Kind.TRANSIENT)
        if work.watched:
            return CONFLICT
        if len(work.nodes) > 1:
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


def _verdict_of_one(error: BaseException, work: SentCommands) -> Verdict:
    """Return the verdict on `work` after one error, without regard to the errors that it hides.

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
        return _verdict_of_response(error, response, verdict, work)
    if str(error) == _DEMOTED:
        return NOT_EXECUTED if work.atomic else TRANSIENT
    if is_unreadable(error):
        return TRANSIENT
    if verdict.throttled and work.atomic:
        return verdict  # too many clients: the server refused the connection and closed it
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and phase is Phase.AFTER else verdict


def _verdict_of_response(error: BaseException, response: str, verdict: Verdict, work: SentCommands) -> Verdict:
    """Return the verdict on `work` after an error `response`; `verdict` is the service's on the error.

    If EXEC was refused, the service's verdict on the response alone counts instead. Otherwise NOT_EXECUTED becomes
    TRANSIENT for work that is not atomic. It becomes PERMANENT for a response that only the caller can obey, such as
    MOVED or NOSCRIPT, unless the work is `redirected`.
    """
    # Refused before EXEC, so nothing of the transaction was executed; no server answers EXEC itself with LOADING.
    at_once = type(error).__name__ in _RAISED_AT_ONCE and phase_of(error) is Phase.AFTER
    if _is_aborted(error) or (work.atomic and at_once):
        verdict = verdict_of_response(response)
    elif verdict.kind is Kind.NOT_EXECUTED and not work.atomic:
        return verdict.replace(kind=Kind.TRANSIENT)
    if verdict.kind is Kind.NOT_EXECUTED and response.startswith(_FOR_THE_CALLER) and not work.redirected:
        return PERMANENT
    return verdict


def _is_aborted(error: BaseException) -> bool:
    """Return whether EXEC was refused because of this error of an earlier command: it was raised over EXECABORT."""
    return type(find_context(error)).__name__ == "ExecAbortError"


def _is_untrusted(error: BaseException) -> bool:
    """Return whether this error was raised over a refusal of the server's certificate, which would come again."""
    import ssl

    return isinstance(find_context(error), ssl.SSLCertVerificationError)
