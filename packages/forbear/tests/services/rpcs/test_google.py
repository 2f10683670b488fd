"""The list of Google's RPCs and the rules in it: which requests they allow, and what follows from it."""

from types import SimpleNamespace
from typing import Any

import pytest

from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.services import registry
from forbear.services.rpcs import RpcJudgement, google, rules
from forbear_testkit.clients.google import protos

NAME = "projects/p/things/t"
ALREADY = (codes.NUMBERS["ALREADY_EXISTS"], codes.FAILED_PRECONDITION)
MASK = {"update_mask": {"paths": ["labels"]}}
AUTHORITY = "google.cloud.security.privateca.v1.CertificateAuthorityService"


@pytest.mark.parametrize(
    ("text", "message", "allowed"),
    [
        ("key", {"request_id": "7d9f3a52"}, True),
        ("key", {"request_id": ""}, False),
        ("key", {}, False),
        ("create=thing_id", {"thing_id": "t"}, True),
        ("create=thing_id", {"thing_id": ""}, False),
        ("create=thing.name", {"thing": {"name": NAME}}, True),
        ("create=thing.name", {"thing": {}}, False),
        ("delete", {"name": NAME}, True),
        ("delete", {}, False),
        ("delete", {"name": "projects/-/things/t"}, False),
        ("delete", {"name": "projects/p/things/*"}, False),
        ("delete", {"name": "projects/p/things/"}, False),
        ("delete", {"name": "projects/p/things/t/revisions/latest"}, False),
        ("delete!force", {"name": NAME, "force": False}, True),
        ("delete!force", {"name": NAME, "force": True}, False),
        ("delete=name,etag", {"name": NAME}, False),
        ("delete=name,etag", {"name": NAME, "etag": "x"}, True),
        ("update", {"update_mask": {"paths": ["labels"]}}, True),
        ("update", {"update_mask": {"paths": []}}, False),
        ("update", {"update_mask": {"paths": ["*"]}}, False),
        ("update", {"update_mask": SimpleNamespace(paths=["labels"])}, True),
        ("update", {}, False),
        ("etag=update_mask,thing.etag", {"update_mask": {"paths": ["labels"]}}, False),
        ("etag=update_mask,thing.etag", {"update_mask": {"paths": ["labels"]}, "thing": {"etag": b"x"}}, True),
        ("g", {}, True),
        ("read!transaction", {}, True),
        ("read!transaction", {"transaction": b"x"}, False),
    ],
)
def test_what_a_rule_allows(text: str, message: dict[str, Any], allowed: bool) -> None:
    """A rule needs values that are not empty, one resource, and no option that does more."""
    [rule] = google.read(text)
    assert rule.allows(message) is allowed


@pytest.mark.parametrize(
    ("text", "condition", "proof", "known_for", "words"),
    [
        ("key", "request_id", "key", 300, "request_id"),
        ("k~60", "request_id", "key", 3600, "request_id"),
        ("create=task.name~60", "task.name", "absent", 3600, "task.name"),
        ("s", None, None, None, ""),
        ("create=thing_id", "thing_id", "absent", None, "thing_id"),
        ("delete!force", None, None, None, "name of one resource and no force"),
        ("delete=name,etag", "etag", "version", None, "name of one resource and etag"),
        ("update", None, None, None, "update_mask"),
        ("etag=update_mask,thing.etag", "thing.etag", "version", None, "update_mask and thing.etag"),
    ],
)
def test_what_makes_a_call_safe(
    text: str, condition: str | None, proof: str | None, known_for: int | None, words: str
) -> None:
    """Keys, ids and versions are judged as such in functions; a key whose span nobody names counts for five minutes."""
    [rule] = google.read(text)
    assert (rule.condition, rule.proof, rule.known_for, rule.text) == (condition, proof, known_for, words)
    assert rule.why


def test_a_text_that_is_no_rule() -> None:
    """A row with a mistake is found when it is read."""
    with pytest.raises(ValueError, match="'key request_id' is no rule"):
        google.read("key request_id")


