"""Make the page of the rules of `forbear audit`: a section for each, with its reason, examples and cures."""

from collections.abc import Iterator

from docs.generate.markdown import bullets, text
from forbear_audit.rules.catalog import RULES, AuditRule


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield from ("# Audit: the rules", "")
    yield from text(
        "`make reference` generates this page from the rules of forbear. Do not edit it by hand.",
        """Each section has the reason of a rule, an example that breaks it, the cure, and when a finding may stay.
        `forbear audit --explain RULE` prints the same. [Audit](../audit.md) describes the command, its settings and
        how good the rules are.""",
    )
    yield from bullets(f"[{rule.id}](#{rule.anchor}): {rule.summary}" for rule in RULES.values())
    for rule in RULES.values():
        yield from _section(rule)


def _section(rule: AuditRule) -> Iterator[str]:
    yield from (f"## {rule.id}", "")
    notes = f"; a note for {_listed(sorted(rule.notes))}" if rule.notes else ""
    yield from text(f"Severity: {rule.severity}{notes}.", rule.summary, rule.why, "An example:")
    yield from _code(rule.example)
    yield from text(f"Cure: {rule.cure}.")
    yield from bullets(f"{library}: {cure}" for library, cure in rule.cures.items())
    yield from text("Cured:")
    yield from _code(rule.cured)
    yield from text(f"A finding may stay if this holds: {rule.accept[0].lower()}{rule.accept[1:]}")
    yield from text(f"Then suppress it by the comment `# forbear: ignore[{rule.id}]`.")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _code(example: str) -> Iterator[str]:
    """Yield an indented block, which no test runs: it calls functions that are not there."""
    yield from (f"    {line}".rstrip() for line in example.splitlines())
    yield ""
