"""What an error reply of the server means, by its code. It knows no client library.

The server checks most of what can go wrong before it executes a command, and says so with a code of its own. A script
can answer with the same code after it wrote something, so for commands that are `scripted` no code proves anything.
"""

from collections.abc import Mapping

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict

_AT_ONCE = Verdict(Kind.NOT_EXECUTED, delay=0)
_CROWDED = Verdict(Kind.NOT_EXECUTED, throttled=True)

_VERDICTS: Mapping[str, Verdict] = {
    "ASK": _AT_ONCE,  # to the node it names, after ASKING
    "BUSY": NOT_EXECUTED,  # a script runs
    "CLUSTERDOWN": NOT_EXECUTED,
    "IOERR": TRANSIENT,  # of MIGRATE: the other server may have done its part
    "LOADING": NOT_EXECUTED,
    "MASTERDOWN": NOT_EXECUTED,
    "MOVED": _AT_ONCE,  # to the node it names
    "NOREPLICAS": NOT_EXECUTED,  # too few of them, as during a failover
    "NOSCRIPT": NOT_EXECUTED,  # after loading it
    "READONLY": NOT_EXECUTED,  # on a new connection: this server was the primary once
    "REDIRECT": _AT_ONCE,  # to the primary it names
    "TRYAGAIN": NOT_EXECUTED,
}
_FULL = ("ERR max number of clients", "max number of clients")  # clients cut off ERR
_ABORTED = "EXECABORT Transaction discarded because of: "
_FORCED = "UNBLOCKED force unblock"  # the primary became a replica; any other UNBLOCKED was asked for


def verdict_of_reply(text: str) -> Verdict:
    """What an error reply means, such as "LOADING Redis is loading the dataset in memory".

    Not executed: codes of a server or cluster that is not ready, of redirections (at once), of too many clients. All
    others are permanent, unknown codes too; what lacks memory (OOM) or a disk (MISCONF) needs a person first.
    """
    text = text.removeprefix("-")
    if text.startswith(_ABORTED):
        return verdict_of_reply(text.removeprefix(_ABORTED))
    if text.startswith(_FULL):
        return _CROWDED
    if text.startswith(_FORCED):
        return NOT_EXECUTED
    return _VERDICTS.get(text.partition(" ")[0], PERMANENT)


def needs_reconnect(text: str) -> bool:
    """Whether an error reply says that this server is no primary any more, so that only another connection helps."""
    text = text.removeprefix("-").removeprefix(_ABORTED)
    return text.partition(" ")[0] == "READONLY" or text.startswith(_FORCED)
