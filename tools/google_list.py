"""Write the list of all RPCs of Google's APIs that the rules allow to be executed twice, services/rpcs/google.txt.

Run it as `python -m tools.google_list PROTOS COMMIT`; tools/google_protos.py says how to compile the protos.
RPCs in forbear's tables are left out, and so are those that a row of services/rpcs/rows.csv judges.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from forbear.services.rpcs import google
from tools import google_rules
from tools.google_protos import Protos, Rpc
from tools.google_rules import Found
from tools.google_sample import has_table

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
    for rpc in protos.rpcs.values():
        text = write_rpc(rpc, protos)
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


def write_rule(rule: Found) -> str:
    """Return a rule as the list has it."""
    fields = "" if rule.fields == google.USUAL.get(rule.kind, ()) else f"={','.join(rule.fields)}"
    unset = f"!{','.join(rule.unset)}" if rule.unset else ""
    return f"{rule.kind}{fields}{unset}{f'~{rule.span // 60}' if rule.span else ''}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
