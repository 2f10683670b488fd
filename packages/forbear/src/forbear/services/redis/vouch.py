"""Vouching for commands: the user's word, from the option `safe` of the clients, that they may be executed twice.

A vouch is about a command by itself. In a pipeline, the outcome of a vouched write may depend on other writes. Unless
it only adds something, it must not share a key with another write there; see `forbear.services.redis.batch`.
"""

import re
from collections.abc import Iterable
from functools import cache

from forbear.core.check import find_similar, list_values
from forbear.core.service import OperationSet
from forbear.core.verdict import Safety
from forbear.services.redis.command_words import Command, keyword, octets
from forbear.services.redis.service import commands
from forbear.services.redis.table import CommandJudgement

Safe = frozenset[str]
"""The names of the commands that the user vouches for, in upper case: "INCR", "CLIENT KILL"."""

UNVOUCHED: Safe = frozenset()

_NAME = re.compile(r"[A-Z][A-Z0-9._-]{0,39}( [A-Z][A-Z0-9._-]{0,39})?", re.ASCII)
_OF_TRANSACTIONS = frozenset({"DISCARD", "EXEC", "MULTI", "UNWATCH", "WATCH"})
_ADDS = frozenset({"a second message", "appends twice", "counts twice", "one copy more or less", "one more element"})
"""The effects, in the table, of commands that add something whatever other writes do."""

_BY_ONE = {"INCRBY": "INCR", "DECRBY": "DECR"}
"""The commands by which the libraries' `incr()` and `decr()` send another one."""

_PLAIN = (int, str, bytes)


def safe_commands(safe: "str | Iterable[str]") -> Safe:
    """Return the names in `safe`, one or several in any case, in upper case; TypeError or ValueError for wrong ones.

    Wrong are names that are similar to that of a known command, containers without a subcommand ("CONFIG"), and the
    commands around a transaction.
    """
    rule = '`safe` must be the name of a command such as "INCR", or several of them'
    return frozenset(map(_check_name, list_values(safe, rule)))


def apply_vouch(judgement: CommandJudgement, command: Command, safe: Safe) -> CommandJudgement:
    """Return the judgement, repeatable and `vouched` if the user vouches for the command and nothing refuses it."""
    if not safe or judgement.repeatable or judgement.refused is not None:
        return judgement
    if safe.isdisjoint(_names(judgement, command)):
        return judgement
    return judgement.replace(repeatable=True, vouched=True, depends=_depends().get(judgement.operation or "", "server"))


def option_for(judgement: CommandJudgement, command: Command) -> str | None:
    """Return the option by which the user may vouch for a command, such as `safe="INCR"`; None where none helps."""
    if judgement.operation is None:
        name = _text(keyword(command[0])) if command and isinstance(command[0], str | bytes) else ""
        name = name if _NAME.fullmatch(name) and name not in _containers() else ""
    else:
        name = "" if judgement.scripted or judgement.operation in _containers() else judgement.operation
    return None if not name or name in _OF_TRANSACTIONS else f'safe="{name}"'


def names_of(name: str, command: Command) -> set[str]:
    """Return the names by which the user may vouch for a known command: INCR also covers INCRBY with an amount of 1."""
    by_one = name in _BY_ONE and len(command) == 3 and type(command[2]) in _PLAIN and octets(command[2]) == b"1"
    return {name, _BY_ONE[name]} if by_one else {name}


def find_similar_command(name: str) -> str | None:
    """Return the known command that is meant by a name which is not known, None if none is; modules have others."""
    is_known = name in _depends() or name in _containers()
    return None if is_known else find_similar(name, _depends(), 0.75)


def _check_name(text: object) -> str:
    """Return a name in upper case with single spaces; TypeError or ValueError for a wrong one."""
    if not isinstance(text, str):
        raise TypeError(f'`safe` must hold names of commands such as "INCR", got {text!r}')
    if isinstance(text, OperationSet):
        raise ValueError(f"`safe` must hold names of commands; {text} has none of Redis")
    name = " ".join(text.upper().split())
    if not _NAME.fullmatch(name):
        raise ValueError(
            '`safe` must hold names of commands, such as "INCR", or with their subcommand, such as "CLIENT KILL"; '
            f"got {text!r}"
        )
    if name in _OF_TRANSACTIONS:
        raise ValueError(f"`safe` must not list {name}: list the commands of the transaction instead")
    if name in _containers():
        raise ValueError(f'`safe` must name a subcommand as well, such as "{_containers()[name]}"; got {text!r}')
    if name not in _depends():
        first = name.partition(" ")[0]
        if first != name and first in _depends() and first not in _containers():
            raise ValueError(f'`safe` must hold names of commands without arguments, such as "{first}"; got {text!r}')
        if (similar := find_similar_command(name)) is not None:
            raise ValueError(f'`safe` must hold names of commands; got {text!r}, is it "{similar}"?')
        if first != name and first not in _containers() and "." not in first:
            raise ValueError(f"`safe` must hold names of commands; got {text!r}, and there is no {first}")
    return name


def _names(judgement: CommandJudgement, command: Command) -> set[str]:
    """Return the names by which the user may vouch for a command, known or not."""
    if judgement.operation is None:
        words = [_text(keyword(word)) for word in command[:2] if isinstance(word, str | bytes)]
        return {" ".join(words[:count]) for count in (1, 2)}
    return names_of(judgement.operation, command)


def _text(word: bytes) -> str:
    return word.decode("ascii", "replace")


@cache
def _depends() -> dict[str, str]:
    """Return what the outcome of each known command depends on, also of those that are never repeated."""
    return {
        row.command: row.depends
        or ("nothing" if row.effect in _ADDS else "keys" if row.response == "lost" else "server")
        for row in commands()
    }


@cache
def _containers() -> dict[str, str]:
    """Return the commands that do nothing without a subcommand, each with one of its own."""
    alone = {row.command for row in commands() if row.safety is Safety.ALWAYS}
    parts = ((row.command.split()[0], row.command) for row in reversed(commands()) if " " in row.command)
    return {name: command for name, command in parts if name not in alone}
