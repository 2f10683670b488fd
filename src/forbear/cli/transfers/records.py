"""Records: outcomes and summaries as plain values, as `--json` prints them, without secrets. It prints nothing."""

from forbear.core.redact import redact
from forbear.core.report import Report
from forbear.transfer.items import Action, Outcome, Summary

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
