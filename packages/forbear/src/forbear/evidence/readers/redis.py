"""redis-py and valkey-py: commands are arguments, those of a pipeline a list."""

from itertools import takewhile

from forbear.core.chain import entries_of
from forbear.core.check import is_list
from forbear.evidence.look import Look, client_of, find_below
from forbear.evidence.sent import Sent, dict_of, get_own, package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_CLIENTS = ("redis", "valkey")
_MOST_COMMANDS = 1000
_CONFLICT = "Watched variable changed."
"""The text of the WatchError of a conflict; any other text means a lost connection."""


def read_command(look: Look, trace: "TracebackType") -> None:
    """Read one command; if the pool was still looking for a connection, it was not sent."""
    words = look.names(trace).get("args")
    if not look.is_within(*_CLIENTS) and type(words) is tuple and words:
        _add(look, trace, [words])


def read_pipeline(look: Look, trace: "TracebackType") -> None:
    """Read the commands that are sent together."""
    listed = look.names(trace).get("commands")
    if not look.is_within(*_CLIENTS):
        _add(look, trace, _commands(listed), transaction=trace.tb_frame.f_code.co_name.endswith("transaction"))


def read_queued(look: Look, trace: "TracebackType") -> None:
    """Read the commands that a pipeline has queued, before and while it is executed."""
    names = look.names(trace)
    pipe = names.get("self")
    if look.is_within(*_CLIENTS) or "ipeline" not in type(pipe).__name__:
        return
    kept = dict_of(pipe)
    listed = names.get("stack") or kept.get("command_stack") or kept.get("_command_queue")
    transaction = bool(kept.get("explicit_transaction") or kept.get("transaction") or kept.get("is_transaction"))
    if not listed:
        listed, transaction = _find_handed_on(look, trace)
    _add(look, trace, _commands(listed), transaction=transaction)
    if transaction:
        _read_watch(look, look.sent[id(trace.tb_frame)])


def _read_watch(look: Look, sent: Sent) -> None:
    """Note if keys were watched: the client raises a WatchError if the response was lost, or the caller says `watch`.

    A conflict executes nothing.
    """
    error = look.error
    if error is not None and package(error) in _CLIENTS and type(error).__name__ == "WatchError":
        sent.watched = True
        if error.args[:1] == (_CONFLICT,):
            sent.unsent = True
    elif look.above is not None:
        sent.watched = "watch" in look.above.tb_frame.f_code.co_names


def _find_handed_on(look: Look, trace: "TracebackType") -> "tuple[Any, bool]":
    """Return the commands that the pipeline of a cluster has handed on and forgotten, and if they are a transaction."""
    for below in takewhile(lambda entry: client_of(entry.tb_frame) in _CLIENTS, entries_of(trace.tb_next)):
        names = look.names(below)
        if is_list(names.get("stack")):
            return names["stack"], type(names.get("self")).__name__ == "TransactionStrategy"
    return None, False


def _commands(listed: "Any") -> "list[Any] | None":
    """Return the commands of a pipeline as lists of words, None if they cannot be read."""
    if not is_list(listed) or not listed or len(listed) > _MOST_COMMANDS:
        return None
    commands: list[Any] = [each[0] if type(each) is tuple else get_own(each, "args") for each in listed]
    return None if any(type(words) is not tuple or not words for words in commands) else commands


def _add(look: Look, trace: "TracebackType", commands: "list[Any] | None", *, transaction: bool = False) -> None:
    client = client_of(trace.tb_frame)
    unsent = find_below(trace, ("get_connection", "call_with_retry")) == "get_connection"  # before the first try
    if commands is None:
        look.add(id(trace.tb_frame), Sent(client, "redis", "a pipeline", unread="its commands are not known"))
        return
    look.add(id(trace.tb_frame), describe_sent(client, commands, transaction, unsent=unsent))


def describe_sent(client: str, commands: "list[Any]", transaction: bool, *, unsent: bool = False) -> Sent:
    """Return what was sent: one command by its name, or a pipeline or transaction of several."""
    first = commands[0][0] if commands else ""
    method = first if type(first) is str else first.decode("ascii", "replace") if type(first) is bytes else ""
    method = method.upper() if len(commands) == 1 else "a transaction" if transaction else "a pipeline"
    return Sent(client, "redis", method, (tuple(commands), transaction), unsent=unsent)
