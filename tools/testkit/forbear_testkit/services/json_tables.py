"""Holding tables of JSON and gRPC APIs to their answers, by requests and calls that are built from each row."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.tables.conditions import Alternatives, Term
from forbear.tables.service import TableService
from forbear.tables.table import Row, Rule

UUID = "c8b4a1de-7d0f-4c6e-9c55-0f2d8f1b3a11"
ZERO = "00000000-0000-0000-0000-000000000000"
SOURCES = {
    "API definition", "API definition; JUDGEMENT", "gRPC service config", "gRPC service config; JUDGEMENT", "JUDGEMENT",
    "retry page of IAM; API definition",
}  # fmt: skip

Sent = tuple[str, dict[str, str], bytes | None]

HOLDS: dict[tuple[Term, ...], list[Sent]] = {
    (("q", "etag"),): [("etag=BwX", {}, b""), ("alt=json&%65tag=B%77X", {}, b"")],
    (("q", "requestId"),): [(f"requestId={UUID}", {}, b"{}"), (f"x=1&requestId={UUID.upper()}", {}, b"{}")],
    (("b", "etag"),): [("", {}, b'{"etag": "BwX="}'), ("updateMask=title", {}, b'{"title": "x", "etag": "1"}')],
    (("b", "policy.etag"), ("!b", "updateMask")): [("", {}, b'{"policy": {"etag": "BwX=", "bindings": []}}')],
    (("b", "backupId"),): [("", {}, b'{"backupId": "nightly"}')],
    (("b", "projectId"),): [("", {}, b'{"projectId": "tokyo-rain-123", "labels": {}}')],
    (("b", "rescheduleType=SPECIFIC_TIME"),): [("", {}, b'{"rescheduleType": "SPECIFIC_TIME"}')],
}
TRAPS: list[Sent] = [
    ("", {}, b""),
    ("", {}, None),
    ("etag=&requestId=&backupId=x&policy.etag=x", {}, b'{"etag": "", "backupId": "", "policy": {"etag": ""}}'),
    ("etag&requestId", {}, b'{"etag": null, "backupId": null, "policy": {"etag": null}}'),
    ("etag=1&etag=2", {}, b'{"etag": 5, "backupId": 5, "policy": {"etag": 5}}'),
    ("Etag=x&requestid=" + UUID, {}, b'{"Etag": "x", "backupID": "x", "Policy": {"etag": "x"}}'),
    (f"requestId={ZERO}", {}, b'{"policy": {"etag": "x"}, "updateMask": "bindings"}'),
    ("requestId=1", {}, b'{"policy": {"etag": "x"}, "update_mask": {"paths": ["bindings"]}}'),
    (f"requestId={UUID}&requestId={UUID[:-1]}2", {}, b'{"policy": {"etag": "x"'),
    ("requestId=%7B" + UUID + "%7D", {}, b'{"rescheduleType": "NEXT_AVAILABLE_WINDOW"}'),
    ("request_id=" + UUID, {}, b'{"rescheduleType": "specific_time"}'),
    ("validateOnly=true", {}, b'{"requestId": "' + UUID.encode() + b'", "rescheduleType": 3}'),
    ("", {"if-match": '"x"', "if-none-match": "*", "etag": "x", "x-request-id": UUID}, b"{}"),
    ("", {"requestid": UUID, "idempotency-key": UUID}, b'["etag", "policy"]'),
]

FIELDS_HOLD: dict[str, list[dict[str, object]]] = {
    "etag": [{"etag": b"BwX"}, {"etag": "BwX"}],
    "request_id": [{"request_id": UUID}],
    "backup_id": [{"backup_id": "nightly"}],
    "project.project_id": [{"project": {"project_id": "tokyo-rain-123"}}],
    "reschedule_type=SPECIFIC_TIME": [{"reschedule_type": "SPECIFIC_TIME"}],
    "policy.etag and no update_mask": [{"policy": {"etag": b"BwX"}}],
    "policy.etag": [{"policy": {"etag": "BwX"}}, {"policy": {"etag": "BwX"}, "update_mask": None}],
    "role.etag": [{"role": {"etag": b"BwX"}}],
}
FIELD_TRAPS: list[object] = [
    None,
    {},
    {"etag": b"", "request_id": "", "backup_id": "", "policy": {"etag": b""}, "role": {"etag": ""}},
    {"etag": None, "request_id": None, "backup_id": None, "policy": None, "role": {}},
    {"etag": 5, "request_id": 5, "backup_id": 5, "policy": {"etag": 5}, "reschedule_type": 3},
    {"request_id": ZERO, "reschedule_type": "NEXT_AVAILABLE_WINDOW", "role": {"policy": {"etag": b"x"}}},
    {"requestId": UUID, "backupId": "x", "Etag": b"x", "rescheduleType": "SPECIFIC_TIME"},
    object(),
    b"etag",
    "etag",
]


def requests(host: str, row: Row, sent: Sent) -> Iterator[Request]:
    """A request for each path of a row."""
    method, paths, _ = row.where
    query, headers, body = sent
    for template in paths.split("|"):
        segments = template.split("/")
        for index, segment in enumerate(segments):
            if segment[:1] == "{":
                colon = ":" if index + 1 < len(segments) else "%3A"  # the last one may be taken for a verb
                segments[index] = f"a{colon}b%2Fc{index}" + segment.partition("}")[2]
        path = "/".join(segments)
        yield Request(method, host, f"{path}?{query}" if query else path, headers, body)


def holds_for(alternatives: Alternatives) -> tuple[set[tuple[Term, ...]], list[str]]:
    """The alternatives for requests, and the spelling of those for calls."""
    of_calls = [terms for terms in alternatives if terms[0][0] == "f"]
    texts = [" and ".join(f"no {name}" if prefix[0] == "!" else name for prefix, name in terms) for terms in of_calls]
    return {terms for terms in alternatives if terms not in of_calls}, texts


def check_requests(service: TableService, host: str, row: Row) -> None:
    """Every request for a row gets the row's answer: with each condition, without, and with what looks like one."""
    wanted, _ = holds_for(row.rule.conditions)
    assert wanted <= set(HOLDS)
    for sent in TRAPS:
        for request in requests(host, row, sent):
            _check(
                service.classify(request), row, row.id, codes.statuses(row.maybe_done), wanted=len(wanted), met=False
            )
    for terms, examples in HOLDS.items():
        for sent in examples:
            for request in requests(host, row, sent):
                judged = service.classify(request)
                _check(judged, row, row.id, codes.statuses(row.maybe_done), wanted=len(wanted), met=terms in wanted)


