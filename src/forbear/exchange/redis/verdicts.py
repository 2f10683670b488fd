"""Judge what an error of a client library means for what was sent. It knows no policy.

The service says what responses and errors mean by themselves. Here it is added when an error arose, what the client can
do about a response, that of several commands one may have been executed before another was refused, and that a script
may answer with any error.
"""

from dataclasses import replace

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.exchange.redis.origin import Origin, behind, decisive, is_unreadable, origin
from forbear.exchange.redis.work import Work
from forbear.services.redis.failures import is_conflict, reply_of, verdict_of_exception
from forbear.services.redis.replies import needs_reconnect, verdict_of_reply

# The client cannot do what these ask for: go elsewhere, or load a script that only its caller has.
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
_DEMOTED = "The previous master is now a slave"  # what remains of a READONLY where Sentinel manages the connection
# Raised as soon as they are read, where the others wait for what EXEC says; the last two on clusters only.
_RAISED_AT_ONCE = ("BusyLoadingError", "ClusterDownError", "MasterDownError")


def verdict_of(error: BaseException, work: Work) -> Verdict:
    """Return what an error means for `work`, by what happened to the commands that were sent.

    Where the client failed again while it cleaned up, the first failure counts.
    """
    verdict = _alone(error, work)
    first = _first(error)
    if first is not error and not (verdict.kind is Kind.PERMANENT and work.repeatable):
        # A cancelled command tells nothing; a redirection was followed by the client itself.
        verdict = _alone(first, replace(work, redirected=True)) if isinstance(first, Exception) else TRANSIENT
    if verdict.kind is Kind.NOT_EXECUTED:
        # A script may answer with any error after it wrote, unless EXEC says that nothing was executed.
        if work.scripted and origin(first) is not Origin.BEFORE and not _is_aborted(first):
            return verdict.replace(kind=Kind.TRANSIENT)
        if work.watched:
            return CONFLICT
        if len(work.nodes) > 1:
            return verdict.replace(kind=Kind.TRANSIENT)
    return verdict


def failure_of(error: Exception) -> Exception:
    """Return the failure of what was sent, where the library raises another error in its place.

    The libraries raise the same WatchError for a connection that is lost under WATCH as for a conflict, and the loops
    of their users then apply a change again that may have been applied. They also clean up, which may fail, too.
    """
    first = _first(error)
    return first if isinstance(first, Exception) else error


def _first(error: BaseException) -> BaseException:
    first = decisive(error)
    if is_watch_error(first) and not is_conflict(first) and first.__context__ is not None:
        return decisive(first.__context__)
    return first


def is_watch_error(error: BaseException) -> bool:
    """Return whether an error is the one by which the libraries say: begin again with WATCH."""
    return any(cls.__name__ == "WatchError" for cls in type(error).__mro__)


def is_demoted(error: BaseException) -> bool:
    """Return whether the server says that it is no primary any more, so that only another connection helps."""
    reply = reply_of(error)
    return reply is not None and needs_reconnect(reply)


def _alone(error: BaseException, work: Work) -> Verdict:
    if is_watch_error(error):
        return CONFLICT
    verdict = verdict_of_exception(error)
    came = origin(error)
    if came is Origin.BEFORE:
        if verdict.kind is Kind.PERMANENT or _is_untrusted(error):
            return PERMANENT
        return verdict.replace(kind=Kind.NOT_EXECUTED)
    if came is Origin.CLEANUP:
        return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED else verdict
    reply = reply_of(error)
    if reply is not None:
        return _replied(error, reply, verdict, work)
    if str(error) == _DEMOTED:
        return NOT_EXECUTED if work.atomic else TRANSIENT
    if is_unreadable(error):
        return TRANSIENT
    if verdict.throttled:
        return verdict  # too many clients: the server said so and hung up, whatever was sent
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and came is Origin.AFTER else verdict


def _replied(error: BaseException, reply: str, verdict: Verdict, work: Work) -> Verdict:
    """Return what an error response means, which may be one of several."""
    # Refused before EXEC, so nothing of the transaction was executed; of EXEC itself no server says LOADING.
    at_once = type(error).__name__ in _RAISED_AT_ONCE and origin(error) is Origin.AFTER
    if _is_aborted(error) or (work.atomic and at_once):
        verdict = verdict_of_reply(reply)
    elif verdict.kind is Kind.NOT_EXECUTED and not work.atomic:
        return verdict.replace(kind=Kind.TRANSIENT)
    if verdict.kind is Kind.NOT_EXECUTED and reply.startswith(_FOR_THE_CALLER) and not work.redirected:
        return PERMANENT
    return verdict


def _is_aborted(error: BaseException) -> bool:
    """Return whether EXEC was refused because this error came before it."""
    return type(behind(error)).__name__ == "ExecAbortError"


def _is_untrusted(error: BaseException) -> bool:
    """Return whether the server's certificate was refused, which another attempt does not change."""
    import ssl

    return isinstance(behind(error), ssl.SSLCertVerificationError)
