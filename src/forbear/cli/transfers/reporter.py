"""Reporter: what is said of outcomes, besides the progress: failures and the end on stderr, JSON lines on stdout."""

import json
import re
import select
import sys
from collections import Counter

import click

from forbear.cli.output import advise, report, tell, warn
from forbear.core.redact import printable, redact
from forbear.core.report import Report
from forbear.transfer.items import STREAM, Action, Item, Outcome, Status, Summary

_KINDS = 4
_WORD = re.compile(r"[\w ]+")
_LEAST_BYTES, _LEAST_SECONDS = 1024 * 1024, 0.1
"""From which on a speed means something."""
_CANNOT_CONNECT = "cannot connect to"
UNREACHABLE = "check the network; another service than the real one is named by --endpoint or STORAGE_EMULATOR_HOST"


class Reporter:
    """Says one outcome after the other, and in the end what came of all.

    `quiet` leaves out what is no failure; after a `dry_run`, outcomes are what would be done, and go to stdout.
    """

    def __init__(self, *, as_json: bool, quiet: bool, dry_run: bool = False) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._dry_run = dry_run
        self._unread = False

    def outcome(self, outcome: Outcome) -> None:
        """Say a failure, and why something was left out that was not to be expected."""
        item = outcome.item
        if self._as_json:
            click.echo(json.dumps(of_outcome(outcome)))
        if outcome.status is Status.FAILED:
            self._unread = item.target == STREAM and reader_is_gone()
            if not self._unread:
                _failure(outcome)
        elif item.action is Action.SKIP:
            if not self._quiet:
                tell(f"left out: {item.source}: {item.note}")
        elif self._dry_run and not self._as_json:
            click.echo(printable(f"{item.action.value} {_both(item)}"))

    def warning(self, text: str) -> None:
        """Say what is worth knowing though nothing has failed."""
        if not self._quiet:
            warn(text)

    def summary(self, summary: Summary) -> None:
        """Say what came of all."""
        if self._as_json:
            click.echo(json.dumps(of_summary(summary)))
        if not self._quiet and not self._unread:
            tell("this was a dry run: nothing was done" if self._dry_run else _total(summary))


def _total(summary: Summary) -> str:
    """All of it in one line: "12 files, 1.2 GiB in 5.8 s, 210.0 MiB/s; 3 retries; 1 failed"."""
    if not (summary.done or summary.skipped or summary.failed):
        return "nothing to do"
    done = of_count(summary.done - summary.deleted, "file")
    fast = summary.bytes >= _LEAST_BYTES and summary.seconds >= _LEAST_SECONDS
    speed = f", {of_bytes(summary.bytes / summary.seconds)}/s" if fast else ""
    counts = (
        (summary.deleted, f"{summary.deleted} deleted"),
        (summary.retries, of_count(summary.retries, "retry", "retries")),
        (summary.skipped, f"{summary.skipped} skipped"),
        (summary.failed, f"{summary.failed} failed"),
    )
    rest = (text for count, text in counts if count)
    return "; ".join((f"{done}, {of_bytes(summary.bytes)} in {of_span(summary.seconds)}{speed}", *rest))


def _failure(outcome: Outcome) -> None:
    item, error = outcome.item, outcome.error or ""
    name = printable(str(item.target if item.action is Action.DELETE else item.source))
    report(error if _names(error, name) else f"{name}: {error}")
    if outcome.report is not None:
        tell(f"tried: {_tried(outcome.report, error)}")
    cure = UNREACHABLE if error.startswith(_CANNOT_CONNECT) else outcome.hint
    if cure is not None:
        advise(cure)


def _names(error: str, name: str) -> bool:
    """Whether an error says itself what it is about; a plain name may be no more than a word in it."""
    return f" {name}: " in error or (name in error and not _WORD.fullmatch(name))


def _tried(report: Report, error: str) -> str:
    """How often it was tried, for how long, and what the answers were, unless all were that one."""
    answers = Counter(attempt.text for attempt in report.attempts).most_common(_KINDS)
    texts = [f"{text} ({count} times)" if count > 1 else text for text, count in answers]
    said = len(answers) == 1 and answers[0][0] in error
    return "; ".join((report.note.partition(": ")[2], *(() if said else (", ".join(texts),))))


def _both(item: Item) -> str:
    return str(item.target) if item.action is Action.DELETE else f"{item.source} -> {item.target}"


def reader_is_gone() -> bool:
    """Whether who read stdout has seen enough, and closed the pipe; where that cannot be known it is still there."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return False


Record = dict[str, object]

_NAMED = {Action.DELETE, Action.TOUCH}


def of_outcome(outcome: Outcome) -> Record:
    """One outcome; what does not apply is null."""
    item = outcome.item
    return {
        "source": str(item.source),
        "target": str(item.target),
        "action": item.action.value if item.action in _NAMED else "copy",
        "status": outcome.status.value,
        "size": item.size,
        "bytes": outcome.bytes,
        "seconds": round(outcome.seconds, 3),
        "retries": outcome.retries,
        "generation": outcome.generation,
        "crc32c": outcome.crc32c,
        "error": _shown(outcome.error),
        "hint": _shown(outcome.hint),
        "tried": None if outcome.report is None else _of_report(outcome.report),
    }


def of_summary(summary: Summary) -> Record:
    """The summary, under a name of its own that no outcome has."""
    return {
        "summary": {
            "done": summary.done,
            "deleted": summary.deleted,
            "skipped": summary.skipped,
            "failed": summary.failed,
            "bytes": summary.bytes,
            "seconds": round(summary.seconds, 3),
            "retries": summary.retries,
        }
    }


def _shown(text: str | None) -> str | None:
    return None if text is None else redact(text)


def _of_report(report: Report) -> Record:
    return {
        "operation": report.operation,
        "attempts": [{"error": attempt.text, "delay": attempt.delay} for attempt in report.attempts],
        "seconds": round(report.elapsed, 3),
        "reason": report.text,
    }


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def of_bytes(count: float) -> str:
    """A size: "0 B", "4.0 KiB", "1.2 GiB"."""
    power = 0
    while count >= (999.95 if power else 1024) and power < len(_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} B"


def of_clock(seconds: float) -> str:
    """A time to wait: "0:07", "1:02:03", "3 days"."""
    whole = round(seconds)
    if whole >= 2 * 86400:
        return f"{whole // 86400} days"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def of_span(seconds: float) -> str:
    """A time that has passed: "0.2 s", "42 s", "1:02:03"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else of_clock(seconds)


def of_count(count: int, word: str, plural: str | None = None) -> str:
    """A number of things: "1 file", "2 retries"."""
    return f"{count} {word if count == 1 else plural or f'{word}s'}"
