"""The gRPC APIs of Cloud Storage: every row answers as it says, on the real messages where they are at hand."""

from itertools import product
from typing import Any

import pytest
from google.cloud import _storage_v2 as storage
from google.iam.v1 import iam_policy_pb2, policy_pb2  # type: ignore[import-untyped]
from google.protobuf import any_pb2, field_mask_pb2
from google.rpc import status_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.services.cloud_storage.json_api import choose
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage, rpc_operations
from forbear.tables.table import Row
from forbear_testkit.rows import for_each

types: Any = storage
iam: Any = iam_policy_pb2
ROWS = rpc_operations()
DISPUTED = CloudStorage(disputed=True)
SERVICES = {"recommended": RECOMMENDED, "disputed": DISPUTED, "documented": DOCUMENTED}
SOURCES = {
    "retry page", "retry page; other clients", "retry page; JUDGEMENT", "API definition", "JUDGEMENT",
    "gRPC service config; JUDGEMENT",
}  # fmt: skip
V2 = "google.storage.v2.Storage/"
UUID = "c8b4a1de-7d0f-4c6e-9c55-0f2d8f1b3a11"
UNKNOWN = Judgement("cloud_storage", None, Safety.NEVER)

HOLDS: dict[str, list[dict[str, object]]] = {
    "if_generation_match": [{"if_generation_match": 0}, {"if_generation_match": 17}],
    "if_metageneration_match": [{"if_metageneration_match": 1}],
    "if_source_generation_match": [{"if_source_generation_match": 1}],
    "generation": [{"generation": 17}],
    "request_id": [{"request_id": UUID}],
    "upload_id": [{"upload_id": "u"}],
    "write_object_spec.if_generation_match": [{"write_object_spec": {"if_generation_match": 0}}],
    "append_object_spec.generation": [{"append_object_spec": {"generation": 17}}],
    "policy.etag and no update_mask": [{"policy": {"etag": b"x"}}],
    "bucket.etag": [{"bucket": {"etag": "x"}}],
    "object.etag": [{"object": {"etag": "x"}}],
}
TRAPS: list[object] = [
    None,
    {},
    {"if_generation_not_match": 1, "if_metageneration_not_match": 1, "if_source_metageneration_match": 1},
    {"if_generation_match": None, "if_metageneration_match": None, "upload_id": "", "policy": {"etag": b""}},
    {"if_generation_match": -1, "if_metageneration_match": "x", "generation": 0, "request_id": "1"},
    {"if_generation_match": True, "if_metageneration_match": False, "generation": True},
    {"ifGenerationMatch": 1, "ifMetagenerationMatch": 1, "requestId": UUID, "uploadId": "u"},
    {"write_object_spec": {"resource": {"generation": 1}}, "append_object_spec": {"generation": 0}},
    {"policy": {"etag": b"x"}, "update_mask": {"paths": ["bindings"]}},
    {"etag": "x", "rewrite_token": "x", "source_generation": 1, "delete_source_objects": True},
]


@for_each(product(ROWS, SERVICES), "{0.id} in {1}")
def test_every_row_answers_as_it_says(row: Row, name: str) -> None:
    """With a condition, without one, and with everything that only looks like one."""
    service = SERVICES[name]
    rule = choose(row, disputed=service.disputed, documented=service.documented)
    conditions = service.classify_call(GrpcCall(row.id)).conditions
    assert set(conditions) <= set(HOLDS)
    assert len(conditions) == len(rule.conditions)
    for message in TRAPS:
        _check(service.classify_call(GrpcCall(f"/{row.id}", message)), row, rule.safety, met=None)
    for text, messages in HOLDS.items():
        for message in messages:
            judgement = service.classify_call(GrpcCall(row.id, message))
            _check(judgement, row, rule.safety, met=text if text in conditions else None)


