"""The commands of Redis and Valkey: find a command in the table by its name, and its conditions in its arguments.

A command that is not in the table is never repeated. Nor is a container, such as CLIENT, with an unknown subcommand.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

from forbear.core.record import Record
from forbear.core.service import TableEntry, why_not
from forbear.core.verdict import Safety
from forbear.services.redis.arguments import LEAST, RULES, Rule
from forbear.services.redis.command_words import Command, keyword, octets
from forbear.services.redis.table import NAME, PROMISES, UNKNOWN, CommandJudgement, CommandRow, Promise, load
from forbear.tables.conditions import Term

NOTHING: frozenset[Promise] = frozenset()
CYCLE: frozenset[Promise] = frozenset({"cycle"})

CLAIMS: Mapping[str, bytes] = {
    "SET": b"NX", "SETNX": b"", "MSETNX": b"", "HSETNX": b"", "RENAMENX": b"", "COPY": b"", "SADD": b"", "SMOVE": b"",
    "SETBIT": b"", "ZADD": b"NX", "BF.ADD": b"", "MSETEX": b"NX", "JSON.SET": b"NX",
}  # fmt: skip
"""Commands whose response says whether the caller was the first, with the option that makes them so."""

_SCRIPTED = ("whatever the script", "whatever the function", "whatever the query")
"""The beginnings of an effect in the table that mark a command as running code of the caller."""


def classify(command: Command, *, promised: AbstractSet[Promise] = NOTHING) -> CommandJudgement:
    """Return the judgement on a command that is sent alone; `classify_many` is for those that are sent together.

    `command` has the name, in any case and perhaps with the subcommand, and the arguments. `promised` lists the
    caller's promises (see `PROMISES`). Arguments that make no sense raise nothing and make nothing safe.

    >>> classify(["SADD", "colours", "red"]).repeatable, classify(["INCR", "count"]).repeatable
    (True, False)
    """
    return examine(command, promised)[0]


def examine(command: Command, promised: AbstractSet[Promise]) -> tuple[CommandJudgement, Command]:
    """Return the judgement on a command, as `classify` does, and the command with its name split into single words."""
    operation, words = _find(command)
    return (UNKNOWN if operation is None else operation.judge(words, promised)), words


@cache
def commands() -> tuple[CommandRow, ...]:
    """Return the rows of the table of commands, commands.csv, one for each command."""
    return load(Path(__file__).with_name("commands.csv"))


@cache
def read_commands() -> frozenset[str]:
    """Return the names of the commands that change nothing."""
    return frozenset(row.command for row in commands() if row.kind == "read")


class RedisCommands(Record):
    """The service for the commands of Redis and Valkey, and their table. Example: see `classify`."""

    __slots__ = ()

    name: str = NAME

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        return {NAME: tuple(map(_entry, commands()))}


RECOMMENDED = RedisCommands()
"""The service with its recommended rules."""


def explain_refusal(judgement: CommandJudgement) -> str:
    """Return the reason why a command may not be executed twice, with the conditions that would allow it, if any."""
    name = judgement.operation or "an unknown command"
    if judgement.refused is not None:
        return f"{name} may have been executed; {judgement.refused}"
    return why_not(judgement, name)


class _Operation:
    """One row of the table, with all judgements that are possible for its command made beforehand."""

    __slots__ = ("_alternatives", "_least", "_unmet")

    def __init__(self, row: CommandRow) -> None:
        self._least = LEAST.get(row.command, 1)
        self._unmet = CommandJudgement(
            NAME,
            row.command,
            row.safety,
            conditions=tuple(" and ".join(map(_text, terms)) for terms in row.conditions),
            repeatable=row.safety is Safety.ALWAYS,
            mutation=row.kind == "write",
            connection=row.kind == "connection",
            response=row.response,
            errors=row.errors,
            depends=row.depends,
            scripted=row.effect.startswith(_SCRIPTED),
        )
        # The rules and the promises of each alternative, and the judgement if they hold.
        self._alternatives = tuple(
            (
                tuple(RULES[row.command][name] for prefix, name in terms if prefix == "arg"),
                frozenset(name for prefix, name in terms if prefix == "caller"),
                self._unmet.replace(met=text, repeatable=True),
            )
            for terms, text in zip(row.conditions, self._unmet.conditions, strict=True)
        )

    def judge(self, command: Command, promised: AbstractSet[str]) -> CommandJudgement:
        """Return the judgement on a command of this name; an alternative holds by its rules and its promises."""
        for rules, promises, judgement in self._alternatives:
            if promises <= promised and len(command) >= self._least and _hold(rules, command):
                return judgement
        return self._unmet


def _text(term: Term) -> str:
    prefix, name = term
    return name if prefix == "arg" else f'promised "{name}": {PROMISES[name]}'


def _hold(rules: tuple[Rule, ...], command: Command) -> bool:
    try:
        return all(rule(command) for rule in rules)
    except (LookupError, TypeError, ValueError):
        return False


@cache
def _operations() -> dict[bytes, dict[bytes | None, _Operation]]:
    """Return the operations by the first word of their names, and then by the second, None for a command alone."""
    operations: dict[bytes, dict[bytes | None, _Operation]] = {}
    for row in commands():
        name, _, subcommand = row.command.encode().partition(b" ")
        operations.setdefault(name, {})[subcommand or None] = _Operation(row)
    return operations


def _find(command: Command) -> tuple[_Operation | None, Command]:
    """Return the operation of a command, None if it is unknown, and the command with its name split into words."""
    try:
        operations = _operations().get(keyword(command[0]))
        if operations is None:
            command = [*octets(command[0]).split(), *command[1:]]  # at white space, as the clients do
            operations = _operations().get(keyword(command[0]), {})
        has_subcommand = len(command) > 1 and not operations.keys() <= {None}
        return operations.get(keyword(command[1]) if has_subcommand else None), command
    except (LookupError, TypeError):
        return None, command


def _entry(row: CommandRow) -> TableEntry:
    return TableEntry(
        row.command,
        row.safety,
        conditions=classify(row.command.split()).conditions,
        maybe_done=row.errors,
        is_read=row.kind == "read",
        source=row.columns["source"],
        effect=row.effect,
        note=row.columns["note"],
        columns=row.columns,
    )
