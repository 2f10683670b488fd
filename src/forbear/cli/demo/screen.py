"""What is shown of the contest while it runs, on stderr: rows that grow on a terminal, else one line a contender."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from forbear.cli.demo.contest import Moment
from forbear.cli.demo.referee import Score
from forbear.cli.output import columns, tell

_BARS = "▁▂▃▄▅▆▇█"
_FULL = 60
"""Requests between two moments that make a full bar."""
_CELLS = 40
_LEGEND = "a bar: the requests of a moment; green: no fault met them, yellow: some, red: many; a dot: everybody waits\n"


class Lines:
    """One line for each contender, when it is done."""

    def watch(self, moment: Moment) -> None:
        """Nothing is shown on the way."""

    def finished(self, name: str, score: Score, seconds: float) -> None:
        """Say what a contender had to go through."""
        tell(f"{name}: {_summary(score.requests, score.faults, score.retries)}, {seconds:.1f} s")


class Rows:
    """A row for each contender: a bar for each moment, coloured by how many of its requests met a fault."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rows: dict[str, tuple[Text, Text]] = {}
        self._before = Moment("", 0, 0, 0)

    def watch(self, moment: Moment) -> None:
        """Add a bar."""
        if moment.contender not in self._rows:
            self._rows[moment.contender] = Text(), Text()
            self._before = Moment(moment.contender, 0, 0, 0)
        bars, text = self._rows[moment.contender]
        requests, faults = moment.requests - self._before.requests, moment.faults - self._before.faults
        self._before = moment
        if requests:  # of more than a third of them the bar is red
            color = "green" if not faults else "yellow" if faults * 3 < requests else "red"
            bars.append(_BARS[min(requests * len(_BARS) // _FULL, len(_BARS) - 1)], color)
        elif moment.waiting:
            bars.append("·", "dim")
        text.plain = f"{moment.requests} requests, {moment.faults} met a fault, {moment.waiting} waiting"
        self._show()

    def finished(self, name: str, score: Score, seconds: float) -> None:
        """Put the totals beside the bars."""
        text = f"{_summary(score.requests, score.faults, score.retries)}, {seconds:.1f} s"
        self._rows[name] = self._rows[name][0], Text(text)
        self._show()

    def _show(self) -> None:
        table = columns("", "", "")
        table.show_header = False
        for name, (bars, text) in self._rows.items():
            table.add_row(f"[bold]{name}[/]", bars[-_CELLS:], text)
        self._live.update(Group(table, Text(_LEGEND, "dim")), refresh=True)


@contextmanager
def screen() -> Generator[Rows | Lines]:
    """What suits stderr."""
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(stderr=True, highlight=False, color_system=None if plain else "auto")
    if not console.is_terminal or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        yield Lines()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield Rows(live)


def _summary(requests: int, faults: int, retries: int) -> str:
    return f"{requests} requests, {faults} met a fault, {retries} were repeats"