def _check(judgement: Judgement, row: Row, safety: Safety, *, met: str | None) -> None:
    assert judgement.operation == row.id
    assert judgement.safety is safety
    assert judgement.met == met
    assert judgement.repeatable is (safety is Safety.ALWAYS or met is not None)
    assert judgement.mutation is not row.is_read
    assert judgement.maybe_done == codes.numbers(row.maybe_done)


@for_each(ROWS, "{0.id}")
def test_every_row_is_complete(row: Row) -> None:
    """Each row names its sources, and says whether it reads or writes."""
    name = row.id.partition("/")[2]
    assert row.columns["source"] in SOURCES
    assert row.where[0] in {"unary", "server", "client", "bidi"}
    reads = ("Get", "List", "Test", "Query", "Read", "BidiRead", "Summarize", "View")
    assert row.is_read is name.startswith(reads)
    assert (row.documented is None) is not row.columns["source"].startswith("retry page")
    if row.is_read:
        assert row.documented == row.rule
    if row.rule.safety is not Safety.ALWAYS:
        assert row.effect != "none"


def test_the_table_has_every_rpc_of_the_client() -> None:
    """An RPC that Google adds or drops shows up here."""
    from google.cloud._storage_v2.services.storage.transports import StorageGrpcTransport

    shared = {"kind", "close", "delete_operation", "get_operation", "list_operations", "cancel_operation"}
    methods = {name for name in vars(StorageGrpcTransport) if not name.startswith("_")} - shared
    channel_setup = {"create_channel", "grpc_channel"}
    listed = {_snake(row.id.partition("/")[2]) for row in ROWS if row.id.startswith(V2)}
    assert listed == methods - channel_setup
    assert len(ROWS) == 63


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def test_every_condition_is_a_field_of_its_message() -> None:
    """A condition that the message does not have would never hold, or never be enforced."""
    shared = {"SetIamPolicy": iam.SetIamPolicyRequest}
    for row in ROWS:
        name = row.id.removeprefix(V2)
        if name == row.id or not row.rule.conditions:
            continue
        kind = shared.get(name) or getattr(types, f"{name}Request")
        descriptor = (kind.pb(kind()) if hasattr(kind, "pb") else kind).DESCRIPTOR
        for terms in row.rule.conditions + row.disputed:
            for _, path in terms:
                *outer, last = path.split(".")
                found = descriptor
                for part in outer:
                    found = (found.fields_by_name.get(part) or found.fields_by_name[f"{part}_"]).message_type
                optional = found.fields_by_name[last].has_presence or last in ("etag", "upload_id", "generation")
                assert optional or path == "update_mask", (row.id, path)


@pytest.mark.parametrize(
    ("name", "message", "repeatable"),
    [
        ("DeleteObject", types.DeleteObjectRequest(if_generation_match=0), True),
        ("DeleteObject", types.DeleteObjectRequest(generation=7), True),
        ("DeleteObject", types.DeleteObjectRequest(generation=0, if_generation_not_match=0), False),
        ("UpdateObject", types.UpdateObjectRequest(if_generation_match=7), False),
        ("UpdateObject", types.UpdateObjectRequest(if_metageneration_match=0), True),
        ("UpdateObject", types.UpdateObjectRequest(object={"etag": "x"}), False),
        ("UpdateBucket", types.UpdateBucketRequest(bucket={"etag": "x"}), False),
        ("WriteObject", types.WriteObjectRequest(write_object_spec={"if_generation_match": 0}), True),
        ("WriteObject", types.WriteObjectRequest(write_object_spec={"if_metageneration_match": 0}), False),
        ("BidiWriteObject", types.BidiWriteObjectRequest(append_object_spec={"generation": 3}), True),
        ("BidiWriteObject", types.BidiWriteObjectRequest(append_object_spec={"object": "x"}), False),
        ("MoveObject", types.MoveObjectRequest(if_source_generation_match=1), False),
        ("ComposeObject", types.ComposeObjectRequest(source_objects=[{"generation": 1}]), False),
        ("SetIamPolicy", iam.SetIamPolicyRequest(policy=policy_pb2.Policy(etag=b"x")), True),
        (
            "SetIamPolicy",
            iam.SetIamPolicyRequest(policy={"etag": b"x"}, update_mask=field_mask_pb2.FieldMask(paths=["bindings"])),
            False,
        ),
    ],
)
def test_real_messages(name: str, message: Any, repeatable: bool) -> None:
    """As the client sends them, and as what they wrap."""
    raw = type(message).pb(message) if hasattr(type(message), "pb") else message
    for each in (message, raw):
        assert RECOMMENDED.classify_call(GrpcCall(f"/{V2}{name}", each)).repeatable is repeatable


