"""Draw RPCs of Google's APIs and write a sheet of them, on which two people label what a second execution does.

Run it as `python -m tools.google_sample PROTOS FOLDER`; tools/google_protos.py says how to compile the protos.

sheet.txt is for those who label. It has no rule and no verdict. key.csv is not for them: it has the rules by which
each item was drawn, and its half. Rules are mended by the half "open". The half "aside" is looked at once.
Versions of one API say the same, so each RPC is drawn from its newest stable version only.
"""

import csv
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from forbear.grpc.call import GrpcCall
from forbear.services import registry
from tools import google_rules
from tools.google_protos import Field, Protos, Rpc
from tools.google_rules import Found

SEED = 29
_EACH, _OF_ALL = 75, 100
_LONGEST, _LONGEST_COMMENT, _LONGEST_FIELD = 1500, 550, 170

Item = tuple[str, str]
"""An RPC and its circumstance."""


def main(protos: Path, folder: Path) -> None:
    """Write sheet.txt and key.csv into a folder."""
    known = Protos(protos)
    drawn = draw(known)
    items = sorted(drawn)
    random.Random(SEED).shuffle(items)
    halves = split(drawn)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "key.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("number", "rpc", "drawn_for", "circumstance", "half"))
        for number, item in enumerate(items, start=1):
            writer.writerow((number, item[0], " ".join(drawn[item]), item[1], halves[item]))
    sheet = "\n\n".join(describe(number, item, known) for number, item in enumerate(items, start=1))
    (folder / "sheet.txt").write_text(f"{sheet}\n", encoding="utf-8")


def draw(protos: Protos) -> Mapping[Item, Sequence[str]]:
    """Return the items, each with the rules that it was drawn for; "all" stands for a draw from all RPCs."""
    chance, drawn = random.Random(SEED), dict[Item, list[str]]()
    population = sorted(protos.newest().values())
    found = {rpc.name: list(google_rules.find(rpc, protos)) for rpc in population}
    for kind in google_rules.KINDS:
        having = [(rpc, each) for rpc in population for each in found[rpc.name] if each.kind == kind]
        having = [(rpc, each) for rpc, each in having if kind == "policy" or not has_table(rpc.name)]
        for rpc, each in chance.sample(having, min(_EACH, len(having))):
            drawn.setdefault((rpc.name, tell(rpc, [each], protos)), []).append(kind)
    for rpc in chance.sample(population, min(_OF_ALL, len(population))):
        drawn.setdefault((rpc.name, tell(rpc, found[rpc.name], protos)), []).append("all")
    return drawn


def has_table(name: str) -> bool:
    """Return whether a table of forbear lists an RPC, so that no rule judges it."""
    service = registry.find_rpc(name)
    return service is not None and service.classify_call(GrpcCall(name)).operation is not None


def split(drawn: Mapping[Item, Sequence[str]]) -> dict[Item, str]:
    """Return the half of each item; of each rule's items about one half is set aside."""
    chance, halves = random.Random(SEED + 1), dict[Item, str]()
    for kind in (*google_rules.KINDS, "all"):
        items = sorted(item for item, kinds in drawn.items() if kinds[0] == kind)
        chance.shuffle(items)
        halves |= {item: "aside" if index % 2 else "open" for index, item in enumerate(items)}
    return halves


def tell(rpc: Rpc, found: Sequence[Found], protos: Protos) -> str:
    """Return what is set in the request, in words: what the rules that were found need, and nothing else."""
    parts = [_PHRASES[each.kind].format(*each.fields, fields=", ".join(each.fields)) for each in found]
    unset = sorted({name for each in found for name in each.unset})
    names = {field.name for field in rpc.fields}
    if any(each.kind == "delete" for each in found):
        parts += [f"{name} is that of the resource before the call" for name in ("etag", "uid") if name in names]
    keys = {"request_id"} & names - {name for each in found for name in each.fields}
    unset += sorted(keys | ({"validate_only"} & names))
    if unset:
        parts.append(f"not set: {', '.join(unset)}")
    return "; ".join(parts) or "an ordinary request"


_PHRASES = {
    "read": "an ordinary request",
    "key": "request_id is a UUID of this request's own",
    "create": "{0} is an id that the caller chose",
    "delete": "the path names one resource",
    "update": "{0} names fields whose values are in the request",
    "etag": "{0} names fields whose values are in the request, and {1} is that of the resource before the call",
    "policy": "{0} is that of the policy before the call",
}


def describe(number: int, item: Item, protos: Protos) -> str:
    """Return the text of an item: its RPC, bindings and comment, the fields of the request, and the circumstance."""
    rpc = protos.rpcs[item[0]]
    lines = [f"#{number} {rpc.name}", f"CIRCUMSTANCE: {item[1]}"]
    lines += [f"HTTP: {binding.method} {binding.path}" for binding in rpc.bindings[:3]]
    lines += [f"RETURNS: {rpc.response}", f"COMMENT: {_cut(rpc.comment, _LONGEST_COMMENT) or '(none)'}", "FIELDS:"]
    left = _LONGEST - sum(map(len, lines))
    in_use = [field for field in rpc.fields if field.name in item[1]]
    for field in (*in_use, *(field for field in rpc.fields if field not in in_use)):
        text = f"  {_describe_field(field, protos, field in in_use)}"
        left -= len(text)
        if left < 0:
            lines.append("  …")
            break
        lines.append(text)
    return "\n".join(lines)


def _describe_field(field: Field, protos: Protos, in_use: bool) -> str:
    kind = field.type.rpartition(".")[2]
    comment = _cut(field.comment, _LONGEST_FIELD * (2 if in_use else 1))
    inner = ", ".join(each.name for each in protos.messages.get(field.type, ()))
    inside = f" {{{_cut(inner, 160)}}}" if inner and not field.type.startswith("google.protobuf.") else ""
    return f"{field.name}: {'repeated ' * field.repeated}{kind}{inside}: {comment}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