def test_a_message_that_cannot_be_read_is_not_allowed() -> None:
    """Attributes of an object that is no message may raise anything."""

    class Broken:
        @property
        def DESCRIPTOR(self) -> Any:  # noqa: N802 # protobuf's name
            raise RuntimeError

    assert not google.RpcRule("key", ("request_id",)).allows(Broken())
    assert google.RpcRule("key", ("request_id",)).allows(
        protos.message("google.made.v1.CreateThingRequest", request_id="7d9f3a52")
    )


def test_the_list() -> None:
    """It names the commit of its source, and is small enough to be read."""
    assert google.source() == "googleapis at f8291d2b89f0"
    assert google.FILE.stat().st_size <= 200_000
    assert [rule.kind for rule in google.find("google.pubsub.v1.Publisher/GetTopic")] == ["get"]
    assert [rule.kind for rule in google.find("google.cloud.asset.v1.AssetService/SearchAllResources")] == ["get"]
    for name in ("google.pubsub.v1.Publisher/Publish", "google.pubsub.v1.Publisher/Get", "google.no.V1/GetTopic", "x"):
        assert google.find(name) == ()


def test_every_rule_of_the_list_can_be_read() -> None:
    """None is of a kind that nobody knows, and no RPC of the list is in a table."""
    for service, listed in google._services().items():
        for entry in listed.split(" "):
            name = f"{service}/{entry.partition(':')[0]}"
            assert all(rule.why for rule in google.find(name)), name


@pytest.mark.parametrize(
    ("name", "message", "repeatable", "maybe_done"),
    [
        (
            "google.cloud.tasks.v2.CloudTasks/CreateTask",
            {"task": {"name": NAME}},
            True,
            (codes.NUMBERS["ALREADY_EXISTS"],),
        ),
        ("google.cloud.tasks.v2.CloudTasks/CreateTask", {"task": {}}, False, ()),
        ("google.cloud.tasks.v2.CloudTasks/PauseQueue", {"name": NAME}, True, ALREADY),
        ("google.cloud.tasks.v2.CloudTasks/PurgeQueue", {"name": NAME}, False, ()),
        ("google.container.v1.ClusterManager/SetAddonsConfig", {}, True, ALREADY),
        ("google.container.v1.ClusterManager/SetMasterAuth", {}, False, ()),
        ("google.container.v1.ClusterManager/UpdateCluster", {"update": {}}, False, ()),
        ("google.cloud.compute.v1.ZoneOperations/Wait", {}, True, ()),
        ("google.appengine.v1.Services/UpdateService", MASK, True, ()),
        ("google.appengine.v1.Services/UpdateService", {**MASK, "migrate_traffic": True}, False, ()),
        ("google.monitoring.v3.AlertPolicyService/UpdateAlertPolicy", MASK, False, ()),
        (f"{AUTHORITY}/CreateCertificate", {"certificate_id": "c"}, False, ()),
        ("google.cloud.bigquery.v2.JobService/Query", {"query_request": {"query": "INSERT"}}, False, ()),
        ("google.firestore.v1.Firestore/RunQuery", {"new_transaction": {"read_write": {}}}, False, ()),
        ("google.firestore.v1.Firestore/RunQuery", {"structured_query": {}}, True, ()),
        ("google.cloud.discoveryengine.v1.UserEventService/CollectUserEvent", {}, False, ()),
        ("google.cloud.aiplatform.v1beta1.DatasetService/RestoreDatasetVersion", {"name": NAME}, False, ()),
        ("google.secure.v1.Things/GetThing", {}, False, ()),
        ("google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion", {}, True, ()),
    ],
)
def test_rows_and_list(name: str, message: dict[str, Any], repeatable: bool, maybe_done: tuple[int, ...]) -> None:
    """They are judged without a client that is loaded, rows in all versions of an API."""
    judgement = rules.judge(GrpcCall(name, message), registry.find_rpc(name))
    assert (judgement.repeatable, judgement.maybe_done) == (repeatable, maybe_done)


def test_a_key_with_its_span() -> None:
    """BigQuery knows the request_id of a query for 15 minutes."""
    name = "google.cloud.bigquery.v2.JobService/Query"
    judgement = rules.judge(GrpcCall(name, {"query_request": {"request_id": "7d9f3a52"}}), None)
    assert isinstance(judgement, RpcJudgement)
    assert (judgement.proof, judgement.met, judgement.span) == ("key", "query_request.request_id", 900)
