"""The findings of `forbear audit` for people: the code with a caret, the message, and the cure."""

from collections import Counter
from typing import TYPE_CHECKING

import click

from forbear.cli.output import BadInput

if TYPE_CHECKING:
    from forbear.audit import Audit, Finding

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def print_finding(finding: "Finding") -> None:
    """Print a finding: place and rule, the line of code with carets below it, and the cure."""
    cell = f"cell {finding.cell}:" if finding.cell else ""
    place = click.style(f"{printable(finding.path)}:{cell}{finding.line}:{finding.column}", bold=True)
    label = click.style(f"{finding.severity} {finding.rule}", fg=_COLORS[finding.severity], bold=True)
    click.echo(f"{place}: {label}: {printable(finding.message)}")
    text = printable(finding.text.rstrip())
    if text:
        ends_here = finding.end_line == finding.line
        width = (finding.end_column if ends_here else len(text) + 1) - finding.column
        margin = " " * len(str(finding.line))
        click.echo(f"{finding.line} | {text}")
        click.echo(f"{margin} | {' ' * (finding.column - 1)}{'^' * max(1, min(width, len(text) - finding.column + 1))}")
    click.echo(f"  cure: {printable(finding.cure)}\n")


def print_rule(rule_id: str) -> None:
    """Print all about a rule: summary, reason, example, and the cures of each library."""
    from forbear.audit import RULES

    if rule_id not in RULES:
        raise BadInput(f"there is no rule {rule_id}", f"the rules are {', '.join(RULES)}")
    rule = RULES[rule_id]
    click.echo(f"{rule.id} ({rule.severity}): {rule.summary}\n\n{rule.why}\n\nExample:\n")
    click.echo("\n".join(f"    {line}".rstrip() for line in rule.example.splitlines()))
    click.echo(f"\nCure: {rule.cure}.")
    for library, cure in rule.cures.items():
        click.echo(f"  {library}: {cure}")


def print_summary(result: "Audit") -> None:
    """Print how many findings of each severity there are, and how many files were read."""
    counts = Counter(finding.severity for finding in result.findings)
    parts = [
        f"{counts[name]} {name}{'s' * (counts[name] != 1)}" for name in ("error", "warning", "note") if counts[name]
    ]
    suppressed = f"; {result.suppressed} suppressed" if result.suppressed else ""
    files = f"{result.files} file{'s' * (result.files != 1)}"
    click.echo(f"{', '.join(parts) or 'no findings'} in {files}{suppressed}")


def printable(text: str) -> str:
    """Return a text without characters that command a terminal; a tab becomes one space, so that carets fit."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in text)
