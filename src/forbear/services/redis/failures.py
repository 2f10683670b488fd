"""What an error of redis-py or valkey-py means. It imports neither: their classes are known by name.

An error that says for certain that nothing was sent is NOT_EXECUTED; any other failure of the connection leaves the
outcome unknown. That holds for clients that do not retry by themselves: their last error hides the first.
"""

import re
from collections.abc import Iterator, Mapping
from socket import gaierror

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.redis.replies import verdict_of_reply

_LIBRARIES = ("redis", "valkey")

# The libraries cut these codes off a reply and say them by a class; newer ones keep them as `status_code`, too.
_CODES: Mapping[str, str] = {
    "AskError": "ASK",
    "BusyLoadingError": "LOADING",
    "ClusterDownError": "CLUSTERDOWN",
    "ExecAbortError": "EXECABORT",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoScriptError": "NOSCRIPT",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "ResponseError": "",
    "TryAgainError": "TRYAGAIN",
}

_VERDICTS: Mapping[str, Verdict] = {
    "AuthenticationError": PERMANENT,
    "AuthorizationError": PERMANENT,
    "ClusterError": NOT_EXECUTED,  # redirected too often
    "ExternalAuthProviderError": NOT_EXECUTED,
    "InvalidResponse": TRANSIENT,
    "MasterNotFoundError": NOT_EXECUTED,
    "MaxConnectionsError": NOT_EXECUTED,
    "SlaveNotFoundError": NOT_EXECUTED,
    "SlotNotCoveredError": NOT_EXECUTED,
}

_IN_PIPELINE = " of pipeline caused error: "
_ARGUMENTS_OF_ERROR = ("('", '("')  # which asyncio clients put there instead of the text
_NO_CONNECTION = "No connection available."  # of a pool that waits
# With the number of an error, or the text that asyncio has where each address of a name refused.
_NOT_CONNECTED = re.compile(r"Error (\S+ |Multiple exceptions: \[Errno .* )?connecting to ")
_FULL = "max number of clients"
_NO_CLUSTER = ("Redis Cluster cannot be connected", "Valkey Cluster cannot be connected")
BEGIN_AGAIN = "Nothing was executed; begin again with WATCH"
"""The text of the WatchError that our clients raise for a cycle that broke off before EXEC was executed."""

_CONFLICTS = ("Watched variable changed.", "Slot rebalancing occurred while watching keys")


def verdict_of_exception(error: BaseException) -> Verdict:
    """What an error means that a Redis or Valkey client raised; PERMANENT for errors of any other kind.

    An error reply to one command of a pipeline says nothing of the others: what would be NOT_EXECUTED alone is then
    TRANSIENT, for the pipeline as a whole.
    """
    reply = reply_of(error)
    if reply is not None:
        verdict = verdict_of_reply(reply)
        return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and _IN_PIPELINE in str(error) else verdict
    for name in _names(error):
        verdict_by_name = _verdict(name, str(error))
        if verdict_by_name is not None:
            return verdict_by_name
    if isinstance(error, ConnectionRefusedError | gaierror):
        return NOT_EXECUTED
    return TRANSIENT if isinstance(error, ConnectionError | TimeoutError) else PERMANENT


def is_conflict(error: BaseException) -> bool:
    """Return whether the cycle has to begin anew with WATCH: a watched key was changed, or EXEC was not executed."""
    return verdict_of_exception(error).kind is Kind.CONFLICT or str(error) == BEGIN_AGAIN


def reply_of(error: BaseException) -> str | None:
    """The server's error reply that an error stands for, with its code where that is known; None for other errors."""
    for name in _names(error):
        if name in _CODES:
            code: str = getattr(error, "status_code", None) or _CODES[name]
            text = str(error).rpartition(_IN_PIPELINE)[2]
            if text.startswith(_ARGUMENTS_OF_ERROR):
                text = text[2:]
            return f"{code} {text}".lstrip()
    return None


def _names(error: BaseException) -> Iterator[str]:
    """The names of the libraries' classes that an error is of, the closest first."""
    return (cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in _LIBRARIES)


def _verdict(name: str, text: str) -> Verdict | None:
    if name == "ConnectionError":
        if text.startswith(_FULL):
            return verdict_of_reply(text)
        return NOT_EXECUTED if _was_not_connected(text) else TRANSIENT
    if name == "TimeoutError":
        return NOT_EXECUTED if text == "Timeout connecting to server" else TRANSIENT
    if text == BEGIN_AGAIN:
        return NOT_EXECUTED
    if name == "WatchError":
        # The libraries raise it, too, where the connection was lost under WATCH and EXEC may have been executed.
        return CONFLICT if text in _CONFLICTS else TRANSIENT
    if text.startswith(_NO_CLUSTER):
        return TRANSIENT  # or that is what a command was lost for
    return _VERDICTS.get(name)


def _was_not_connected(text: str) -> bool:
    return text == _NO_CONNECTION or _NOT_CONNECTED.match(text) is not None
