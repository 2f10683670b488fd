"""What a terminal shows of transfers under way: a few lines that fit its width, drawn from the figures."""

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from forbear.cli.transfers.reporter import of_bytes, of_clock, of_count
from forbear.cli.transfers.statistics import Flight, Progress, Retry
from forbear.core.redact import printable
from forbear.transfer.items import Item

_FLIGHTS = 4
_LARGE = 8 * 1024 * 1024
"""Bytes from which a transfer gets a line of its own: smaller ones are over too soon to be read."""
_LONGEST_BAR, _SHORTEST_BAR, _SHORTEST_NAME = 40, 8, 8
_STALE = 60.0
"""Seconds for which a retry is worth a line after it has begun."""


class Screen:
    """Draws the figures as they are at that moment."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = self._progress.clock()
        yield from (_flight(flight, options.max_width) for flight in self._progress.largest(_FLIGHTS, _LARGE))
        yield self._total(options.max_width)
        retry = self._progress.retry
        if retry is not None and now - retry.due < _STALE:
            yield _retry(retry, now, options.max_width)

    def _total(self, width: int) -> Text:
        """The bar and the figures; where there is no room for all, the least important ones are left out."""
        share, texts = self._progress.share, self._texts()
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
        """The figures with their styles, the most important ones first."""
        told, size, share, speed = self._progress, self._progress.size, self._progress.share, self._progress.speed()
        more = "" if told.is_planned else "+"
        texts = [(f"{told.ended_items} of {told.items}{more} files" if told.items else "listing", "")]
        if share is not None:
            texts.append((f"{int(share * 100)} %", ""))
        if told.failed:
            texts.append((f"{told.failed} failed", "bold red"))
        texts.append((f"{of_bytes(speed)}/s", ""))
        if size and share is not None and speed:
            texts.append((f"{of_clock(max(size - told.across, 0) / speed)} left", ""))
        if told.retries:
            texts.append((of_count(told.retries, "retry", "retries"), "yellow"))
        of_all = f" of {of_bytes(size)}" if size and told.is_planned else ""
        texts.append((f"{of_bytes(told.across)}{of_all}", ""))
        if told.skipped:
            texts.append((f"{told.skipped} skipped", "dim"))
        return texts


def _flight(flight: Flight, width: int) -> Text:
    size = flight.size
    figures = f"{of_bytes(flight.moved)} of {of_bytes(size)}" if size else of_bytes(flight.moved)
    if size:
        figures = f"{min(max(flight.moved, 0) * 100 // size, 100)} %  {figures}"
    return _fitting(Text(f"{_name(flight.item, width - cell_len(figures) - 2)}  {figures}"), width)


def _retry(retry: Retry, now: float, width: int) -> Text:
    """The wait is shown in any case, then as much of the reason as there is room for, and of the name."""
    left = retry.due - now
    when = f", again in {left:.1f} s" if left > 0 else ", tried again"
    room = width - len(when)
    reason = _fitting(Text(printable(retry.reason)), max(room - _SHORTEST_NAME - 2, 0)).plain
    name = "listing" if retry.item is None else _name(retry.item, room - cell_len(reason) - 2)
    line = _fitting(Text(f"{name}: {reason}"), max(room, 0))
    return _fitting(Text(f"{line.plain}{when}", "yellow"), width)


def _name(item: Item, room: int) -> str:
    """The name, or the end of it, which tells more than its beginning."""
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
