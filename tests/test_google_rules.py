"""The rules for writes of Google's APIs, over protos made in code; the sheet for those who label; the list."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.api import annotations_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2

from forbear.services.rpcs import google
from tools import google_labels, google_list, google_rules, google_sample
from tools.google_protos import Protos

PROMISE = "A unique ID. The server ignores a second request with it for at least 60 minutes."
FieldOf = tuple[str, str, str]
"""A field: its name, type and comment."""

RPCS: dict[str, tuple[str, str, str, Sequence[FieldOf]]] = {
    "GetThing": ("GET", "/v1/{name=things/*}", "Gets.", [("name", "string", "")]),
    "SearchThings": ("POST", "/v1/things:search", "Searches.", [("query", "string", "")]),
    "SearchLater": ("POST", "/v1/things:later", "Searches.", [("session", "string", "")]),
    "StartThing": ("POST", "/v1/{name=things/*}:start", "Starts.", [("request_id", "string", PROMISE)]),
    "StopThing": ("POST", "/v1/{name=things/*}:stop", "Stops.", [("request_id", "string", "Used for debugging.")]),
    "CreateThing": ("POST", "/v1/things", "Creates.", [("thing_id", "string", ""), ("thing", ".made.v1.Thing", "")]),
    "CreatePart": ("POST", "/v1/{thing_id}/parts", "Creates.", [("thing_id", "string", "")]),
    "CreateTopic": ("PUT", "/v1/{name=topics/*}", "Creates.", [("name", "string", "")]),
    "DeleteThing": ("DELETE", "/v1/{name=things/*}", "Deletes.", [("name", "string", ""), ("force", "bool", "")]),
    "DeletePart": ("DELETE", "/v1/{name=parts/*}", "Deletes.", [("name", "string", ""), ("etag", "string", "")]),
    "DeleteLog": ("DELETE", "/v1/{name=logs/*}", "The log reappears.", [("name", "string", "")]),
    "DeleteParts": ("DELETE", "/v1/{parent=things/*}/parts", "Deletes.", [("parent", "string", "")]),
    "DeleteSome": ("DELETE", "/v1/{name=things/*}", "Deletes.", [("name", "string", ""), ("filter", "string", "")]),
    "UpdateThing": ("PATCH", "/v1/{thing.name=things/*}", "Updates.", [
        ("thing", ".made.v1.Thing", ""), ("update_mask", ".google.protobuf.FieldMask", ""),
    ]),
    "UpdatePart": ("PATCH", "/v1/{part.name=parts/*}", "Updates.", [
        ("part", ".made.v1.Part", ""), ("update_mask", ".google.protobuf.FieldMask", ""),
    ]),
    "UpdateMail": ("PATCH", "/v1/{part.name=parts/*}", "Sends an email.", [
        ("part", ".made.v1.Part", ""), ("update_mask", ".google.protobuf.FieldMask", ""),
    ]),
    "UpdateAll": ("PATCH", "/v1/{part.name=parts/*}", "Updates.", [("part", ".made.v1.Part", "")]),
    "SetIamPolicy": ("POST", "/v1/{resource=things/*}:setIamPolicy", "Sets.", [("resource", "string", "")]),
}  # fmt: skip
"""RPCs: their method and path of HTTP, their comment, and the fields of their request."""

FOUND = {
    "SearchThings": ["r"],
    "StartThing": ["k~60"],
    "CreateThing": ["c=thing_id"],
    "CreateTopic": ["c=name"],
    "DeleteThing": ["d!force"],
    "DeletePart": ["d=name,etag"],
    "UpdateThing": ["u"],
    "UpdatePart": ["e=update_mask,part.etag"],
    "SetIamPolicy": ["p=policy.etag"],
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a package with the RPCs and their comments, in two versions."""
    files = descriptor_pb2.FileDescriptorSet()
    for version in ("v1", "v1beta"):
        _add(files.file.add(name=f"google/made/{version}/made.proto", package=f"google.made.{version}"))
    path = tmp_path_factory.mktemp("protos") / "google.pb"
    path.write_bytes(files.SerializeToString())
    return path


