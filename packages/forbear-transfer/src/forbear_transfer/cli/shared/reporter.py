"""The output of transfers besides live lines: failures, warnings and the total on stderr.

JSON lines and the lines of a dry run go to stdout.
"""

import json
import re
import select
import sys
from collections import Counter
from collections.abc import Iterator

import click

from forbear.adapters import printable, redact
from forbear.cli.kit.output import advise, name_options, report, tell, warn
from forbear.events import Report
from forbear_transfer.cli.shared.statistics import Statistics
from forbear_transfer.items import STREAM, Action, Item, Outcome, Status, Summary
from forbear_transfer.objects import Url, quote_for_shell
from forbear_transfer.progress import Finished, Retried, TransferEvent, Warned
from forbear_transfer.wire.response import NotConnected

Record = dict[str, object]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KINDS = 4
_DONE = {
    Action.COPY: "copied",
    Action.DELETE: "deleted",
    Action.MOVE: "moved",
    Action.TOUCH: "set time or mode of",
    Action.UPDATE: "updated",
}
_WORD = re.compile(r"[\w ]+")
_LEAST_BYTES, _LEAST_SECONDS = 1024 * 1024, 0.1
"""The smallest transfer, in bytes and in seconds, for which a speed is printed."""
_STANDSTILL = 30.0
"""Seconds without progress after which retries are reported, if there are no live lines."""
UNREACHABLE = "check the network; --endpoint or STORAGE_EMULATOR_HOST selects another service"


class Reporter:
    """A listener that updates the statistics and prints outcomes and warnings; at the end, call `summary`.

    With `as_json`, each outcome and the summary also become a line of JSON on stdout. With `quiet`, stderr gets only
    failures, with `verbose` a line for every item. With `dry_run`, the outcomes say what would be done, and go to
    stdout; `work` counts them. With `reports_standstill`, a line on stderr says why nothing has moved for 30 s.
    With `deletes`, the command only deletes, and the total counts no files.
    """

    def __init__(
        self,
        statistics: Statistics,
        *,
        as_json: bool,
        quiet: bool,
        verbose: bool = False,
        dry_run: bool = False,
        deletes: bool = False,
    ) -> None:
        self.statistics = statistics
        self.work = 0
        self._deletes = deletes
        self._verbose = verbose
        self.reports_standstill = False
        self._as_json = as_json
        self._quiet = quiet
        self._dry_run = dry_run
        self._unread = False
        self._reported_at = statistics.began_at

    def __call__(self, event: TransferEvent) -> None:
        """Update the statistics with an event, and print the outcome, the standstill or the warning in it, if any."""
        self.statistics(event)
        if isinstance(event, Finished):
            self._print_outcome(event.outcome)
        elif isinstance(event, Retried) and self.reports_standstill:
            self._print_standstill(event)
        elif isinstance(event, Warned) and not self._quiet:
            warn(event.text)

    def _print_outcome(self, outcome: Outcome) -> None:
        """Print what the options ask for; no failure if the reader of stdout, to which it wrote, is gone."""
        item = outcome.item
        if self._as_json:
            click.echo(json.dumps(_make_record(outcome)))
        if outcome.status is Status.FAILED:
            self._unread = item.target == STREAM and reader_is_gone()
            if not self._unread:
                _print_failure(outcome)
        elif item.action is Action.SKIP:
            if not self._quiet:
                name = _show(item.source)
                tell(f"left out: {item.note if item.note.startswith(name) else f'{name}: {item.note}'}")
        elif self._dry_run:
            self.work += 1
            if not self._as_json:
                click.echo(printable(f"{item.action.value} {_name_both(item)}"))
        elif self._verbose and outcome.status is Status.SKIPPED:
            tell(printable(f"skipped {_name_both(item)}: {outcome.error}"))
        elif self._verbose:
            tell(printable(f"{_DONE[item.action]} {_name_both(item)}"))

    def _print_standstill(self, event: Retried) -> None:
        now, moved_at = self.statistics.clock(), self.statistics.moved_at
        if now - max(moved_at, self._reported_at) >= _STANDSTILL:
            self._reported_at = now
            reason, delay = event.scheduled.failure.text, event.scheduled.delay
            tell(f"nothing moved for {format_span(now - moved_at)}: {reason}; again in {delay:.1f} s")

    def summary(self, summary: Summary) -> None:
        """Print the total, as JSON and in words; no words if the reader of stdout, to which it wrote, is gone."""
        if self._as_json:
            click.echo(json.dumps(_make_summary_record(summary)))
        if not self._quiet and not self._unread:
            tell("dry run: nothing was changed" if self._dry_run else _format_total(summary, deletes=self._deletes))


