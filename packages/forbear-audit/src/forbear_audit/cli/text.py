"""The text that `forbear audit` prints for people: findings with a caret and their cure, rules, and fixes."""

import shutil
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import style, tell, wrap

if TYPE_CHECKING:
    from forbear_audit import Audit, Finding
    from forbear_audit.fixes import FixedFile

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def print_finding(finding: "Finding") -> None:
    """Print a finding: place and rule, the line of code with carets below it, and the cure."""
    cell = f"cell {finding.cell}:" if finding.cell else ""
    place = style(f"{printable(finding.path)}:{cell}{finding.line}:{finding.column}", bold=True)
    label = style(f"{finding.severity} {finding.rule}", color=_COLORS[finding.severity], bold=True)
    click.echo(f"{place}: {label}: {printable(finding.message)}")
    text = printable(finding.text.rstrip())
    if text:
        ends_here = finding.end_line == finding.line
        width = (finding.end_column if ends_here else len(text) + 1) - finding.column
        margin = " " * len(str(finding.line))
        click.echo(f"{finding.line} | {text}")
        click.echo(f"{margin} | {' ' * (finding.column - 1)}{'^' * max(1, min(width, len(text) - finding.column + 1))}")
    click.echo(wrap(f"  cure: {printable(finding.cure)}", indent=4) + "\n")


def print_rule(rule_id: str) -> None:
    """Print all about a rule: summary, reason, examples, the cures of each library, and when a finding may stay."""
    from forbear_audit.rules.catalog import RULES

    rule = RULES[rule_id]
    _paragraph(f"{rule.id} ({rule.severity}): {rule.summary}")
    _paragraph(rule.why)
    _example("Example:", rule.example)
    _paragraph(f"Cure: {rule.cure}.", last=not rule.cures)
    for number, (library, cure) in enumerate(rule.cures.items(), 1):
        _paragraph(f"  {library}: {cure}", indent="    ", last=number == len(rule.cures))
    _example("Cured:", rule.cured)
    _paragraph(f"A finding may stay if this holds: {rule.accept[0].lower()}{rule.accept[1:]}")
    click.echo(f"Then suppress it by a comment:\n\n    # forbear: ignore[{rule.id}]\n")


def _paragraph(text: str, *, indent: str = "", last: bool = True) -> None:
    """Print a text within the width of the terminal, but at most 100 columns, and an empty line if it is the last."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    click.echo("\n".join(lines) + "\n" * last)


def _example(title: str, code: str) -> None:
    click.echo(f"{title}\n\n{textwrap.indent(code, '    ')}\n")


def print_summary(result: "Audit") -> None:
    """Print how many findings of each severity there are, and how many files were read."""
    counts = Counter(finding.severity for finding in result.findings)
    parts = [
        f"{counts[name]} {name}{'s' * (counts[name] != 1)}" for name in ("error", "warning", "note") if counts[name]
    ]
    suppressed = f"; {result.suppressed} suppressed" if result.suppressed else ""
    files = f"{result.files} file{'s' * (result.files != 1)}"
    click.echo(f"{', '.join(parts) or 'no findings'} in {files}{suppressed}")


def print_diff(files: "list[FixedFile]") -> None:
    """Print the changes as one unified diff to stdout, and what they cure to stderr.

    A terminal gets colors and no characters that command it; anything else gets exact bytes, as a patch needs them.
    """
    for file in files:
        if not sys.stdout.isatty():
            click.echo(file.patch(), nl=False)
            continue
        for line in file.diff().removesuffix("\n").split("\n"):
            color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            text = printable(line.removesuffix("\r"))
            click.echo(style(text, color=color) if color else text)
    for file in files:
        for one in file.fixes:
            tell(f"would fix {one}")


def print_fixes(files: "list[FixedFile]", *, err: bool) -> None:
    """Print what was fixed, to stdout or to stderr."""
    for file in files:
        for one in file.fixes:
            click.echo(printable(f"fixed {one}"), err=err)


def advise_figures(result: "Audit", *, deadline: float | None, cap: float | None) -> None:
    """Print which findings need a figure that only the user can choose."""
    from forbear_audit.fixes import CAPPED, TIMED

    counts = Counter(
        option
        for option, value, rules in (("--fix-deadline", deadline, TIMED), ("--fix-cap", cap, CAPPED))
        for finding in result.findings
        if value is None and finding.library in rules.get(finding.rule, ())
    )
    for option, count in counts.items():
        what = "a deadline" if option == "--fix-deadline" else "a cap"
        tell(f"{count} more {'needs' if count == 1 else 'need'} {what}: choose its seconds with {option} 60")


def printable(text: str) -> str:
    """Return a text without characters that command a terminal; a tab becomes one space, so that carets fit."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in text)
