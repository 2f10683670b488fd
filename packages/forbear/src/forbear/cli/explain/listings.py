"""Print what `forbear explain` lists, as text, JSON or CSV: the requests of a HAR file, worst first, or a table."""

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from forbear.answers.har import GROUPS, JudgedRequest
from forbear.answers.http import hide_in_path
from forbear.answers.tables import join_conditions
from forbear.cli.kit.output import columns, console, show_table
from forbear.cli.kit.values import file_content
from forbear.core.service import TableEntry
from forbear.text.redact import printable

MAX_SIZE = 256 * 1024 * 1024
"""The largest accepted file, in bytes."""

_STYLES = {"failed": "yellow", "repeatable": "dim"}
_WIDE = 70  # longer requests move the next column to the right


def read_har(name: str) -> bytes:
    """Return the content of a file, or of stdin for "-"; BadInput if it cannot be read or is too large."""
    hint, cure = "save fewer requests, or leave the responses out", "name a file that a browser or a proxy saved"
    return file_content(name, MAX_SIZE, hint, cure=cure)


def show_requests(items: list[JudgedRequest]) -> None:
    """Print each request on one line to stdout, in the style of its group, and the number of requests in each group."""
    out = console()
    sent = (item.recorded.request for item in items)
    requests = [printable(f"{each.method} {each.host}{hide_in_path(each)}") for each in sent]
    wide = min(max(map(len, requests), default=0), _WIDE)
    if items:
        out.print(f"status  repeatable   {'request':<{wide}}   operation and reason", style="bold", markup=False)
    for item, request in zip(items, requests, strict=True):
        status = item.recorded.status or "none"
        repeatable = "yes" if item.judgement.repeatable else "no"
        why = f"{item.judgement.operation or 'not known'}: {item.why}"
        line = f"{status!s:<8}{repeatable:<13}{request:<{wide}}   {why}"
        out.print(line, style=_STYLES.get(item.group), markup=False)
    click.echo(f"{chr(10) if items else ''}{len(items)} request{'' if len(items) == 1 else 's'}")
    for group, text in GROUPS.items():
        click.echo(f"{_count(items, group):>5} {text}")


def print_requests(items: list[JudgedRequest], profile: str) -> None:
    """Print the requests and the number of them in each group to stdout, as JSON."""
    document = {
        "profile": profile,
        "counts": {"requests": len(items), **{group: _count(items, group) for group in GROUPS}},
        "requests": [_document(item) for item in items],
    }
    click.echo(json.dumps(document, indent=2))


def _count(items: list[JudgedRequest], group: str) -> int:
    return sum(item.group == group for item in items)


def _document(item: JudgedRequest) -> dict[str, Any]:
    request, judgement = item.recorded.request, item.judgement
    return {
        "entry": item.recorded.number,
        "group": item.group,
        "request": {"method": request.method, "host": request.host, "path": hide_in_path(request)},
        "status": item.recorded.status,
        "verdict": None if item.verdict is None else item.verdict.kind.value,
        "service": judgement.service,
        "operation": judgement.operation,
        "safety": judgement.safety.value,
        "conditions": list(judgement.conditions),
        "met": judgement.met,
        "repeatable": judgement.repeatable,
        "mutation": judgement.mutation,
        "session": judgement.session,
        "refused": judgement.refused,
        "why": item.why,
    }


def show_operations(entries: Sequence[TableEntry]) -> None:
    """Print to stdout which operations are safe to repeat and when, what a duplicate does, and their number."""
    from rich.markup import escape

    shown = columns("operation", "safe", "what a duplicate does")
    shown.columns[0].no_wrap = True
    for entry in entries:
        conditions = entry.conditions or entry.fields
        safety = f"with {join_conditions(conditions)}" if conditions else entry.safety.value
        shown.add_row(*map(escape, (entry.id, safety, entry.effect if entry.effect != "none" else "")))
    show_table(shown)
    click.echo(f"{len(entries)} operations")


def print_operations_csv(entries: Sequence[TableEntry]) -> None:
    """Print the rows to stdout as CSV, with a header and all columns of the table's file."""
    writer = csv.DictWriter(sys.stdout, entries[0].columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.columns for entry in entries)


def print_operations(name: str, entries: Sequence[TableEntry]) -> None:
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
