"""Output: data goes to stdout, everything else to stderr. Colours are for terminals, unless NO_COLOR is set.

Everything that goes to stderr is redacted here: texts of servers and libraries may contain secrets or
terminal commands.
"""

import os
import re
import sys
from typing import TYPE_CHECKING

import click

from forbear.core.redact import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

EXIT_CODES = "Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted."
_WIDE = 200  # columns without a terminal, so that output for programs is not wrapped


class Problem(click.ClickException):
    """A failure with a message, and a hint if there is a cure; each is printed on one line. The exit code is 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(name_options(message))
        self.hint = None if hint is None else name_options(hint)

    def show(self, file: object = None) -> None:
        """Print the message and the hint to stderr."""
        report(self.message, self.hint)


class BadInput(Problem):
    """Invalid input; the exit code is 2."""

    exit_code = 2


def name_options(text: str) -> str:
    """Replace parameters of the library by the options and arguments of the running command.

    A parameter is a name in backticks: `maximum` becomes `--maximum`, `source` becomes `SOURCE`.
    """
    context = click.get_current_context(silent=True)
    names = {
        parameter.name: max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.name.upper()
        for parameter in (context.command.params if context is not None else ())
    }
    return re.sub(r"`(\w+)`", lambda match: f"`{names.get(match[1], match[1])}`", text)


def report(message: str, hint: str | None = None) -> None:
    """Print an error to stderr, and its hint, if there is one, on a second line."""
    _labelled("error", "red", message)
    if hint is not None:
        advise(hint)


def advise(hint: str) -> None:
    """Print a hint to stderr: what the user can do about an error."""
    _labelled("hint", "cyan", hint)


def warn(message: str) -> None:
    """Print a warning to stderr, about something that has not failed."""
    _labelled("warning", "yellow", message)


def tell(message: str) -> None:
    """Print a remark to stderr."""
    click.echo(redact(message), err=True, color=_color())


def console() -> "Console":
    """Return a rich console for formatted text on stdout, without colours if NO_COLOR is set.

    Without a terminal it is 200 columns wide, so that output for programs is not wrapped.
    """
    from rich.console import Console  # imported late: it takes longer than the rest, and `run` never needs it

    return Console(
        highlight=False,
        soft_wrap=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=None if sys.stdout.isatty() else _WIDE,
    )


def columns(*headers: str) -> "Table":
    """Return an empty table with these headers, without lines, and with three spaces between the columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(header)
    return table


def show_table(table: "Table") -> None:
    """Print a table without trailing spaces to stdout, and an empty line after it."""
    out = console()
    with out.capture() as captured:
        out.print(table, soft_wrap=False)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=out.color_system is not None)
    click.echo()


def _labelled(label: str, color: str, text: str) -> None:
    click.echo(f"{click.style(label, fg=color, bold=True)}: {redact(name_options(text))}", err=True, color=_color())


def _color() -> bool | None:
    """Return False if the user wants no colours (no-color.org), else None: click colours terminals only."""
    return False if os.environ.get("NO_COLOR") else None
