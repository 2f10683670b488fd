"""The meaning of Redis's error responses and of the client libraries' errors; the policy for data commands.

The server checks most of what can go wrong before it executes a command, and says so with a code. A script can send the
same code after it wrote something, so for `scripted` commands no code proves anything.

The classes of the client libraries (redis, valkey) are known by name; neither library is imported. An error proves
NOT_EXECUTED only if nothing was sent, or if the server refused. Any other failure of a connection leaves the outcome
unknown. That holds for clients that do not retry by themselves: their last error hides the first.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from socket import gaierror

from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy

_AT_ONCE = Verdict(Kind.NOT_EXECUTED, delay=0)
_CROWDED = Verdict(Kind.NOT_EXECUTED, throttled=True)

_BY_CODE: Mapping[str, Verdict] = {
    "ASK": _AT_ONCE,  # to the node it names, after ASKING
    "BUSY": NOT_EXECUTED,  # a script runs
    "CLUSTERDOWN": NOT_EXECUTED,
    "IOERR": TRANSIENT,  # of MIGRATE: the other server may have executed its part
    "LOADING": NOT_EXECUTED,
    "MASTERDOWN": NOT_EXECUTED,
    "MOVED": _AT_ONCE,  # to the node it names
    "NOREPLICAS": NOT_EXECUTED,  # too few of them, as during a failover
    "NOSCRIPT": NOT_EXECUTED,  # after loading it
    "READONLY": NOT_EXECUTED,  # on a new connection: this server was the primary once
    "REDIRECT": _AT_ONCE,  # to the primary it names
    "TRYAGAIN": NOT_EXECUTED,
}
_TOO_MANY_CLIENTS = ("ERR max number of clients", "max number of clients")  # clients cut off ERR
_ABORTED = "EXECABORT Transaction discarded because of: "
_FORCED = "UNBLOCKED force unblock"  # the primary became a replica; any other UNBLOCKED was asked for


def verdict_of_response(text: str) -> Verdict:
    """Return the verdict on an error response, such as "LOADING Redis is loading the dataset in memory".

    Unknown codes are permanent; a lack of memory (OOM) or disk (MISCONF) must be cured first. For EXECABORT the error
    that it quotes counts.

    >>> verdict_of_response("LOADING Redis is loading the dataset in memory").kind.value
    'not executed'
    """
    text = text.removeprefix("-")
    if text.startswith(_ABORTED):
        return verdict_of_response(text.removeprefix(_ABORTED))
    if text.startswith(_TOO_MANY_CLIENTS):
        return _CROWDED
    if text.startswith(_FORCED):
        return NOT_EXECUTED
    return _BY_CODE.get(text.partition(" ")[0], PERMANENT)


def needs_reconnect(text: str) -> bool:
    """Return whether an error response says that this server is no longer a primary: only a new connection helps.

    >>> needs_reconnect("READONLY You can't write against a read only replica."), needs_reconnect("WRONGTYPE")
    (True, False)
    """
    text = text.removeprefix("-").removeprefix(_ABORTED)
    return text.partition(" ")[0] == "READONLY" or text.startswith(_FORCED)


_LIBRARIES = ("redis", "valkey")

# The libraries remove these codes from an error response and raise a class for each; newer ones keep the code, too.
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

_NUMBERED = "Command # "
_IN_PIPELINE = " of pipeline caused error: "
_ARGUMENTS_OF_ERROR = ("('", '("')  # asyncio clients raise it instead of the text
_NO_CONNECTION = "No connection available."  # of a pool that waits
# With an error number, or asyncio's text for a host name all of whose addresses refused.
_NOT_CONNECTED = re.compile(r"Error (\S+ |Multiple exceptions: \[Errno .* )?connecting to ")
_FULL = "max number of clients"
_NO_CLUSTER = ("Redis Cluster cannot be connected", "Valkey Cluster cannot be connected")
BEGIN_AGAIN = "Nothing was executed; begin again with WATCH"
"""The text of the WatchError that our clients raise if a cycle ends before EXEC was executed."""

_CONFLICTS = ("Watched variable changed.", "Slot rebalancing occurred while watching keys")


def verdict_of_exception(error: BaseException) -> Verdict:
    """Return the verdict on an error of a Redis or Valkey client, or of a connection; PERMANENT for any other error.

    A connection that was certainly not made is NOT_EXECUTED, one that was lost or timed out TRANSIENT, a changed
    watched key CONFLICT. An error response to one command of a pipeline says nothing about the others.

    >>> import redis
    >>> verdict_of_exception(redis.TimeoutError("Timeout reading from socket")).kind.value
    'transient'
    """
    response = response_of(error)
    if response is not None:
        verdict = verdict_of_response(response)
        return TRANSIENT if verdict.kind is Kind.NOT_EXECUTED and _IN_PIPELINE in str(error) else verdict
    for name in _names(error):
        verdict_by_name = _verdict(name, str(error))
        if verdict_by_name is not None:
            return verdict_by_name
    if isinstance(error, ConnectionRefusedError | gaierror):
        return NOT_EXECUTED
    return TRANSIENT if isinstance(error, ConnectionError | TimeoutError) else PERMANENT


def is_conflict(error: BaseException) -> bool:
    """Return whether the cycle must start over with WATCH: EXEC was refused, or certainly not executed.

    >>> import redis
    >>> is_conflict(redis.WatchError("Watched variable changed.")), is_conflict(redis.ResponseError("ERR"))
    (True, False)
    """
    return verdict_of_exception(error).kind is Kind.CONFLICT or str(error) == BEGIN_AGAIN


def response_of(error: BaseException) -> str | None:
    """Return the server's error response that a client library's error stands for, with its code; None without.

    >>> import redis
    >>> response_of(redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"))
    'LOADING Redis is loading the dataset in memory'
    """
    for name in _names(error):
        if name in _CODES:
            code: str = getattr(error, "status_code", None) or _CODES[name]
            text = str(error).rpartition(_IN_PIPELINE)[2]
            if text.startswith(_ARGUMENTS_OF_ERROR):
                text = text[2:]
            return f"{code} {text}".lstrip()
    return None


def raise_first(commands: Iterable[Sequence[object]], responses: Iterable[object]) -> None:
    """Raise the first error among the responses of a pipeline, with its command's name and number (from 1) in the text.

    The libraries quote the arguments, too.
    """
    for number, (command, error) in enumerate(zip(commands, responses, strict=True), 1):
        if isinstance(error, Exception):
            text = error.args[0] if error.args else ""
            error.args = (f"{_NUMBERED}{number} ({command[0]}){_IN_PIPELINE}{text}",)
            raise error


def hide_arguments(text: str) -> str:
    """Return the text of an error without the command's arguments, which the libraries quote; linear in its length."""
    start, end = text.find(_NUMBERED), text.rfind(f"){_IN_PIPELINE}")
    opened = text.find("(", start) + 1
    if start < 0 or not 0 < opened <= end:
        return text
    name = text[opened : min(end, opened + _LONGEST_NAME)].split(maxsplit=1)[:1]
    return text[:opened] + "".join(name) + text[end:]


_LONGEST_NAME = 100

vars(verdict_of_exception)["is_of_service"] = True  # as ErrorVerdicts has it


def _names(error: BaseException) -> Iterator[str]:
    """Yield the names of the client libraries' classes that an error is an instance of, the most specific first."""
    return (cls.__name__ for cls in type(error).__mro__ if cls.__module__.partition(".")[0] in _LIBRARIES)


def _verdict(name: str, text: str) -> Verdict | None:
    if name == "ConnectionError":
        if text.startswith(_FULL):
            return verdict_of_response(text)
        return NOT_EXECUTED if text == _NO_CONNECTION or _NOT_CONNECTED.match(text) else TRANSIENT
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


@cache
def policy() -> Policy:
    """Return the recommended policy for the data commands of Redis and Valkey.

    At most 10 retries within 10 s, each after a random part of 0.02, 0.04, 0.08 … 1 s. There is no page to follow.
    redis-py 8.1 waits by the same figures, because a data command takes a fraction of a millisecond and its caller
    waits for it. It differs from redis-py as follows:

    - The jitter is drawn below the cap instead of being cut off by it, so that waits at the cap stay spread out.
    - There is a limit in time: eleven attempts at a server that does not answer may take minutes. A failover may take
      longer than 10 s; a caller that can wait for it uses `policy.with_timeout(60).with_attempts(100)`.
    - Errors are judged one by one: a failed authentication is not retried, READONLY and TRYAGAIN are.
    - A decorated function is not repeated if its command may have been executed, because the policy cannot see which
      command it was. Use `policy.with_repeatable(True)` for a function that may be repeated, or a client that judges
      each command. Such a function should send one command: commands before the one that failed are sent again, too. It
      should send no script that may write and then answer LOADING, READONLY, BUSY, TRYAGAIN or the like.
    """
    backoff = Exponential(initial=0.02, multiplier=2, maximum=1, jitter="full")
    return Policy(verdict_of_exception, Limits(attempts=11, timeout=10), backoff)
