"""Output: data goes to stdout, everything else to stderr; colours only where a terminal wants them.

All that goes to stderr is redacted here: texts of servers and libraries may hold secrets, or commands to a terminal.
"""

import os
import sys
from typing import TYPE_CHECKING

import click

from forbear.core.redact import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

EXIT_CODES = "Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted."
_WIDE = 200  # columns where there is no terminal: nothing that a program reads is wrapped


class Problem(click.ClickException):
    """A failure that is reported in one line and, where there is a cure, a second one with `hint`; exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: object = None) -> None:
        """Write the lines to stderr."""
        report(self.message, self.hint)


class BadInput(Problem):
    """Input that cannot be right; exit code 2."""

    exit_code = 2


def report(message: str, hint: str | None = None) -> None:
    """Write an error and its cure to stderr."""
    _labelled("error", "red", message)
    if hint is not None:
        advise(hint)


def advise(hint: str) -> None:
    """Write a cure to stderr."""
    _labelled("hint", "cyan", hint)


def warn(message: str) -> None:
    """Write to stderr what did not go as it should, though nothing has failed."""
    _labelled("warning", "yellow", message)


def tell(message: str) -> None:
    """Write a remark to stderr."""
    click.echo(redact(message), err=True, color=_color())


def console() -> "Console":
    """Where formatted text goes: stdout."""
    from rich.console import Console  # not at import: it takes longer than all the rest, and `run` never needs it

    return Console(
        highlight=False,
        soft_wrap=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=None if sys.stdout.isatty() else _WIDE,
    )


def columns(*headers: str) -> "Table":
    """An empty table in our style: no lines, three spaces between the columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(header)
    return table


def show_table(table: "Table") -> None:
    """Print a table and an empty line; without the spaces that fill up the last column."""
    out = console()
    with out.capture() as captured:
        out.print(table, soft_wrap=False)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=out.color_system is not None)
    click.echo()


def _labelled(label: str, color: str, text: str) -> None:
    click.echo(f"{click.style(label, fg=color, bold=True)}: {redact(text)}", err=True, color=_color())


def _color() -> bool | None:
    """False where the user wants no colours (no-color.org), None to leave it to whether stderr is a terminal."""
    return False if os.environ.get("NO_COLOR") else None
