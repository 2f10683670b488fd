"""The tables of operations of all services, and `forbear explain --operations`, which prints them."""

import csv
import json
import sys
from collections.abc import Sequence
from functools import cache
from itertools import chain

import click

from forbear.cli.kit.output import BadInput, columns, show_table
from forbear.core.service import TableEntry
from forbear.services import registry


def find(name: str) -> tuple[TableEntry, ...]:
    """Return the entries of the table `name`, such as "cloud_storage.json"; raise BadInput if there is none."""
    service = name.partition(".")[0]
    entries = registry.service(service).tables().get(name) if service in registry.names() else None
    if entries is None:
        raise BadInput(f"no such table: {name}", f"the tables are {', '.join(names())}")
    return tuple(entries)


def names() -> tuple[str, ...]:
    """Return the names of all tables of all services."""
    return tuple(name for service in registry.names() for name in registry.service(service).tables())


def entry(service: str, operation: str | None) -> TableEntry | None:
    """Return the entry of an operation of `service`, by its id or gRPC name; None if no table has it."""
    return _by_operation(service).get(operation or "") if service in registry.names() else None


@cache
def _by_operation(service: str) -> dict[str, TableEntry]:
    entries = list(chain.from_iterable(registry.service(service).tables().values()))
    return {name: entry for entry in reversed(entries) for name in (entry.rpc, entry.id) if name}


def show(_: str, entries: Sequence[TableEntry]) -> None:
    """Print to stdout which operations are safe to repeat and when, what a duplicate does, and their number."""
    from rich.markup import escape

    shown = columns("operation", "safe", "what a duplicate does")
    shown.columns[0].no_wrap = True
    for entry in entries:
        shown.add_row(*map(escape, (entry.id, _safe(entry), entry.effect if entry.effect != "none" else "")))
    show_table(shown)
    click.echo(f"{len(entries)} operations")


def print_csv(_: str, entries: Sequence[TableEntry]) -> None:
    """Print the rows to stdout as CSV, with a header and all columns of the table's file."""
    writer = csv.DictWriter(sys.stdout, entries[0].columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.columns for entry in entries)


def print_json(name: str, entries: Sequence[TableEntry]) -> None:
    """Print the rows to stdout as JSON, with all columns of the table's file and with lists of texts for conditions."""
    operations = [
        {
            "service": name.partition(".")[0],
            "operation": entry.id,
            **entry.columns,
            "conditions": list(dict.fromkeys(entry.conditions + entry.fields)),
            "maybe_done": list(entry.maybe_done),
        }
        for entry in entries
    ]
    click.echo(json.dumps(operations, indent=2))


def either(conditions: Sequence[str]) -> str:
    """Join alternative conditions, any one of which is enough, by " or " ("; or " if one has a comma or an "and")."""
    return ("; or " if any(", " in text or " and " in text for text in conditions) else " or ").join(conditions)


def _safe(entry: TableEntry) -> str:
    conditions = entry.conditions or entry.fields
    return f"with {either(conditions)}" if conditions else entry.safety.value