def check_calls(service: TableService, row: Row) -> None:
    """The same for calls of its RPC."""
    rpc = row.where[2]
    if not rpc:
        return
    _, wanted = holds_for(row.rule.conditions)
    assert bool(wanted) is (row.rule.safety is Safety.CONDITIONAL), "a conditional row says what guards its calls"
    replies = codes.numbers(row.maybe_done)
    for message in FIELD_TRAPS:
        judgement = service.classify_call(GrpcCall(f"/{rpc}", message))
        _check(judgement, row, rpc, replies, wanted=len(wanted), met=False)
    for text in wanted:
        last = text.rpartition(".")[2]
        for message in FIELDS_HOLD.get(text) or [{text.partition(".")[0]: {last: b"BwX"}}]:
            _check(service.classify_call(GrpcCall(rpc, message)), row, rpc, replies, wanted=len(wanted), met=True)
    if "policy.etag and no update_mask" in wanted:
        masked = {"policy": {"etag": b"x"}, "update_mask": {"paths": ["bindings"]}}
        assert not service.classify_call(GrpcCall(rpc, masked)).repeatable


def _check(judgement: Judgement, row: Row, id: str, maybe_done: tuple[int, ...], *, wanted: int, met: bool) -> None:
    assert judgement.operation == id
    assert judgement.safety is row.rule.safety
    assert judgement.repeatable is (row.rule.safety is Safety.ALWAYS or met)
    assert (judgement.met is not None) is met
    assert len(judgement.conditions) == wanted
    assert judgement.mutation is not row.is_read
    assert judgement.maybe_done == maybe_done
    assert not judgement.session
    assert judgement.refused is None


def check_row(row: Row) -> None:
    """A row is complete and makes sense."""
    method, paths, rpc = row.where
    assert row.columns["source"] in SOURCES
    assert paths.startswith("/v")
    assert rpc == "" or (rpc.startswith("google.") and rpc.count("/") == 1)
    if row.documented is not None:  # the page of IAM excepts no request; without a precondition, the table does
        assert row.rule.safety is Safety.NEVER
        assert row.documented == Rule(Safety.ALWAYS)
    assert not row.disputed
    if method == "GET":
        assert row.is_read
    if row.rule.safety is not Safety.ALWAYS:
        assert row.effect != "none"


def published(document: str) -> dict[str, tuple[str, str]]:
    """The methods in a discovery document: id to HTTP method and path, whose placeholders are all `{}`."""
    return {found["id"]: (found["httpMethod"], shape("/" + found["flatPath"])) for found in _published(document)}


def starting_jobs(document: str) -> set[str]:
    """The ids of the methods in a discovery document that answer with a long-running operation."""
    return {found["id"] for found in _published(document) if found.get("response") == {"$ref": "Operation"}}


def _published(document: str) -> Iterator[dict[str, Any]]:
    documents = resources.files("googleapiclient.discovery_cache") / "documents"
    loaded: dict[str, Any] = json.loads((documents / f"{document}.json").read_text(encoding="utf-8"))
    return _methods(loaded)


def shape(path: str) -> str:
    """A path template without the names of its placeholders."""
    return "/".join("{}" + part.partition("}")[2] if part[:1] == "{" else part for part in path.split("/"))


def _methods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from _methods(inner)
