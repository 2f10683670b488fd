"""Our corrections of AWS's models, rows.csv, and the refusals before execution, refusals.csv: parsed and looked up.

Columns of rows.csv:

- `service`: the name of the service in botocore, such as "sqs".
- `operations`: names of operations, separated by spaces. `*` stands for any characters; alone it covers all operations
  of the service, and its conditions count besides those of the operation. A whole name beats a pattern, a longer
  pattern a shorter one.
- `safety`: read, always, conditional or never.
- `safe_if`: the conditions of a conditional row, in the grammar of `forbear.services.aws.conditions`.
- `span`: the seconds for which the service remembers a key. Empty stands for 300, `inf` for ever.
- `source`: where the row is from; JUDGEMENT marks our own.
- `note`: why, in words.

Columns of refusals.csv: by a code of `codes`, the service refuses an operation of `operations` before it executes it;
`source` says where it documents that.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from forbear.core.verdict import Safety
from forbear.services.aws.conditions import Alternative, parse

NAME = "aws"

UNKNOWN_SPAN = 300.0
"""The seconds for which a service remembers a key if it does not say how long."""

_SAFETIES = {"read": Safety.ALWAYS, **{safety.value: safety for safety in Safety}}


class Correction(NamedTuple):
    """One row of rows.csv; `span` is in seconds, and `pattern` the name or pattern by which the row was found.

    `conditions` are those of the text `safe_if`.
    """

    service: str
    pattern: str
    safety: Safety
    is_read: bool
    safe_if: str
    conditions: tuple[Alternative, ...]
    span: float
    source: str
    note: str

    @property
    def is_exact(self) -> bool:
        """True if the row names the operation, and not a group."""
        return "*" not in self.pattern


def find(service: str, operation: str) -> Correction | None:
    """Return the row for an operation, None without one; the row of all operations of a service does not count."""
    exact, patterns = rows().get(service, ({}, ()))
    if operation in exact:
        return exact[operation]
    return next((row for row in patterns if fnmatchcase(operation, row.pattern)), None)


def find_for_all(service: str) -> Correction | None:
    """Return the row for all operations of a service, whose conditions count besides; None without one."""
    return rows().get(service, ({}, ()))[0].get("*")


@cache
def rows() -> Mapping[str, tuple[dict[str, Correction], tuple[Correction, ...]]]:
    """Return the rows of each service: those that name an operation, by its name, then patterns, the longest first."""
    table: dict[str, tuple[dict[str, Correction], list[Correction]]] = {}
    for row in read_rows(_lines("rows.csv")):
        exact, patterns = table.setdefault(row.service, ({}, []))
        known = exact if row.is_exact or row.pattern == "*" else {each.pattern: each for each in patterns}
        if row.pattern in known:
            raise ValueError(f"rows.csv: {row.service} {row.pattern} must stand in one row")
        if known is exact:
            exact[row.pattern] = row
        else:
            patterns.append(row)
    return {
        service: (exact, tuple(sorted(patterns, key=lambda row: -len(row.pattern))))
        for service, (exact, patterns) in table.items()
    }


def refuses(service: str, operation: str, code: str) -> bool:
    """Return whether `code` says that the service refused the operation before it executed it."""
    known = _refusals().get((service, code), ())
    return any(fnmatchcase(operation, pattern) for pattern in known)


def find_refusals(service: str, operation: str) -> tuple[str, ...]:
    """Return the codes by which the service refuses an operation before it executes it."""
    return tuple(code for name, code in _refusals() if name == service and refuses(service, operation, code))


def read_rows(lines: Iterable[Mapping[str, str]]) -> Iterator[Correction]:
    """Yield the rows in lines with the columns of rows.csv, one for each name; ValueError for a line that is wrong."""
    for line in lines:
        safety = _SAFETIES[line["safety"]]
        conditions = parse(line["safe_if"])
        if (safety is Safety.CONDITIONAL) is not bool(conditions):
            raise ValueError(f"rows.csv: only conditional rows have `safe_if`, got {line['safe_if']!r}")
        if not line["source"] or not line["note"]:
            raise ValueError(f"rows.csv: {line['service']} {line['operations']} must have a source and a note")
        is_read, span = line["safety"] == "read", float(line["span"] or UNKNOWN_SPAN)
        for pattern in line["operations"].split():
            yield Correction(
                line["service"],
                pattern,
                safety,
                is_read,
                line["safe_if"],
                conditions,
                span,
                line["source"],
                line["note"],
            )


def refusals() -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """Yield the rows of refusals.csv: the service, its codes, the operations, and the source."""
    for line in _lines("refusals.csv"):
        yield line["service"], tuple(line["codes"].split()), tuple(line["operations"].split()), line["source"]


@cache
def _refusals() -> Mapping[tuple[str, str], tuple[str, ...]]:
    return {(service, code): operations for service, codes, operations, _ in refusals() for code in codes}


def _lines(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