def _format_total(summary: Summary, *, deletes: bool) -> str:
    """Return the total, such as "12 files, 1.2 GiB in 5.8 s, 210.0 MiB/s; 3 retries; 1 failed", without zero counts."""
    if not (summary.done or summary.skipped or summary.failed):
        return "nothing to do"
    if deletes or summary.deleted == summary.done > 0:
        return "; ".join((f"{summary.deleted} deleted in {format_span(summary.seconds)}", *_list_others(summary)))
    done = format_count(summary.done - summary.deleted, "file")
    fast = summary.bytes >= _LEAST_BYTES and summary.seconds >= _LEAST_SECONDS
    speed = f", {format_bytes(summary.bytes / summary.seconds)}/s" if fast else ""
    deleted = (f"{summary.deleted} deleted",) if summary.deleted else ()
    total = f"{done}, {format_bytes(summary.bytes)} in {format_span(summary.seconds)}{speed}"
    return "; ".join((total, *deleted, *_list_others(summary)))


def _list_others(summary: Summary) -> Iterator[str]:
    if summary.retries:
        yield format_count(summary.retries, "retry", "retries")
    if summary.skipped:
        yield f"{summary.skipped} skipped"
    if summary.failed:
        yield f"{summary.failed} failed"


def _print_failure(outcome: Outcome) -> None:
    item, error = outcome.item, outcome.error or ""
    name = _show(item.target if item.action is Action.DELETE else item.source)
    known = _names(error, name) or _names(error, str(item.source))
    report(error if known else f"{name}: {error}")
    if outcome.report is not None:
        tell(f"tried: {_describe_attempts(outcome.report, error)}")
    hint = UNREACHABLE if outcome.hint == NotConnected.hint else outcome.hint
    if hint is not None:
        advise(hint)


def _names(error: str, name: str) -> bool:
    """Return whether an error mentions an item; a plain word needs a colon, as it may be part of the text by chance."""
    return f" {name}: " in error or (name in error and not _WORD.fullmatch(name))


def _describe_attempts(report: Report, error: str) -> str:
    """Return the number of attempts, the time, why they ended, and the four most frequent failures."""
    failures = Counter(attempt.text for attempt in report.attempts).most_common(_KINDS)
    texts = [f"{text} ({count} times)" if count > 1 else text for text, count in failures]
    others = report.count - sum(count for _, count in failures)
    if others:
        texts.append(f"and {others} more")
    known = not others and len(failures) == 1 and failures[0][0] in error
    return "; ".join((report.note.partition(": ")[2], *(() if known else (", ".join(texts),))))


def _name_both(item: Item) -> str:
    if item.action is Action.DELETE:
        return _show(item.target)
    return f"{_show(item.source)} -> {_show(item.target)}"


def _show(place: Url | str) -> str:
    return f"{place}" if isinstance(place, Url) else quote_for_shell(place)


def reader_is_gone() -> bool:
    """Return whether the reader of stdout has closed the pipe; False where that cannot be known."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


def _make_record(outcome: Outcome) -> Record:
    """Return an outcome as a JSON object, without secrets; null stands for what does not apply."""
    item = outcome.item
    return {
        "source": str(item.source),
        "target": str(item.target),
        "action": item.action.value if item.action in _DONE else "copy",
        "status": outcome.status.value,
        "size": item.object.size if item.action is Action.DELETE and item.object is not None else item.size,
        "bytes": outcome.bytes,
        "seconds": round(outcome.seconds, 3),
        "retries": outcome.retries,
        "generation": outcome.generation,
        "crc32c": outcome.crc32c,
        "error": None if outcome.error is None else redact(outcome.error),
        "hint": None if outcome.hint is None else redact(name_options(outcome.hint)),
        "tried": None if outcome.report is None else outcome.report.as_dict(),
    }


def _make_summary_record(summary: Summary) -> Record:
    names = ("done", "deleted", "skipped", "failed", "bytes", "seconds", "retries")
    return {"summary": {**{name: getattr(summary, name) for name in names}, "seconds": round(summary.seconds, 3)}}


def format_bytes(count: float) -> str:
    """Return a number of bytes in words: "0 B", "4.0 KiB", "1.2 GiB"."""
    power = 0
    while count >= (999.95 if power else 1024) and power < len(_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} B"


def format_clock(seconds: float) -> str:
    """Return a number of seconds as minutes or hours: "0:07", "1:02:03"; from two days on as "3 days"."""
    whole = round(seconds)
    if whole >= 2 * 86400:
        return f"{whole // 86400} days"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_span(seconds: float) -> str:
    """Return a number of seconds that have passed in words: "0.2 s", "42 s"; from two minutes on as "1:02:03"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else format_clock(seconds)


def format_count(count: int, word: str, plural: str | None = None) -> str:
    """Return a number of things in words: "1 file", "2 retries"; `plural` is `word` with an "s" if it is None."""
    return f"{count} {word if count == 1 else plural or f'{word}s'}"
