"""Write the list of all RPCs of Google's APIs that the rules allow to be executed twice, services/rpcs/google.txt.

Run it as `python -m tools.google_list PROTOS COMMIT`; tools/google_protos.py says how to compile the protos.
RPCs in forbear's tables are left out, and so are those that a row of services/rpcs/rows.csv judges.

What no rule allows was labelled by two readers. docs/google_labels.csv has these RPCs, in the newest versions of their
APIs. `a` and `b` are the labels, and `rule` is the rule by which it is listed. It is empty if the RPC is not, and `why`
has the reason if both call it safe. Older versions are listed with it if their requests and bindings look the same.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from forbear.services.rpcs import google
from tools import google_rules
from tools.google_protos import Protos, Rpc
from tools.google_rules import Found
from tools.google_sample import has_table

LABELS = Path(__file__).parent.parent / "docs" / "google_labels.csv"
_LISTED = ("key", "create", "delete", "update", "etag", "read")
_LARGEST = 200_000


def main(protos: Path, commit: str) -> None:
    """Write the list; SystemExit if it is larger than allowed."""
    text = "\n".join((f"# googleapis {commit}", *write(Protos(protos)), ""))
    if len(text) > _LARGEST:
        sys.exit(f"the list has {len(text)} bytes, which is more than {_LARGEST}")
    google.FILE.write_text(text, encoding="utf-8")


def write(protos: Protos) -> Iterator[str]:
    """Yield the lines: the packages that have the same services and rules, and after them one line a service."""
    services: dict[tuple[str, str], list[str]] = defaultdict(list)
    known = [(protos.rpcs[name], rule) for name, rule in read_labels() if name in protos.rpcs]
    labelled = {newest.family: (newest, rule) for newest, rule in known}
    for rpc in protos.rpcs.values():
        text = write_rpc(rpc, protos) or write_labelled(rpc, *labelled.get(rpc.family, (rpc, "")))
        if text is not None:
            package, _, service = rpc.name.partition("/")[0].rpartition(".")
            services[package, service].append(text)
    packages: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (package, service), entries in sorted(services.items()):
        packages[service, " ".join(entries)].append(package)
    sections: dict[str, list[str]] = defaultdict(list)
    for (service, rpcs), names in packages.items():
        sections[" ".join(names)].append(f" {service} {rpcs}")
    for header, lines in sorted(sections.items()):
        yield header
        yield from lines


def write_rpc(rpc: Rpc, protos: Protos) -> str | None:
    """Return the entry of an RPC, None if no rule allows it."""
    has_row = not google.rows().keys().isdisjoint((rpc.name, google.generalize(rpc.name)))
    if has_table(rpc.name) or has_row or not rpc.name.startswith("google."):
        return None
    if {binding.method for binding in rpc.bindings} == {"GET"}:
        return rpc.method
    found = [each for each in google_rules.find(rpc, protos) if each.kind in _LISTED]
    return ":".join((rpc.method, *map(write_rule, found))) if found else None


def read_labels() -> Iterator[tuple[str, str]]:
    """Yield the RPCs that are listed by their labels, each with its rule."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        yield from ((row["rpc"], row["rule"]) for row in csv.DictReader(file) if row["rule"])


def write_labelled(rpc: Rpc, newest: Rpc, rule: str) -> str | None:
    """Return the entry of an RPC whose `newest` version is listed by a rule, None for one that looks otherwise."""
    return f"{rpc.method}:{rule}" if rule and _shape(rpc) == _shape(newest) else None


def _shape(rpc: Rpc) -> tuple[object, ...]:
    """Return what two versions of an RPC have alike: their methods of HTTP, and the names of their fields."""
    return {binding.method for binding in rpc.bindings}, {field.name for field in rpc.fields}


def write_rule(rule: Found) -> str:
    """Return a rule as the list has it."""
    fields = "" if rule.fields == google.USUAL.get(rule.kind, ()) else f"={','.join(rule.fields)}"
    unset = f"!{','.join(rule.unset)}" if rule.unset else ""
    return f"{rule.kind[0]}{fields}{unset}{f'~{rule.span // 60}' if rule.span else ''}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
