"""Watching transfers: live lines where stderr is a terminal, else hardly a word until something fails."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from forbear.cli.output import tell
from forbear.cli.transfers.reporter import Reporter, of_span
from forbear.cli.transfers.statistics import Progress
from forbear.core.events import Scheduled
from forbear.run.runtime import current
from forbear.transfer.items import Item, Outcome
from forbear.transfer.progress import Progress

_FRAMES = 8
"""A second."""
_PATIENT = 30.0
"""Seconds without any progress after which it is said, even where nobody watches, what keeps being tried again."""


class Watch:
    """A listener that keeps the figures and says what is to be said; the lines that a terminal shows are another's."""

    def __init__(self, reporter: Reporter, progress: Progress) -> None:
        self._reporter = reporter
        self._warnings: set[str] = set()
        self.progress = progress

    def planned(self, items: int, size: int | None, complete: bool) -> None:
        """More are known of."""
        self.progress.planned(items, size, complete)

    def began(self, item: Item) -> None:
        """One begins."""
        self.progress.began(item)

    def sized(self, item: Item, size: int) -> None:
        """Its size is known now."""
        self.progress.sized(item, size)

    def moved(self, item: Item, count: int) -> None:
        """Bytes of it are across."""
        self.progress.moved(item, count)

    def retried(self, item: Item | None, event: Scheduled) -> None:
        """Something of it, or of the plan, will be tried again."""
        self.progress.retried(item, event)

    def warned(self, text: str) -> None:
        """Say once what is worth knowing."""
        if text not in self._warnings:
            self._warnings.add(text)
            self._reporter.warning(text)

    def ended(self, outcome: Outcome) -> None:
        """It is over."""
        self.progress.ended(outcome)
        self._reporter.outcome(outcome)


class Plain(Watch):
    """Where nobody watches: says, now and then, why nothing moves."""

    def __init__(self, reporter: Reporter, progress: Progress) -> None:
        super().__init__(reporter, progress)
        self._said = progress.began_at

    def retried(self, item: Item | None, event: Scheduled) -> None:
        """Say so if nothing has moved for long."""
        super().retried(item, event)
        now = self.progress.clock()
        still = now - max(self.progress.moved_at, self._said)
        if still >= _PATIENT:
            self._said = now
            reason = event.failure.text
            tell(f"nothing moved for {of_span(now - self.progress.moved_at)}: {reason}; again in {event.delay:.1f} s")


class Planning(Progress):
    """The meter of what is asked for before there are items: it may have to be tried again, too."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def retried(self, event: Scheduled) -> None:
        """Something failed and will be tried again."""
        self._watch.retried(None, event)


@contextmanager
def watching(reporter: Reporter, *, quiet: bool, streams: bool) -> Generator[Watch]:
    """What suits stderr. While lines are live on it, what others write to it appears above them.

    `streams` is whether the command reads data from stdin, or writes some to stdout: a terminal does not show both.
    """
    progress = Progress(current.get().monotonic)  # by the clock of the waits
    if quiet:
        yield Watch(reporter, progress)
        return
    if not _is_terminal(sys.stderr) or (streams and (_is_terminal(sys.stdin) or _is_terminal(sys.stdout))):
        yield Plain(reporter, progress)
        return
    from rich.console import Console
    from rich.live import Live

    from forbear.cli.transfers.screen import Screen

    console = Console(stderr=True, highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    if not console.is_terminal or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        yield Plain(reporter, progress)
        return
    shown = Screen(progress)
    with Live(shown, console=console, refresh_per_second=_FRAMES, transient=True, redirect_stdout=False):
        yield Watch(reporter, progress)


def _is_terminal(file: TextIO | None) -> bool:
    return file is not None and file.isatty()
