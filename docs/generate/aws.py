"""Make the page of AWS: our corrections of botocore's models, and the codes of refusals."""

from collections.abc import Iterator
from itertools import groupby

from docs.generate import profiles
from docs.generate.markdown import bullets, code, codes, table, text
from forbear.answers import tables
from forbear.core.service import TableEntry
from forbear.services.aws.errors import policy
from forbear.services.aws.table import refusals
from forbear.text.duration import show


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    entries = tables.find("aws")
    yield from ("# AWS: reference", "")
    yield from text(
        """`make reference` generates this page from the tables and policies of forbear. Do not edit it by hand.""",
        f"""For boto3, most operations are judged by the models that botocore has loaded: traits, tokens, and verbs of
        reading. This page lists the {len(entries)} corrections of them, and the codes by which a service refuses a
        request before it executes it. `forbear explain aws SERVICE OPERATION` has the judgement of any operation.
        `forbear explain --operations aws` prints the same list. [AWS](../aws.md) is a summary.""",
    )
    yield from ("## How to read it", "")
    yield from text(
        """Each item says whether operations may be repeated after an attempt with an unknown outcome: *read*, *always*,
        only *with* a condition, or *never*. Then come the reason and the source. `*` stands for any characters. A whole
        name counts before a pattern, and a longer pattern before a shorter one. The row of `*` alone counts besides the
        others. The service remembers a key for the time in brackets, and no later attempt is made. *JUDGEMENT* marks
        rows that no document has: in doubt they are strict.""",
    )
    yield from ("## Profile", "")
    yield from profiles.section(("policy", policy))
    yield from profiles.said_of(policy)
    yield from ("## Refusals before execution", "")
    rows = ((code(service), codes(known), codes(names), source) for service, known, names, source in refusals())
    yield from table(("service", "codes", "operations", "source"), rows)
    for service, group in groupby(entries, key=lambda entry: entry.id.partition(".")[0]):
        yield from (f"## {service}", "")
        yield from bullets(_lines(list(group)))


def _lines(entries: list[TableEntry]) -> Iterator[str]:
    """Yield an item for all operations that one line of the table is about."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        row = (_safe(entry), entry.columns["note"], entry.source)
        alike.setdefault(row, []).append(entry.id.partition(".")[2])
    for (safe, note, source), names in alike.items():
        yield f"**{safe}**: {codes(names)}. {note} *{source}*"


def _safe(entry: TableEntry) -> str:
    if not entry.conditions:
        return entry.columns["safety"]
    span = entry.columns["span"]
    remembered = "" if span in ("", "inf") else f" ({show(float(span))})"
    return f"with {tables.join_conditions(entry.conditions)}{remembered}"
