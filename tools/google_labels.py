"""Compare the labels of a sample of Google's RPCs with what the rules say, for the table in docs/google.md.

`python -m tools.google_labels` prints that table from docs/google_sample.csv, whose columns are:

- `number`, `rpc`, `drawn_for`, `circumstance` and `half`: the item, as tools/google_sample.py drew it.
- `a`, `a_reason`, `b` and `b_reason`: the labels of two who did not see each other's, and knew no rule.
- `label` and `why`: the label that counts. Where the two disagree, `why` says what the protos say.

`python -m tools.google_labels A B` puts the labels of two files into it. Where they differ, `label` stays empty.
The rules became narrower since; the items were drawn by those of before.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from forbear.grpc.call import GrpcCall
from forbear.services import registry
from forbear.services.rpcs import google, rules
from tools.google_rules import KINDS

FILE = Path(__file__).parent.parent / "docs" / "google_sample.csv"
LABELS = ("safe", "harmful", "unclear")
_COLUMNS = (
    "number", "rpc", "drawn_for", "circumstance", "half", "a", "a_reason", "b", "b_reason", "label", "why",
)  # fmt: skip
_WORDS = {
    "read": "a read by POST, `testIamPermissions` among them",
    "key": "`request_id`",
    "create": "Create with an id",
    "delete": "Delete of one resource",
    "update": "Update and Set with a mask, without etag",
    "etag": "Update and Set with a mask and an etag",
    "policy": "`setIamPolicy` with an etag",
}

_SET = re.compile(r"([\w.]+) (?:names fields|is (?:a UUID|an id|that of))")
"""The fields that a circumstance has set."""

Row = Mapping[str, str]


def read(path: Path = FILE) -> list[Row]:
    """Return the rows of a file of CSV."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def join(items: Iterable[Row], first: Iterable[Row], second: Iterable[Row]) -> Iterator[Row]:
    """Yield the items with the labels of both; where they agree, theirs counts."""
    a, b = ({row["number"]: row for row in rows} for rows in (first, second))
    for row in items:
        one, two = a[row["number"]], b[row["number"]]
        label = one["label"] if one["label"] == two["label"] else ""
        yield {**row, "a": one["label"], "a_reason": one["reason"], "b": two["label"], "b_reason": two["reason"],
               "label": label, "why": ""}  # fmt: skip


def tell_table(rows: Sequence[Row]) -> str:
    """Return the table of the docs: the items of each rule that it still allows, by half and label."""
    lines = [
        "| rule | open: allowed | harmful | unclear | aside: allowed | harmful | unclear | at most harmful, at 95 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    sums: Counter[tuple[str, str]] = Counter()
    for kind in KINDS:
        counts = count(rows, kind)
        sums.update(counts)
        lines.append(_tell_line(_WORDS[kind], counts))
    lines.append(_tell_line("all of them", sums))
    return "\n".join(lines)


def _tell_line(name: str, counts: Mapping[tuple[str, str], int]) -> str:
    cells = [name]
    for half in ("open", "aside"):
        of_half = {label: counts.get((half, label), 0) for label in LABELS}
        cells += map(str, (sum(of_half.values()), of_half["harmful"], of_half["unclear"]))
    judged = counts.get(("aside", "safe"), 0)
    bound = "" if counts.get(("aside", "harmful"), 0) or not judged else f"{100 * (1 - 0.05 ** (1 / judged)):.1f} %"
    return f"| {' | '.join((*cells, bound))} |"


def count(rows: Iterable[Row], kind: str) -> Counter[tuple[str, str]]:
    """Return the number of items that were drawn for a rule and are still allowed by it, by half and label."""
    return Counter(
        (row["half"], row["label"]) for row in rows if kind in row["drawn_for"].split() and is_allowed(row, kind)
    )


def count_recall(rows: Iterable[Row]) -> Counter[tuple[str, bool]]:
    """Return the number of items drawn from all RPCs, by label and by what is allowed under their circumstance."""
    return Counter((row["label"], is_allowed(row)) for row in rows if "all" in row["drawn_for"].split())


def tell_recall(rows: Sequence[Row]) -> str:
    """Return the sentence of the docs on how much of what is safe the rules allow."""
    counts = count_recall(rows)
    safe, harmful = ((counts[label, True], counts[label, True] + counts[label, False]) for label in LABELS[:2])
    share = f" ({100 * safe[0] / safe[1]:.0f} %)" if safe[1] else ""
    return (
        f"Of {sum(counts.values())} RPCs drawn from all, with what their requests offer set, {safe[1]} are safe, and "
        f"forbear allows {safe[0]} of these{share}; of {harmful[1]} harmful ones it allows {harmful[0]}."
    )


def is_allowed(row: Row, kind: str | None = None) -> bool:
    """Return whether an RPC may be executed twice with the fields of one kind of rule set, or of all its rules."""
    name, circumstance = row["rpc"], row["circumstance"]
    listed = [rule for rule in google.find(name) if kind in (None, rule.kind)]
    if kind is not None and not listed and not _is_of_iam(name):
        return False
    fields = _SET.findall(circumstance)
    if "the path names one resource" in circumstance:
        fields += next((rule.fields for rule in listed if rule.kind == "delete"), ("name",))
    message: dict[str, Any] = {}
    for field in fields:
        _put(message, field.split("."), {"paths": ["labels"]} if field.endswith("mask") else "projects/p/x")
    return rules.judge(GrpcCall(name, message), registry.find_rpc(name)).repeatable


def _is_of_iam(name: str) -> bool:
    return name.endswith(("/SetIamPolicy", "/TestIamPermissions"))


def _put(message: dict[str, Any], path: list[str], value: object) -> None:
    *outer, name = path
    for part in outer:
        message = message.setdefault(part, {})
    message[name] = value


def main(files: Sequence[str]) -> None:
    """Put two files of labels into the sample, or print the table."""
    rows = read()
    if files:
        rows = list(join(rows, *(read(Path(name)) for name in files)))
        with FILE.open("w", encoding="utf-8", newline="") as file:
            writer: csv.DictWriter[str] = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(tell_table(rows), tell_recall(rows), sep="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
