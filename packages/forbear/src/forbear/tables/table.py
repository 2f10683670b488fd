"""Read a table of operations: one row each, checked against the schema.

A table is a CSV file with the columns below. A service adds its own columns that identify an operation (HTTP method and
path, RPC, command). An empty cell means "none"; in `documented` it means that the page does not name the operation.

- `id`: the name of the operation, unique.
- `safety`: always, conditional or never.
- `safe_if`: the conditions that make a conditional operation safe, in the grammar of `forbear.tables.conditions`.
- `disputed_if`: further conditions that some source accepts and others reject. They count only if a user opts in.
- `documented`: what the service's own page says: always, never or the conditions.
- `maybe_done`: responses (HTTP statuses, or names of gRPC codes), joined by "|", that on a later attempt may mean that
  an earlier attempt worked.
- `source`: the origin of the row; JUDGEMENT marks our own.
- `effect`: what a duplicate does. An operation that is always safe, has the effect "none" and no `maybe_done` is a
  read.
- `note`: anything else worth knowing.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from forbear.core.dataclass import dataclass, field
from forbear.core.service import TableEntry
from forbear.core.verdict import Safety
from forbear.tables.conditions import Alternatives, compile_fields, compile_http, parse

COLUMNS = ("id", "safety", "safe_if", "disputed_if", "documented", "maybe_done", "source", "effect", "note")

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Rule:
    """The safety of an operation, and the conditions that make it safe if it is conditional (otherwise none)."""

    safety: Safety
    conditions: Alternatives = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One operation of a table, parsed. `columns` has its cells, and `where` those of the service's own columns.

    `rule` comes from the columns safety and safe_if. `documented` is None where the service's page does not name the
    operation.
    """

    id: str
    where: tuple[str, ...]
    rule: Rule
    disputed: Alternatives
    documented: Rule | None
    maybe_done: tuple[str, ...]
    effect: str
    columns: Mapping[str, str] = field(compare=False)

    @property
    def is_read(self) -> bool:
        """True for a read: an operation that is always safe, has the effect "none" and no responses in `maybe_done`."""
        return self.rule.safety is Safety.ALWAYS and self.effect == "none" and not self.maybe_done


def load(path: Path, where: tuple[str, ...], optional: tuple[str, ...] = ()) -> tuple[Row, ...]:
    """Return the rows of a CSV file that also has the columns `where` and `optional`; ValueError as `read_rows`."""
    return read_rows(path, (*COLUMNS, *where, *optional), lambda line: _row(line, where, optional))


def read_rows(path: Path, columns: Sequence[str], make: Callable[[Mapping[str, str]], _R]) -> tuple[_R, ...]:
    """Return what `make` returns for the rows of a CSV file, in order; the first of `columns` has a row's name.

    Raises ValueError, with the place, for other columns, names that stand twice, and what `make` refuses.
    """
    key = columns[0]
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="", restkey="surplus")
        if set(reader.fieldnames or ()) != set(columns):
            raise ValueError(f"{path.name}: columns must be {sorted(columns)}, got {sorted(reader.fieldnames or ())}")
        rows: dict[str, _R] = {}
        for line in reader:
            try:
                if "surplus" in line:
                    raise ValueError(f"a row must have one value a column, got {line['surplus']!r} beyond the last one")
                row = make(line)
                if line[key] in rows:
                    raise ValueError(f"`{key}` must be unique")
            except ValueError as error:
                raise ValueError(f"{path.name}, line {reader.line_num} ({line[key]}): {error}") from None
            rows[line[key]] = row
    return tuple(rows.values())


def _row(line: Mapping[str, str], where: tuple[str, ...], optional: tuple[str, ...]) -> Row:
    for column in ("id", "source", "effect", *where):
        if not line[column]:
            raise ValueError(f"`{column}` must not be empty")
    return Row(
        id=line["id"],
        where=tuple(line[column] for column in (*where, *optional)),
        rule=_rule(line["safety"], line["safe_if"]),
        disputed=parse(line["disputed_if"]),
        documented=_parse_documented(line["documented"]),
        maybe_done=tuple(filter(None, line["maybe_done"].split("|"))),
        effect=line["effect"],
        columns=line,
    )


def _rule(safety: str, safe_if: str) -> Rule:
    kinds = {kind.value: kind for kind in Safety}
    if safety not in kinds:
        raise ValueError(f"`safety` must be one of {', '.join(kinds)}, got {safety!r}")
    conditions = parse(safe_if)
    if (kinds[safety] is Safety.CONDITIONAL) != bool(conditions):
        raise ValueError(f"`safe_if` must be given for conditional operations only, got {safe_if!r} for {safety}")
    return Rule(kinds[safety], conditions)


def _parse_documented(text: str) -> Rule | None:
    if not text:
        return None
    if text in {Safety.ALWAYS.value, Safety.NEVER.value}:
        return Rule(Safety(text))
    return Rule(Safety.CONDITIONAL, parse(text))


def entries(rows: Iterable[Row]) -> tuple[TableEntry, ...]:
    """Return the rows of a table as entries, the form that services share."""
    return tuple(map(_entry, rows))


def _entry(row: Row) -> TableEntry:
    columns, alternatives = row.columns, row.rule.conditions
    return TableEntry(
        row.id,
        row.rule.safety,
        rpc=columns.get("rpc", ""),
        conditions=tuple(condition.text for condition in compile_http(alternatives)),
        fields=tuple(condition.text for condition in compile_fields(alternatives)),
        disputed=_words(row.disputed),
        documented=None if row.documented is None else _words(row.documented.conditions),
        maybe_done=row.maybe_done,
        is_read=row.is_read,
        source=columns["source"],
        effect=row.effect,
        note=columns["note"],
        columns=columns,
    )


def _words(alternatives: Alternatives) -> tuple[str, ...]:
    """Return conditions in the words of judgements, such as "etag in the body", each once."""
    http = [condition.text for condition in compile_http(alternatives)]
    return tuple(dict.fromkeys((*http, *(condition.text for condition in compile_fields(alternatives)))))
