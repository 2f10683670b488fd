"""List the commands of Redis and Valkey, and the meaning of error responses, for the reference page."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from docs.generate.markdown import bullets, code, codes, table, text
from forbear.answers.redis import ERROR_RESPONSES
from forbear.core.service import TableEntry
from forbear.core.verdict import Kind, Safety
from forbear.services.redis.errors import needs_reconnect, verdict_of_response
from forbear.services.redis.table import PROMISES

_MEANS = {
    Kind.NOT_EXECUTED: "not executed: every command is repeated",
    Kind.TRANSIENT: "outcome unknown: only commands that may be executed twice are repeated",
    Kind.PERMANENT: "permanent: the error is raised",
}


def responses() -> Iterator[str]:
    """Yield a table of error responses and their meaning."""
    rows = [(_meaning(response), response) for response in ERROR_RESPONSES]
    grouped = groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])
    yield from table(
        ("response", "meaning"),
        [
            ("no response: no connection could be made", _MEANS[Kind.NOT_EXECUTED]),
            (
                "no response: the connection was lost after sending, or the response took too long",
                _MEANS[Kind.TRANSIENT],
            ),
            *((codes(response for _, response in group), meaning) for meaning, group in grouped),
        ],
    )


def promises() -> Iterator[str]:
    """Yield a list of the promises that only a caller can give."""
    yield from bullets(f"promised *{name}*: {meaning}" for name, meaning in PROMISES.items())


def names(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Yield a list of names, with one item for each module."""
    ordered = sorted(entries, key=lambda entry: (_module(entry), entry.id))
    modules = [(module, codes(entry.id for entry in group)) for module, group in groupby(ordered, key=_module)]
    yield from bullets(f"{module}: {listed}" if module else listed for module, listed in modules)


def always(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Yield a table of commands that may always be repeated, with the response to a repeat."""
    headers = ("command", "response to a repeat", "may mean success", "depends on", "note")
    yield from table(
        headers,
        (
            (code(one.id), _response(one), ", ".join(one.maybe_done), one.columns["depends"], one.note)
            for one in entries
        ),
    )


def unsafe(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Yield a table of commands that may be repeated under a condition or never, with the effect of a duplicate."""
    headers = ("command", "safe with", "effect of a duplicate", "response to a repeat", "may mean success", "note")
    yield from table(
        headers,
        (
            (
                code(one.id),
                _conditions(one),
                one.effect,
                "" if one.safety is Safety.NEVER else _response(one),
                ", ".join(one.maybe_done),
                one.note,
            )
            for one in entries
        ),
    )


def blocked(entries: Iterable[TableEntry]) -> Iterator[str]:
    """Yield the commands that Memorystore for Redis does not offer."""
    yield from text(codes(entry.id for entry in entries if entry.columns["memorystore"]))


def _meaning(response: str) -> str:
    verdict = verdict_of_response(response)
    how = ", at once, at the address that the server names" if verdict.delay == 0 else ""
    return _MEANS[verdict.kind] + (", on a new connection" if needs_reconnect(response) else how)


def _module(entry: TableEntry) -> str:
    """Return the module that adds a command, "" for a command of the server itself."""
    return entry.id.partition(".")[0] if "." in entry.id.partition(" ")[0] else ""


def _response(entry: TableEntry) -> str:
    return "an error" if entry.maybe_done else entry.columns["response"]


def _conditions(entry: TableEntry) -> str:
    """Return the conditions of a command, with promises by their names."""
    alternatives = filter(None, entry.columns["safe_if"].split("|"))
    return "; or ".join(
        " and ".join(_term(term.strip()) for term in alternative.split("&")) for alternative in alternatives
    )


def _term(term: str) -> str:
    prefix, _, name = term.partition(":")
    return name if prefix == "arg" else f"promised *{name}*"
