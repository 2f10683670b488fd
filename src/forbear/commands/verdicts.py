"""What an error that came out of a client library means for what was sent. It knows no policy.

The service says what replies and errors mean by themselves. Here it is added when an error arose, what the client can
do about a reply, and that of several commands one may have been executed before another was refused.
"""

from forbear.commands.origin import Origin, behind, origin
from forbear.commands.work import Work
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.redis.failures import is_conflict, reply_of, verdict_of_exception
from forbear.services.redis.replies import needs_reconnect, verdict_of_reply

# The client cannot do what these ask for: go elsewhere, or load a script that only its caller has.
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
_DEMOTED = "The previous master is now a slave"  # what remains of a READONLY where Sentinel manages the connection
_LOADING = "BusyLoadingError"
_UNREACHABLE = " Cluster cannot be connected"


def verdict_of(error: BaseException, work: Work) -> Verdict:
    """What an error means for `work`."""
    verdict = _alone(error, work)
    if verdict.kind is Kind.NOT_EXECUTED:
        if work.watched:
            return CONFLICT
        if len(work.nodes) > 1:
            return verdict.replace(kind=Kind.TRANSIENT)
    return verdict


def lost_under_watch(error: Exception) -> Exception | None:
    """What was lost where the library says that a watched key changed, if the loss may hide an execution.

    The libraries raise the same WatchError for a connection that is lost under WATCH as for a conflict, and their
    users' loops then apply a change again that may have been applied.
    """
    if not is_watch_error(error) or is_conflict(error):
        return None
    lost = error.__context__
    return lost if isinstance(lost, Exception) and origin(lost) is not Origin.BEFORE else None


def is_watch_error(error: BaseException) -> bool:
    """Whether an error is the libraries' word for: begin again with WATCH."""
    return any(cls.__name__ == "WatchError" for cls in type(error).__mro__)


def is_demoted(error: BaseException) -> bool:
    """Whether the server says that it is no primary any more, so that only another connection helps."""
    reply = reply_of(error)
    return reply is not None and needs_reconnect(reply)


def _alone(error: BaseException, work: Work) -> Verdict:
    if is_watch_error(error):
        return CONFLICT  # see lost_under_watch: of what comes out, nothing was executed
    verdict = verdict_of_exception(error)
    came = origin(error)
    if came is Origin.BEFORE:
        if verdict.kind is Kind.PERMANENT or _is_untrusted(error):
            return PERMANENT
        return verdict.replace(kind=Kind.NOT_EXECUTED)
    reply = reply_of(error)
    if reply is not None:
        return _replied(error, reply, verdict, work)
    if str(error) == _DEMOTED:
        return NOT_EXECUTED if work.atomic else TRANSIENT
    if _UNREACHABLE in str(error):
        lost = behind(error)
        return TRANSIENT if lost is None else _alone(lost, work)
    if verdict.throttled:
        return verdict  # too many clients: the server said so and hung up, whatever was sent
    return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and came is Origin.AFTER else verdict


def _replied(error: BaseException, reply: str, verdict: Verdict, work: Work) -> Verdict:
    """What an error reply means, which may be one of several."""
    # Refused before EXEC, so nothing of the transaction was executed; of EXEC itself no server says LOADING.
    if type(behind(error)).__name__ == "ExecAbortError" or (work.atomic and type(error).__name__ == _LOADING):
        verdict = verdict_of_reply(reply)
    elif verdict.kind is Kind.NOT_EXECUTED and not work.atomic:
        return verdict.replace(kind=Kind.TRANSIENT)
    if verdict.kind is Kind.NOT_EXECUTED and reply.startswith(_FOR_THE_CALLER) and not work.redirected:
        return PERMANENT
    return verdict


def _is_untrusted(error: BaseException) -> bool:
    """Whether the server's certificate was refused, which another attempt does not change."""
    import ssl

    return isinstance(behind(error), ssl.SSLCertVerificationError)