def _add(file: Any) -> None:
    for kind, names in {"Thing": ["name"], "Part": ["name", "etag"]}.items():
        message = file.message_type.add(name=kind)
        for number, plain in enumerate(names, start=1):
            message.field.add(name=plain, number=number, label=1, type=9)
    service = file.service.add(name="Things")
    for index, (name, (verb, path, comment, fields)) in enumerate(RPCS.items()):
        message = file.message_type.add(name=f"{name}Request")
        for number, (field, kind, text) in enumerate(fields):
            code = {"string": 9, "bool": 8}.get(kind)
            added = message.field.add(name=field, number=number + 1, label=1, type=code or 11)
            if code is None:
                added.type_name = kind.replace(".made.v1", f".{file.package}")
            where = (4, len(file.message_type) - 1, 2, number)
            file.source_code_info.location.add(path=where, leading_comments=f" {text}\n")
        method = service.method.add(name=name, input_type=f".{file.package}.{name}Request")
        method.output_type = f".{file.package}.Thing"
        setattr(method.options.Extensions[annotations_pb2.http], verb.lower(), path)
        file.source_code_info.location.add(path=(6, 0, 2, index), leading_comments=f" {comment}\n")


def test_the_rules(compiled: Path) -> None:
    """Promises, ids, single resources, masks and etags count; what starts, mails or comes back does not."""
    protos = Protos(compiled)
    found = {
        rpc.method: [google_list.write_rule(each) for each in google_rules.find(rpc, protos)]
        for rpc in protos.newest().values()
    }
    assert {method: rules for method, rules in found.items() if rules} == FOUND


def test_only_the_newest_stable_version_is_drawn(compiled: Path) -> None:
    """Versions of one API say the same."""
    assert all(name.startswith("google.made.v1.") for name in Protos(compiled).newest())


def test_the_sheet_tells_no_rule(compiled: Path, tmp_path: Path) -> None:
    """It has each RPC with its circumstance, comment and fields; the rules and halves are in another file."""
    google_sample.main(compiled, tmp_path)
    sheet, key = ((tmp_path / name).read_text(encoding="utf-8") for name in ("sheet.txt", "key.csv"))
    assert "google.made.v1.Things/StartThing\nCIRCUMSTANCE: request_id is a UUID of this request's own\n" in sheet
    assert f"request_id: string: {PROMISE}" in sheet
    assert not any(word in sheet for word in ("drawn", "aside", "harmless", "policy all"))
    halves = [line.rpartition(",")[2] for line in key.splitlines()[1:]]
    assert len(halves) == sheet.count("CIRCUMSTANCE")
    assert {"open", "aside"} == set(halves)


