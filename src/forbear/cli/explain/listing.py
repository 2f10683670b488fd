"""A table of operations, printed for people, as CSV as its file has it, or as JSON."""

import csv
import json
import sys
from collections.abc import Sequence

import click

from forbear.cli.explain.outcome import either
from forbear.cli.output import columns, show_table
from forbear.core.service import TableEntry


def show(name: str, entries: Sequence[TableEntry]) -> None:
    """Print what is safe, and what a duplicate does."""
    from rich.markup import escape

    shown = columns("operation", "safe", "what a duplicate does")
    for entry in entries:
        shown.add_row(*map(escape, (entry.id, _safe(entry), entry.effect if entry.effect != "none" else "")))
    show_table(shown)
    click.echo(f"{len(entries)} operations")


def print_csv(name: str, entries: Sequence[TableEntry]) -> None:
    """Print the rows as they are in the file of the table; conditions are in its grammar."""
    writer = csv.DictWriter(sys.stdout, entries[0].columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.columns for entry in entries)


def print_json(name: str, entries: Sequence[TableEntry]) -> None:
    """Print the rows with their conditions in words."""
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


def _safe(entry: TableEntry) -> str:
    wanted = entry.conditions or entry.fields
    return f"with {either(wanted)}" if wanted else entry.safety.value
