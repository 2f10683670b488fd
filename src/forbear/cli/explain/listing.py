"""A table of operations, printed for people, as CSV as its file has it, or as JSON."""

import csv
import json
import sys

import click

from forbear.cli.explain.outcome import either
from forbear.cli.explain.tables import Entry, Table
from forbear.cli.output import columns, show_table


def show(table: Table) -> None:
    """Print what is safe, and what a duplicate does."""
    from rich.markup import escape

    shown = columns("operation", "safe", "what a duplicate does")
    for entry in table.entries:
        shown.add_row(*map(escape, (entry.id, _safe(entry), entry.effect if entry.effect != "none" else "")))
    show_table(shown)
    click.echo(f"{len(table.entries)} operations")


def print_csv(table: Table) -> None:
    """Print the rows as they are in the file of the table; conditions are in its grammar."""
    writer = csv.DictWriter(sys.stdout, table.entries[0].columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.columns for entry in table.entries)


def print_json(table: Table) -> None:
    """Print the rows with their conditions in words."""
    operations = [
        {
            "service": table.service,
            "operation": entry.id,
            **entry.columns,
            "conditions": list(dict.fromkeys(entry.conditions + entry.fields)),
            "maybe_done": list(entry.maybe_done),
        }
        for entry in table.entries
    ]
    click.echo(json.dumps(operations, indent=2))


def _safe(entry: Entry) -> str:
    wanted = entry.conditions or entry.fields
    return f"with {either(wanted)}" if wanted else entry.safety.value
