"""The rows of a table in the form that the command line, the documentation and the exports read."""

from collections.abc import Iterable

from forbear.core.service import TableEntry
from forbear.tables.conditions import Alternatives, compiled, compiled_fields
from forbear.tables.table import Row, Rule


def entries(rows: Iterable[Row], where: tuple[str, ...]) -> tuple[TableEntry, ...]:
    """Return the entries of rows whose service's own columns are named `where`."""
    return tuple(_entry(row, dict(zip(where, row.where, strict=True))) for row in rows)


def spelt(alternatives: Alternatives) -> str:
    """Return conditions in the grammar of the tables."""
    return "|".join("&".join(f"{prefix}:{name}" for prefix, name in terms) for terms in alternatives)


def _entry(row: Row, where: dict[str, str]) -> TableEntry:
    alternatives = row.rule.conditions
    return TableEntry(
        row.id,
        row.rule.safety,
        rpc=where.get("rpc", ""),
        conditions=tuple(condition.text for condition in compiled(alternatives)),
        fields=tuple(condition.text for condition in compiled_fields(alternatives)),
        disputed=_words(row.disputed),
        documented=None if row.documented is None else _words(row.documented.conditions),
        maybe_done=row.maybe_done,
        is_read=row.is_read,
        source=row.source,
        effect=row.effect,
        note=row.note,
        columns={
            "id": row.id,
            **where,
            "safety": row.rule.safety.value,
            "safe_if": spelt(alternatives),
            "disputed_if": spelt(row.disputed),
            "documented": "" if row.documented is None else _rule(row.documented),
            "maybe_done": "|".join(row.maybe_done),
            "source": row.source,
            "effect": row.effect,
            "note": row.note,
        },
    )


def _words(alternatives: Alternatives) -> tuple[str, ...]:
    """Return conditions in words, those of HTTP before those of gRPC."""
    http = [condition.text for condition in compiled(alternatives)]
    return tuple(dict.fromkeys((*http, *(condition.text for condition in compiled_fields(alternatives)))))


def _rule(rule: Rule) -> str:
    return spelt(rule.conditions) or rule.safety.value
