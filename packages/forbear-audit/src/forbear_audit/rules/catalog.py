"""The rules: the id, severity, reason, example and cure of each, from rules.toml. `checks` finds what breaks them."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from forbear_audit.findings import Severity


@dataclass(frozen=True)
class AuditRule:
    """One rule: its id, its severity, what it says, why, an example that breaks it, and the cures by library.

    `cures` has a text for each library that needs its own words; `cure` is for all others. `cured` is the example
    without its flaw, and `accept` says when a finding may stay. `notes` are libraries for which a finding is only a
    note, because they have no option that would be the cure. A rule that is not `is_on` applies only if it is selected.

    >>> RULES["NO-JITTER"].summary
    'The waits grow, but without a random part.'
    """

    id: str
    severity: Severity
    summary: str
    why: str
    example: str
    cure: str
    cured: str
    accept: str
    cures: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    is_on: bool = True

    @property
    def anchor(self) -> str:
        """The anchor of the rule on the page of all rules."""
        return self.id.lower()

    def cure_for(self, library: str) -> str:
        """Return the cure in the words of a library."""
        return self.cures.get(library, self.cure)

    def severity_for(self, library: str) -> Severity:
        """Return the severity of a finding about a library."""
        return "note" if library in self.notes else self.severity


_ROWS = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))

RULES: dict[str, AuditRule] = {name: AuditRule(name, **row) for name, row in _ROWS.items()}
"""All rules by their ids, in the order of the documentation."""

DEFAULT_RULES = tuple(rule.id for rule in RULES.values() if rule.is_on)
"""The rules that apply unless others are selected."""
