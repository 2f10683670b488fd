"""Print a table of operations: as text, CSV or JSON."""

import csv
import json
import sys
from collections.abc import Sequence

import click

from forbear.answers.tables import either
from forbear.cli.kit.output import columns, show_table
from forbear.core.service import TableEntry


def show(entries: Sequence[TableEntry]) -> None:
    """Print to stdout which operations are safe to repeat and when, what a duplicate does, and their number."""
    from rich.markup import escape

    shown = columns("operation", "safe", "what a duplicate does")
    shown.columns[0].no_wrap = True
    for entry in entries:
        shown.add_row(*map(escape, (entry.id, _safe(entry), entry.effect if entry.effect != "none" else "")))
    show_table(shown)
    click.echo(f"{len(entries)} operations")


def print_csv(entries: Sequence[TableEntry]) -> None:
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


def _safe(entry: TableEntry) -> str:
    conditions = entry.conditions or entry.fields
    return f"with {either(conditions)}" if conditions else entry.safety.value
