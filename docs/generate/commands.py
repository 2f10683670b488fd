"""The commands of Redis and Valkey as lists and tables, and what replies mean: read off the table and the verdicts."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from docs.generate.markdown import bullets, code, codes, table, text
from forbear.cli.explain.redis import REPLIES
from forbear.core.service import TableEntry
from forbear.core.verdict import Kind, Safety
from forbear.services.redis.errors import needs_reconnect, verdict_of_reply
from forbear.services.redis.table import PROMISES

_MEANS = {
    Kind.NOT_EXECUTED: "not executed, so any command is sent again",
    Kind.TRANSIENT: "the outcome is unknown, so only what may be executed twice is sent again",
    Kind.PERMANENT: "final",
}


def replies() -> Iterator[str]:
    """What replies mean."""
    rows = [(_meaning(reply), reply) for reply in REPLIES]
    grouped = groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])
    yield from table(
        ("reply", "meaning"),
        [
            ("none: no connection could be made", _MEANS[Kind.NOT_EXECUTED]),
            ("none: the connection was lost after sending, or took too long", _MEANS[Kind.TRANSIENT]),
            *((codes(reply for _, reply in group), meaning) for meaning, group in grouped),
        ],
    )


def promises() -> Iterator[str]:
    """What only a caller can know."""
    yield from bullets(f"promised *{name}*: {meaning}" for name, meaning in PROMISES.items())


def names(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Names, a line for each module."""
    ordered = sorted(entries, key=lambda entry: (_module(entry), entry.id))
    modules = [(module, codes(entry.id for entry in group)) for module, group in groupby(ordered, key=_module)]
    yield from bullets(f"{module}: {listed}" if module else listed for module, listed in modules)


def always(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Commands that may always be repeated, with what a repeat is answered."""
    headers = ("command", "a repeat is answered", "may mean that it worked", "depends on", "note")
    yield from table(
        headers,
        ((code(one.id), _reply(one), ", ".join(one.maybe_done), one.columns["depends"], one.note) for one in entries),
    )


def unsafe(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Commands that may be repeated under a condition or never, with what a duplicate does."""
    headers = ("command", "safe with", "a duplicate", "a repeat is answered", "may mean that it worked", "note")
    yield from table(
        headers,
        (
            (
                code(one.id),
                _conditions(one),
                one.effect,
                "" if one.safety is Safety.NEVER else _reply(one),
                ", ".join(one.maybe_done),
                one.note,
            )
            for one in entries
        ),
    )


def blocked(entries: Iterable[TableEntry]) -> Iterator[str]:
    """What Memorystore for Redis does not offer."""
    yield from text(codes(entry.id for entry in entries if entry.columns["memorystore"]))


def _meaning(reply: str) -> str:
    verdict = verdict_of_reply(reply)
    how = " at once, where the server says" if verdict.delay == 0 else ""
    return _MEANS[verdict.kind] + (" on a new connection" if needs_reconnect(reply) else how)


def _module(entry: TableEntry) -> str:
    """The module that brings a command, "" for the server itself."""
    return entry.id.partition(".")[0] if "." in entry.id.partition(" ")[0] else ""


def _reply(entry: TableEntry) -> str:
    return "an error" if entry.maybe_done else entry.columns["reply"]


def _conditions(entry: TableEntry) -> str:
    """The conditions, with promises by their names."""
    alternatives = filter(None, entry.columns["safe_if"].split("|"))
    return "; or ".join(
        " and ".join(_term(term.strip()) for term in alternative.split("&")) for alternative in alternatives
    )


def _term(term: str) -> str:
    prefix, _, name = term.partition(":")
    return name if prefix == "arg" else f"promised *{name}*"