def test_the_list_is_read_as_it_was_written(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions with the same RPCs share their lines; reads by GET have no rule."""
    monkeypatch.setattr(google, "FILE", tmp_path / "google.txt")
    google_list.main(compiled, "0123456789abcdef")
    head, packages, services = (tmp_path / "google.txt").read_text(encoding="utf-8").splitlines()
    assert head == "# googleapis 0123456789abcdef"
    assert packages == "google.made.v1 google.made.v1beta"
    assert services.startswith(" Things GetThing SearchThings:r StartThing:k~60 ")


def test_what_two_readers_call_safe_is_listed(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions are listed with it only if they look the same; a rule counts before a label."""
    labels = tmp_path / "labels.csv"
    named = "".join(f"google.made.v1.Things/{name},safe,safe,s,\n" for name in ("UpdateAll", "StopThing", "GetThing"))
    labels.write_text(f"rpc,a,b,rule,why\n{named}google.made.v1.Things/DeleteSome,safe,safe,,it has a filter\n")
    monkeypatch.setattr(google_list, "LABELS", labels)
    other = Protos(compiled)
    changed = other.rpcs["google.made.v1beta.Things/StopThing"]
    other.rpcs[changed.name] = changed._replace(fields=())
    packages = dict(zip(lines := list(google_list.write(other)), lines[1:], strict=False))
    assert " GetThing " in packages["google.made.v1"]
    assert "UpdateAll:s" in packages["google.made.v1"]
    assert "UpdateAll:s" in packages["google.made.v1beta"]
    assert "StopThing:s" in packages["google.made.v1"]
    assert "StopThing" not in packages["google.made.v1beta"]
    assert "DeleteSome" not in packages["google.made.v1"]


ACTS = re.compile(r"(?:Cancel|Undelete|Rotate|Reset|Generate|Send|Run|Execute|Import|Export|Restore|Failover)(?![a-z])")


def test_the_labels_of_what_no_rule_allows() -> None:
    """Only what both call safe is listed, by the rule that stands there, and nothing that acts each time."""
    with google_list.LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rpc"] for row in rows] == sorted({row["rpc"] for row in rows})
    for row in rows:
        service, _, method = row["rpc"].partition("/")
        is_safe = row["a"] == row["b"] == "safe"
        assert is_safe == bool(row["rule"] or row["why"]), row
        entry = f" {google._services().get(service, '')} "
        assert (f" {method}:{row['rule']} " in entry) == bool(row["rule"]), row
        assert not row["rule"] or ACTS.match(method) is None, row


def _label(number: str, rpc: str, label: str, drawn_for: str = "read", half: str = "aside") -> dict[str, str]:
    return {"number": number, "rpc": rpc, "drawn_for": drawn_for, "circumstance": "", "half": half, "label": label}


SEARCH = "google.logging.v2.LoggingServiceV2/ListLogEntries"
PUBLISH = "google.pubsub.v1.Publisher/Publish"


def test_labels_are_joined() -> None:
    """No label counts where two differ, before somebody has read the protos."""
    items = [_label("1", SEARCH, ""), _label("2", PUBLISH, "")]
    a = [{"number": "1", "label": "safe", "reason": "x"}, {"number": "2", "label": "safe", "reason": "y"}]
    b = [{"number": "2", "label": "harmful", "reason": "z"}, {"number": "1", "label": "safe", "reason": "x"}]
    joined = list(google_labels.join(items, a, b))
    assert [row["label"] for row in joined] == ["safe", ""]
    assert (joined[1]["a_reason"], joined[1]["b_reason"]) == ("y", "z")


def test_the_table_counts_what_is_allowed() -> None:
    """A harmful one that a rule allows leaves no bound; what no rule allows is not counted, but for recall."""
    rows = [_label(str(number), SEARCH, "safe", "read all") for number in range(30)]
    rows += [_label("31", PUBLISH, "harmful", "read all"), _label("32", SEARCH, "unclear", half="open")]
    assert "| 1 | 0 | 1 | 30 | 0 | 0 | 9.5 % |" in google_labels.tell_table(rows)
    assert google_labels.tell_table([*rows, _label("33", SEARCH, "harmful")]).count("%") == 1
    assert "30 are safe, and forbear allows 30 of these (100 %); of 1 harmful ones it allows 0" in (
        google_labels.tell_recall(rows)
    )


def test_the_sample_has_every_item_once() -> None:
    """Each has a half, and the rules that it was drawn for; at most 75 of each rule, and 100 of all RPCs."""
    rows = google_labels.read()
    assert [int(row["number"]) for row in rows] == list(range(1, len(rows) + 1))
    assert {row["half"] for row in rows} == {"open", "aside"}
    drawn = [kind for row in rows for kind in row["drawn_for"].split()]
    assert {kind: drawn.count(kind) for kind in drawn} == {
        **dict.fromkeys(google_rules.KINDS, 75), "policy": 74, "all": 100,
    }  # fmt: skip


def test_the_docs_have_the_table_of_the_labels() -> None:
    """It is computed from the labels and from what the list allows; no harmful one of the half set aside is allowed."""
    rows = google_labels.read()
    page = (google_labels.FILE.parent / "google.md").read_text(encoding="utf-8")
    assert google_labels.tell_table(rows) in page
    assert google_labels.tell_recall(rows) in page
    assert {row["label"] for row in rows} <= set(google_labels.LABELS)
    assert all(row["label"] == row["a"] == row["b"] or row["why"] for row in rows)
    counts = [google_labels.count(rows, kind) for kind in google_rules.KINDS]
    assert sum(each["aside", "harmful"] for each in counts) == 0
    assert sum(each["aside", "safe"] for each in counts) >= 250
