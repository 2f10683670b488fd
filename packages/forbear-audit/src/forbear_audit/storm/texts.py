"""The findings of a storm as text, for the summary and the reports of tests."""

from collections.abc import Iterable

from forbear_audit.storm.judge import StormFinding


def drop_repeats(findings: Iterable[StormFinding]) -> list[StormFinding]:
    """Return the first finding of each kind for each call and place, with all that are no notes first."""
    kept: dict[tuple[str, str, str], StormFinding] = {}
    for finding in findings:
        kept.setdefault((finding.kind, finding.site, finding.call.partition("#")[0]), finding)
    return sorted(kept.values(), key=lambda finding: finding.is_note)


def number_of_each(listed: list[dict[str, str]]) -> str:
    """Return how many findings there are of each kind, such as "1 duplicated, 2 lost"."""
    kinds = sorted({finding["kind"] for finding in listed})
    counts = (f"{sum(finding['kind'] == kind for finding in listed)} {kind}" for kind in kinds)
    return ", ".join(counts) or "nothing found"


def finding_title(finding: dict[str, str]) -> str:
    """Return kind, rule, call and place of a finding."""
    rule = f" ({finding['rule']})" if finding["rule"] else ""
    return f"{finding['kind']}{rule}: {finding['call']} at {finding['site']}"


def finding_lines(finding: dict[str, str]) -> str:
    """Return a finding as text: what, where, and the command that shows it again."""
    rule = f" ({finding['rule']})" if finding["rule"] else ""
    call = f"{finding['call']} at {finding['site']}: " if finding["call"] else ""
    lines = [f"{finding['kind']}{rule}: {finding['test']}", f"  {call}{finding['text']}"]
    return "\n".join(lines + ([f"  {finding['reproduction']}"] if finding["reproduction"] else []))


def text_of_missed_fault(fault: str, sent: list[str]) -> str:
    """Return the error for a fault of `--forbear-fault` that met none of the calls that were sent."""
    calls = f"they sent {', '.join(sent)}" if sent else "they sent none that a storm sees"
    return f"ERROR: `--forbear-fault '{fault}'` meets no call of these tests; {calls}"
