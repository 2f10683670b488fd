"""Draw what a command of forbear prints on a terminal as an SVG picture, without fonts or scripts from elsewhere."""

import io
import os
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from forbear.cli.app import app

WIDTH = 88
"""The columns of the terminal, unless a picture says otherwise."""

_DIM = ["6b7280", "dc2626", "15803d", "a16207", "2563eb", "9333ea", "0891b2", "1f2937"]
_COLOURS = ["24292e", "b42318", "166534", "925400", "1d4ed8", "7e22ce", "0e7490", "4b5563"]


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour)
    return red, green, blue


_THEME = TerminalTheme(_rgb("fdfdfb"), _rgb("24292e"), [*map(_rgb, _COLOURS)], [*map(_rgb, _DIM)])

_TITLE = 28  # units of the picture

# The template of rich loads a font from a server; this one takes the reader's own.
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>{unique_id}</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect fill="#fdfdfb" x="0" y="0" width="{width}" height="{height}"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class _Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def output(run: Callable[[], object], width: int) -> str:
    """Return what `run` prints to a terminal of `width` columns, with its colours."""
    screen = _Screen()
    lines = str(1000)
    terminal = {"TERM": "xterm-256color", "COLUMNS": str(width), "LINES": lines, "FORCE_COLOR": "1", "NO_COLOR": ""}
    with mock.patch.dict(os.environ, terminal), redirect_stdout(screen), redirect_stderr(screen):
        run()
    return screen.getvalue()


def command(line: str) -> Callable[[], object]:
    """Return a function that runs a command line of forbear in this process."""
    return lambda: app.main(shlex.split(line)[1:], prog_name="forbear", standalone_mode=False)


def drawn(name: str, line: str, printed: str, width: int) -> str:
    """Return the picture of a terminal in which `line` was typed and `printed` came back."""
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="256", legacy_windows=False
    )
    console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
    for each in printed.rstrip("\n").split("\n"):
        console.print(Text.from_ansi(each))
    svg = console.export_svg(title=name, theme=_THEME, code_format=_FORMAT, unique_id=f"forbear-{name}")
    svg = re.sub(r'viewBox="0 0 (\S+) (\S+)"', _without_title, svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE).rstrip("\n") + "\n"


def _without_title(match: re.Match[str]) -> str:
    """Return a view box without the place that rich leaves for the title of a window."""
    return f'viewBox="0 {_TITLE} {float(match[1]):g} {float(match[2]) - _TITLE + 4:g}"'
