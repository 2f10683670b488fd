"""Output: data goes to stdout, everything else to stderr. Colours are for terminals, unless NO_COLOR is set.

Everything that goes to stderr is redacted here: texts of servers and libraries may contain secrets or
terminal commands.
"""

import os
import re
import select
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.links import leads_out
from forbear.core.events import BudgetDegraded, BudgetRestored, Event, Failed, GaveUp, Scheduled
from forbear.text.duration import show
from forbear.text.redact import redact

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

EXIT_CODES = "Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted."
_WIDE = 200  # columns of formatted text without a terminal, so that output for programs is not wrapped
_GAP = 3  # spaces between the columns of a table
_GRACE = 100  # milliseconds in which a reader that is only slow makes room
_INDENT = 4  # spaces before the cells of a row that is too wide for the terminal


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


def check_links(option: str, file: Path, read: Iterable[Path] = ()) -> None:
    """Raise BadInput if the file of an option would be written through a link of others; `read` is what is read."""
    led = leads_out(file, read)
    if led is not None:
        link, target = led
        what = f"`--{option}` must not be written through a link in the code of others: {link} leads to {target}"
        raise BadInput(what, "remove the link, or name the file itself that it leads to")


def check_plot(file: Path, read: Iterable[Path] = ()) -> None:
    """Raise BadInput for a file that cannot hold a plot, and ModuleNotFoundError without matplotlib."""
    check_links("plot", file, read)
    from matplotlib.figure import Figure

    suffix = file.suffix[1:].lower()
    if suffix not in Figure().canvas.get_supported_filetypes():
        text = f"its suffix is {file.suffix!r}" if suffix else "it has no suffix"
        raise BadInput(f"cannot plot to {file}: {text}", "name a file that ends in .png or .svg")
    if not file.parent.is_dir():
        raise BadInput(f"cannot write {file}: there is no folder {file.parent}", "choose another folder or name")


def save_plot(figure: "Figure", file: Path) -> None:
    """Write a figure in the format of the file's suffix; raise BadInput if that fails."""
    try:
        figure.savefig(file)  # pyright: ignore[reportUnknownMemberType]
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None


def name_options(text: str) -> str:
    """Replace parameters of the library, names in backticks, by the options and arguments of the running command.

    `maximum` becomes `--maximum`, `source` becomes `SOURCE`, and a key of an option such as `--retry` that with its
    key.
    """
    context = click.get_current_context(silent=True)
    names = {
        parameter.name: max(parameter.opts, key=len) if isinstance(parameter, click.Option) else _argument(parameter)
        for parameter in (context.command.params if context is not None else ())
    }
    for parameter in context.command.params if context is not None else ():
        spelled: dict[str, str] = getattr(parameter, "spelled", {})
        names |= {key: text.removesuffix("VALUE") for key, text in spelled.items()}
    return re.sub(r"`(\w+)`", lambda match: f"`{names.get(match[1], match[1])}`", text)


def _argument(parameter: click.Parameter) -> str:
    """Return the name of an argument as the help shows it, without brackets and dots."""
    shown = (parameter.metavar or "").strip("[].")
    return shown if re.fullmatch(r"[A-Z]+", shown) else (parameter.name or "").upper()


def report(message: str, hint: str | None = None) -> None:
    """Print an error to stderr, and its hint, if there is one, on a second line."""
    _print_labelled("error", "red", message)
    if hint is not None:
        advise(hint)


def advise(hint: str) -> None:
    """Print a hint to stderr: what the user can do about an error."""
    _print_labelled("hint", "cyan", hint)


def warn(message: str) -> None:
    """Print a warning to stderr, about something that has not failed."""
    _print_labelled("warning", "yellow", message)


def tell(message: str) -> None:
    """Print a remark to stderr."""
    click.echo(redact(message), err=True, color=_color())


def leave_full_pipes() -> None:
    """Redirect stdout and stderr to nowhere where a write would block, so that an interrupted process can end."""
    if sys.platform == "win32":
        return
    for descriptor in (1, 2):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        if not poll.poll(_GRACE):
            redirect_to_nowhere(descriptor)


def redirect_to_nowhere(descriptor: int) -> None:
    """Make a file descriptor one of the null device, which takes everything."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def line_width() -> int | None:
    """Return the columns of a line on stdout, by $COLUMNS or the terminal; None for a pipe or a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # loads what reads and writes archives

    return get_terminal_size().columns


