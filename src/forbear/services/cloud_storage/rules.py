"""Which rule of a row holds: the table's own, with the disputed conditions, or the retry page's. It knows no table."""

from forbear.core.verdict import Safety
from forbear.tables.table import Row, Rule

NAME = "cloud_storage"
"""The service's name in judgements."""

_NEVER = Rule(Safety.NEVER)


def choose(row: Row, *, disputed: bool, documented: bool) -> Rule:
    """The rule for a row; what the retry page does not name is never repeated where it is followed to the letter."""
    if documented:
        return row.documented or _NEVER
    if disputed and row.disputed:
        return Rule(Safety.CONDITIONAL, row.rule.conditions + row.disputed)
    return row.rule