def test_disputed_conditions_count_on_request() -> None:
    """An etag inside the resource, and a condition on the source of a move."""
    object_ = types.UpdateObjectRequest(object={"etag": "x"})
    assert DISPUTED.classify_call(GrpcCall(f"{V2}UpdateObject", object_)).repeatable
    move = types.MoveObjectRequest(if_source_generation_match=1)
    assert DISPUTED.classify_call(GrpcCall(f"{V2}MoveObject", move)).repeatable


def _trailer(kind: str) -> tuple[tuple[str, bytes], ...]:
    detail = any_pb2.Any(type_url=f"type.googleapis.com/google.storage.v2.{kind}", value=b"\x0a\x01x")
    return (("grpc-status-details-bin", status_pb2.Status(code=10, details=[detail]).SerializeToString()),)


def test_what_the_ends_of_calls_mean() -> None:
    """ABORTED with a redirect only moves a stream; without one it is a conflict, but for reads."""
    write = RECOMMENDED.classify_call(GrpcCall(f"{V2}UpdateBucket"))
    read = RECOMMENDED.classify_call(GrpcCall(f"{V2}ReadObject"))
    for kind in ("BidiReadObjectRedirectedError", "BidiWriteObjectRedirectedError"):
        assert RECOMMENDED.call_verdict(write, codes.ABORTED, _trailer(kind)) is TRANSIENT
        assert RECOMMENDED.call_verdict(write, codes.INTERNAL, _trailer(kind)) == TRANSIENT
        assert RECOMMENDED.call_verdict(write, codes.NOT_FOUND, _trailer(kind)) is PERMANENT
    assert RECOMMENDED.call_verdict(write, codes.ABORTED, _trailer("Bucket")) is CONFLICT
    assert RECOMMENDED.call_verdict(write, codes.ABORTED) is CONFLICT
    assert RECOMMENDED.call_verdict(read, codes.ABORTED) == TRANSIENT
    assert RECOMMENDED.call_verdict(write, codes.FAILED_PRECONDITION) is PERMANENT
    assert RECOMMENDED.call_verdict(write, codes.UNAVAILABLE) == Verdict(Kind.TRANSIENT, throttled=True)
    assert RECOMMENDED.call_verdict(write, codes.OK) is None


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.integers()))
def test_an_unknown_rpc_is_never_repeatable(method: str, message: dict[str, int]) -> None:
    """Not even one whose name sounds like a read."""
    assert RECOMMENDED.classify_call(GrpcCall(method, message)) == UNKNOWN
    assert RECOMMENDED.classify_call(GrpcCall("/google.storage.v2.Storage/GetEverything", message)) == UNKNOWN


def test_a_message_that_raises_is_judged_without_its_fields() -> None:
    """Whatever stands in for a message, finding out what may be repeated does not fail."""

    class Broken:
        def __getattr__(self, name: str) -> object:
            raise LookupError(name)

    judgement = RECOMMENDED.classify_call(GrpcCall("/google.storage.v2.Storage/DeleteObject", Broken()))
    assert (judgement.operation, judgement.repeatable) == ("google.storage.v2.Storage/DeleteObject", False)