def wrap(text: str, *, indent: int = 0) -> str:
    """Return a text with line ends between words, so that it fits the terminal; later lines are indented."""
    room = line_width()
    if room is None:
        return text
    from textwrap import fill  # only a terminal needs it

    return fill(text, room, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def console() -> "Console":
    """Return a rich console for formatted text on stdout; without a terminal it is 200 columns wide."""
    from rich.console import Console  # imported late: it takes longer than the rest, and `run` never needs it

    return Console(
        highlight=False,
        soft_wrap=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=line_width() or _WIDE,
    )


def columns(*headers: str) -> "Table":
    """Return an empty table with these headers, without lines, and with three spaces between the columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(header)
    return table


def show_table(table: "Table") -> None:
    """Print a table without trailing spaces to stdout, and an empty line after it.

    It fits the line: no word is cut or broken, and no cell of a column with `no_wrap`. Where it cannot, the first cell
    of each row has a line of its own, and the others follow indented, with their headers.
    """
    out, room = console(), line_width()
    cells = [
        [out.render_str(cell) if isinstance(cell, str) else cell for cell in (column.header, *column.cells)]
        for column in table.columns
    ]
    measured = [[out.measure(cell) for cell in column] for column in cells]
    widths = [max(each.maximum for each in column) for column in measured]
    words = [
        width if column.no_wrap else max(each.minimum for each in cells)
        for column, width, cells in zip(table.columns, widths, measured, strict=True)
    ]
    room = None if room is None else room - _GAP * (len(widths) - 1)
    if room is not None and sum(words) > room:
        texts = _stack(table, cells, room + _GAP * (len(widths) - 1))
    else:
        while room is not None and sum(widths) > room:  # the widest column that can be narrower
            widths[max(range(len(widths)), key=lambda i: (widths[i] > words[i], widths[i]))] -= 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        out.width = sum(widths) + _GAP * len(widths)
        texts = [table]
    with out.capture() as captured:
        for text in texts:
            out.print(text, soft_wrap=text is not table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=out.color_system is not None)
    click.echo()


def _stack(table: "Table", cells: Sequence[Sequence[Any]], room: int) -> "list[Text | Table]":
    """Return the lines of a table that is too wide: for each row its first cell, and the others below it."""
    from rich.text import Text

    lines: list[Text | Table] = []
    (_, *names), *others = cells
    for number, name in enumerate(names, start=1):
        style = table.rows[number - 1].style or ""
        lines.append(Text.assemble(name, style=style))
        for header, *values in others:
            value = values[number - 1]
            if not value.plain:
                continue
            text = Text.assemble(header.plain, ": " if header.plain else "", value, style=style)
            longest = max(len(word) for word in text.plain.split())
            indent = Text(" " * _INDENT)
            lines += [indent + line for line in text.wrap(console(), max(room - _INDENT, longest))]
    return lines


def style(text: str, *, bold: bool = False, color: str | None = None) -> str:
    """Return a text with a style for stdout if that is a terminal, unless NO_COLOR is set."""
    return click.style(text, bold=bold or None, fg=color) if sys.stdout.isatty() and _color() is None else text


def _print_labelled(label: str, color: str, text: str) -> None:
    click.echo(f"{click.style(label, fg=color, bold=True)}: {redact(name_options(text))}", err=True, color=_color())


def _color() -> bool | None:
    """Return False for no colours (no-color.org, or a dumb terminal), else None: click colours terminals only."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


class EventPrinter:
    """Prints the events of a run to stderr; `attempts` is the maximum number of attempts, None for no limit."""

    def __init__(self, attempts: int | None) -> None:
        self._of = "" if attempts is None else f" of {attempts}"
        self._failure = ""

    def __call__(self, event: Event) -> None:
        """Print an event."""
        if isinstance(event, Failed):
            self._failure = event.text
        elif isinstance(event, Scheduled):
            tell(f"forbear: {self._failure}; attempt {event.attempt}{self._of} in {show(event.delay)}")
        elif isinstance(event, GaveUp):
            tell(f"{event.report.note}; last failure: {self._failure}")
        elif isinstance(event, BudgetDegraded):
            tell(f"forbear: {event.operation}: {event.text}; it asks again in {show(event.pause)}")
        elif isinstance(event, BudgetRestored):
            tell(f"forbear: {event.operation}: the server answers again, after {show(event.elapsed)}")
        else:
            tell(f"forbear: attempt {event.attempt} worked")
