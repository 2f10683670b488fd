"""What an error of redis-py or valkey-py means. It imports neither: their classes are known by name.

An error that says for certain that nothing was sent is NOT_EXECUTED; any other failure of the connection leaves the
outcome unknown. That holds for clients that do not retry by themselves: their last error hides the first.
"""

from collections.abc import Mapping
from socket import gaierror

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.redis.replies import verdict_of_reply

_LIBRARIES = ("redis", "valkey")

# The libraries cut the code off a reply and say it by a class.
_CODES: Mapping[str, str] = {
    "AskError": "ASK ",
    "BusyLoadingError": "LOADING ",
    "ClusterDownError": "CLUSTERDOWN ",
    "ExecAbortError": "EXECABORT ",
    "MasterDownError": "MASTERDOWN ",
    "MovedError": "MOVED ",
    "NoScriptError": "NOSCRIPT ",
    "OutOfMemoryError": "OOM ",
    "ReadOnlyError": "READONLY ",
    "ResponseError": "",
    "TryAgainError": "TRYAGAIN ",
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
_NO_CONNECTION = "No connection available."  # of a pool that waits
_FULL = "max number of clients"
_NO_CLUSTER = ("Redis Cluster cannot be connected", "Valkey Cluster cannot be connected")
_LOST_IN_WATCH = " occurred while watching one or more keys"


def verdict_of_exception(error: BaseException) -> Verdict:
    """What an error means that a Redis or Valkey client raised; PERMANENT for errors of any other kind.

    An error reply to one command of a pipeline says nothing of the others: what would be NOT_EXECUTED alone is then
    TRANSIENT, for the pipeline as a whole.
    """
    for cls in type(error).__mro__:
        if cls.__module__.partition(".")[0] in _LIBRARIES:
            verdict = _verdict(cls.__name__, str(error))
            if verdict is not None:
                return verdict
    if isinstance(error, ConnectionRefusedError | gaierror):
        return NOT_EXECUTED
    return TRANSIENT if isinstance(error, ConnectionError | TimeoutError) else PERMANENT


def reply_of(error: BaseException) -> str | None:
    """The server's error reply that an error stands for, with its code where that is known; None for other errors."""
    for cls in type(error).__mro__:
        code = _CODES.get(cls.__name__)
        if code is not None and cls.__module__.partition(".")[0] in _LIBRARIES:
            return code + str(error).rpartition(_IN_PIPELINE)[2]
    return None


def _verdict(name: str, text: str) -> Verdict | None:
    if name in _CODES:
        verdict = verdict_of_reply(_CODES[name] + text.rpartition(_IN_PIPELINE)[2])
        return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and _IN_PIPELINE in text else verdict
    if name == "ConnectionError":
        if text.startswith(_FULL):
            return verdict_of_reply(f"ERR {text}")
        return NOT_EXECUTED if _was_not_connected(text) else TRANSIENT
    if name == "TimeoutError":
        return NOT_EXECUTED if text == "Timeout connecting to server" else TRANSIENT
    if name == "WatchError":
        # The libraries say "conflict", too, where the connection was lost and EXEC may have been executed.
        return TRANSIENT if text.endswith(_LOST_IN_WATCH) else CONFLICT
    if text.startswith(_NO_CLUSTER):
        return TRANSIENT  # or that is what a command was lost for
    return _VERDICTS.get(name)


def _was_not_connected(text: str) -> bool:
    return text == _NO_CONNECTION or (text.startswith("Error ") and " connecting to " in text)
