"""The live lines of transfers on a terminal: a few lines that fit its width, drawn from the statistics."""

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from forbear.adapters import printable
from forbear_transfer.cli.shared.reporter import format_bytes, format_clock, format_count
from forbear_transfer.cli.shared.statistics import LastRetry, RunningItem, Statistics
from forbear_transfer.items import Item

_LINES = 4
_LARGE = 8 * 1024 * 1024
"""The smallest size in bytes that gets a line of its own: smaller transfers end too soon to be read."""
_LONGEST_BAR, _SHORTEST_BAR, _SHORTEST_NAME = 40, 8, 8
_STALE = 60.0
"""Seconds for which the last retry is shown after it has started."""


class Screen:
    """Draws the statistics as live lines: up to four large running items, the total, and a recent retry."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = self._statistics.clock()
        yield from (_running_line(item, options.max_width) for item in self._statistics.largest(_LINES, _LARGE))
        yield self._total(options.max_width)
        retry = self._statistics.retry
        if retry is not None and now - retry.due < _STALE:
            yield _retry(retry, now, options.max_width)

    def _total(self, width: int) -> Text:
        """Return the bar and the figures; if `width` is too small, without the least important figures or the bar."""
        share, texts = self._statistics.share, self._texts()
        while len(texts) > 1 and sum(cell_len(text) + 2 for text, _ in texts) > width:
            texts.pop()
        line = Text()
        room = min(width - sum(cell_len(text) + 2 for text, _ in texts), _LONGEST_BAR)
        if share is not None and room >= _SHORTEST_BAR:
            full = int(share * room)
            line.append("━" * full, "green").append("━" * (room - full), "bright_black").append("  ")
        for number, (text, style) in enumerate(texts):
            line.append("  " if number else "").append(text, style)
        return _fitting(line, width)

    def _texts(self) -> list[tuple[str, str]]:
        figures = self._statistics
        size, share, speed = figures.size, figures.share, figures.speed()
        more = "" if figures.is_planned else "+"
        texts = [(f"{figures.ended_items} of {figures.items}{more} files" if figures.items else "listing", "")]
        if share is not None:
            texts.append((f"{int(share * 100)} %", ""))
        if figures.failed:
            texts.append((f"{figures.failed} failed", "bold red"))
        texts.append((f"{format_bytes(speed)}/s", ""))
        left = figures.time_left(speed)
        if left is not None:
            texts.append((f"{format_clock(left)} left", ""))
        if figures.retries:
            texts.append((format_count(figures.retries, "retry", "retries"), "yellow"))
        of_all = f" of {format_bytes(size)}" if size and figures.is_planned else ""
        texts.append((f"{format_bytes(figures.across)}{of_all}", ""))
        if figures.skipped:
            texts.append((f"{figures.skipped} skipped", "dim"))
        return texts


def _running_line(running: RunningItem, width: int) -> Text:
    size = running.size
    figures = f"{format_bytes(running.moved)} of {format_bytes(size)}" if size else format_bytes(running.moved)
    if size:
        figures = f"{min(max(running.moved, 0) * 100 // size, 100)} %  {figures}"
    return _fitting(Text(f"{_name(running.item, width - cell_len(figures) - 2)}  {figures}"), width)


def _retry(retry: LastRetry, now: float, width: int) -> Text:
    """Return the line about a retry: when it starts, then as much of the reason and of the item's name as fits."""
    left = retry.due - now
    when = f", again in {left:.1f} s" if left > 0 else ", tried again"
    room = width - len(when)
    reason = _fitting(Text(printable(retry.reason)), max(room - _SHORTEST_NAME - 2, 0)).plain
    name = "listing" if retry.item is None else _name(retry.item, room - cell_len(reason) - 2)
    line = _fitting(Text(f"{name}: {reason}"), max(room, 0))
    return _fitting(Text(f"{line.plain}{when}", "yellow"), width)


def _name(item: Item, room: int) -> str:
    """Return the item's source within `room` cells; the end of a path says more than its beginning."""
    name, room = printable(str(item.source)), max(room, _SHORTEST_NAME)
    if cell_len(name) <= room:
        return name
    name = name[-room:]
    while cell_len(name) >= room:
        name = name[1:]
    return f"…{name}"


def _fitting(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis")
    return line
