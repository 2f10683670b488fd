"""RPCs that no table has: by annotations, and in Google's packages by rules."""

from importlib import import_module
from typing import Any

import pytest

from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110
from forbear.services.rpcs import RpcJudgement, google, rules
from forbear_testkit.clients.google import protos


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Load the services of the testkit."""
    protos.load()


def judge(name: str, message: Any = None) -> RpcJudgement:
    """Return the judgement on a call of an RPC that no table has."""
    judgement = rules.judge(GrpcCall(name, message), registry.find_rpc(name))
    assert isinstance(judgement, RpcJudgement)
    assert judgement.operation == name
    return judgement


@pytest.mark.parametrize(
    ("name", "repeatable", "mutation", "why"),
    [
        ("Show", True, False, "idempotency_level = NO_SIDE_EFFECTS in shop.v1.proto"),
        ("Cancel", True, True, "idempotency_level = IDEMPOTENT in shop.v1.proto"),
        ("Find", True, False, "google.api.http GET in shop.v1.proto"),
        ("Peek", True, False, "google.api.http HEAD in shop.v1.proto"),
        ("Replace", True, True, "google.api.http PUT in shop.v1.proto; RFC 9110 9.2.2"),
        ("Remove", True, True, "google.api.http DELETE and PUT in shop.v1.proto; RFC 9110 9.2.2"),
        ("Change", False, True, "no annotation in shop.v1.proto says that it may be"),
        ("Make", False, True, "no annotation in shop.v1.proto says that it may be"),
        ("Mixed", False, True, "no annotation in shop.v1.proto says that it may be"),
        ("GetTask", False, True, "no annotation in shop.v1.proto says that it may be"),
        ("Gone", False, True, "no module with its definition is loaded"),
    ],
)
def test_annotations_alone_count_outside_of_google(name: str, repeatable: bool, mutation: bool, why: str) -> None:
    """A level, or an HTTP method by RFC 9110; a name such as GetTask proves nothing."""
    judgement = judge(f"shop.v1.Orders/{name}")
    assert (judgement.repeatable, judgement.mutation, judgement.why) == (repeatable, mutation, why)
    assert judgement.safety is (Safety.ALWAYS if repeatable else Safety.NEVER)


def test_a_request_id_proves_nothing_outside_of_google() -> None:
    """It is mostly the id of a trace."""
    message = protos.message("shop.v1.MakeRequest", request_id="7d9f3a52-6f0b-4b7e-9a37-0e4b1f6f6f11")
    assert not judge("shop.v1.Orders/Make", message).repeatable


def test_a_later_conflict_may_mean_that_the_call_worked() -> None:
    """A delete does not find what is gone; of an idempotent RPC it is not known how it answers then."""
    done = {name: judge(f"shop.v1.Orders/{name}").maybe_done for name in ("Show", "Replace", "Remove", "Cancel")}
    exists = codes.NUMBERS["ALREADY_EXISTS"]
    assert done == {"Show": (), "Replace": (), "Remove": (codes.NOT_FOUND,), "Cancel": (codes.NOT_FOUND, exists)}


@pytest.mark.parametrize("name", ["GetThing", "ListThings", "SearchThings", "BatchGetThings"])
def test_reads_of_google(name: str) -> None:
    """A GET is a read, and so is a verb of reading by POST whose request keeps nothing."""
    judgement = judge(f"google.made.v1.Things/{name}")
    assert (judgement.repeatable, judgement.mutation) == (True, False)


@pytest.mark.parametrize(
    "name",
    ["GetSecret", "SearchLater", "LookupThings", "Listen", "Query", "ExecuteSql", "RunThing", "Pull", "Fetch", "Check",
     "UpdateThing", "DeleteThing", "CreateThing", "Gone"],
)  # fmt: skip
def test_what_google_calls_otherwise_is_never_repeated(name: str) -> None:
    """Queries may write, pulls take, sessions and transactions begin; and the writes are in no list."""
    assert not judge(f"google.made.v1.Things/{name}").repeatable


@pytest.mark.parametrize(
    ("fields", "repeatable"),
    [({"validate_only": True}, True), ({"validate_only": False}, False), ({}, False), ({"request_id": "x"}, False)],
)
def test_a_dry_run_only_if_it_is_true(fields: dict[str, Any], repeatable: bool) -> None:
    """A false `validate_only` is no dry run, although the field is there."""
    name = "google.made.v1.Things/CreateThing"
    assert judge(name, protos.message("google.made.v1.CreateThingRequest", **fields)).repeatable is repeatable
    assert judge(name, fields).repeatable is repeatable


@pytest.mark.parametrize(("value", "repeatable"), [("all", False), ("none", True), ("", True)])
def test_a_parameter_that_notifies(value: str, repeatable: bool) -> None:
    """Guests would get a second mail, whatever the binding is."""
    message = protos.message("google.made.v1.GetThingRequest", send_updates=value)
    assert judge("google.made.v1.Things/GetThing", message).repeatable is repeatable


@pytest.mark.parametrize(
    ("name", "repeatable"),
    [
        ("google.cloud.bigquery.v2.JobService/Query", False),
        ("google.pubsub.v1.Subscriber/Pull", False),
        ("google.cloud.tasks.v2beta2.CloudTasks/LeaseTasks", False),
        ("google.api.servicecontrol.v1.QuotaController/AllocateQuota", False),
        ("google.logging.v2.LoggingServiceV2/DeleteLog", False),
        ("google.bigtable.v2.Bigtable/ReadRows", True),
        ("google.longrunning.Operations/GetOperation", True),
        ("google.longrunning.Operations/CancelOperation", False),
    ],
)
def test_rpcs_by_name(name: str, repeatable: bool) -> None:
    """Rows give the reason and their source, whether a client is loaded or not."""
    import_module("google.longrunning.operations_pb2")
    judgement = judge(name)
    assert judgement.repeatable is repeatable
    assert "google" in judgement.why.lower()


def test_every_row_names_the_file_of_its_package() -> None:
    """The source of a row is a file in the folder of the RPC's package, and no RPC with a row has a table."""
    for name, (why, _) in google.rows().items():
        folder = name.partition("/")[0].rpartition(".")[0].partition(".*")[0]
        assert why.rpartition("; ")[2].startswith(f"{folder.replace('.', '/')}/")
        assert registry.find_rpc(name) is None


def test_the_order_of_the_rules() -> None:
    """Dangerous parameters come before reads, and a dry run before both."""
    read = "google.cloud.asset.v1.AssetService/SearchAllResources"
    assert judge(read).repeatable
    assert not judge(read, {"send_email": True}).repeatable
    assert judge(read, {"send_email": True, "validate_only": True}).why.startswith("validate_only is true")


def test_a_message_that_raises_makes_nothing_safer() -> None:
    """Attributes of an object that is no message may raise anything."""

    class Broken:
        @property
        def DESCRIPTOR(self) -> Any:  # noqa: N802 # protobuf's name
            raise RuntimeError

    assert not judge("google.made.v1.Things/CreateThing", Broken()).repeatable


def test_what_a_table_has_stays() -> None:
    """The definition of an RPC with a row does not count."""
    name = "google.cloud.redis.v1.CloudRedis/DeleteInstance"
    service = registry.find_rpc(name)
    assert service is not None
    assert rules.judge(GrpcCall(name), service) == service.classify_call(GrpcCall(name))
    unknown = GrpcCall("google.cloud.redis.v1.CloudRedis/Gone")
    assert rules.judge(unknown, service) == service.classify_call(unknown)


API_ALONE = ("www", "gmail", "admin", "tasks")
TOPIC = "v1/projects/p/topics/t"
CORPUS = "google.ai.generativelanguage.v1beta.RetrieverService/DeleteCorpus"
KEY = "google.api.apikeys.v2.ApiKeys/CreateKey"
BY_BOTH: list[tuple[str, dict[str, Any], str, str, bool]] = [
    ("google.pubsub.v1.Publisher/DeleteTopic", {"topic": TOPIC}, "DELETE pubsub", f"/{TOPIC}", True),
    ("google.pubsub.v1.Publisher/DeleteTopic", {"topic": "projects/-/topics/t"}, "DELETE pubsub",
     "/v1/projects/-/topics/t", False),
    ("google.pubsub.v1.Publisher/DeleteTopic", {"topic": "projects/-/topics/t"}, "DELETE pubsub",
     "/v1/projects/%2D/topics/t", False),
    ("google.pubsub.v1.Publisher/CreateTopic", {"name": TOPIC}, "PUT pubsub", f"/{TOPIC}", True),
    ("google.logging.v2.LoggingServiceV2/DeleteLog", {"log_name": "projects/p/logs/l"}, "DELETE logging",
     "/v2/projects/p/logs/l", False),
    ("google.cloud.secretmanager.v1.SecretManagerService/DeleteSecret", {"name": "projects/p/secrets/s"},
     "DELETE secretmanager", "/v1/projects/p/secrets/s", False),
    ("google.cloud.secretmanager.v1.SecretManagerService/DeleteSecret", {"name": "projects/p/secrets/s", "etag": "e"},
     "DELETE secretmanager", "/v1/projects/p/secrets/s?etag=e", True),
    ("google.cloud.compute.v1.Instances/Delete", {"instance": "i"}, "DELETE compute",
     "/compute/v1/projects/p/zones/z/instances/i", False),
    ("google.cloud.compute.v1.Instances/Delete", {"instance": "i", "request_id": "r"}, "DELETE compute",
     "/compute/v1/projects/p/zones/z/instances/i?requestId=r", True),
    ("google.cloud.compute.v1.Instances/Delete", {"instance": "i", "request_id": "r"}, "DELETE www",
     "/compute/v1/projects/p/zones/z/instances/i?requestId=r", True),
    ("google.cloud.tasks.v2.CloudTasks/DeleteTask", {"name": "projects/p/tasks/t"}, "DELETE cloudtasks",
     "/v2/projects/p/locations/l/queues/q/tasks/t", True),
    ("google.longrunning.Operations/DeleteOperation", {"name": "operations/o"}, "DELETE tpu",
     "/v2/projects/p/locations/l/operations/o", True),
    ("google.cloud.tasks.v2.CloudTasks/DeleteUnheardOf", {"name": "n"}, "DELETE cloudtasks",
     "/v2/projects/p/unheardOfs/n", False),
    ("google.cloud.tasks.v2.CloudTasks/UpdateUnheardOf", {"name": "n"}, "PUT cloudtasks",
     "/v2/projects/p/unheardOfs/n", False),
    ("google.cloud.retail.v2.ProductService/DeleteProduct", {"name": "products/x", "force": True},
     "DELETE retail", "/v2/projects/p/locations/l/catalogs/c/branches/b/products/x?force=true", True),
    ("google.cloud.retail.v2alpha.ProductService/DeleteProduct", {"name": "products/x", "force": True},
     "DELETE retail", "/v2alpha/projects/p/locations/l/catalogs/c/branches/b/products/x?force=true", False),
    (CORPUS, {"name": "corpora/c"}, "DELETE generativelanguage", "/v1beta/corpora/c", True),
    (CORPUS, {"name": "corpora/c", "force": True}, "DELETE generativelanguage", "/v1beta/corpora/c?force=true", False),
    (CORPUS, {"name": "corpora/c", "force": True}, "DELETE generativelanguage", "/v1beta/corpora/c?f%6Frce=true",
     False),
    ("google.ai.generativelanguage.v1beta.RetrieverService/DeleteUnheardOf", {"name": "n"},
     "DELETE generativelanguage", "/v1beta/unheardOfs/n", False),
    ("google.cloud.aiplatform.v1.IndexService/DeleteIndex", {"name": "indexes/i"}, "DELETE aiplatform",
     "/v1/projects/p/locations/l/indexes/i", True),
    (KEY, {"parent": "projects/p/locations/l"}, "POST apikeys", "/v2/projects/p/locations/l/keys", False),
    ("google.cloud.aiplatform.v1.IndexService/UpdateIndex", {"update_mask": ["*"]}, "PATCH aiplatform",
     "/v1/projects/p/locations/l/indexes/i?updateMask=*", False),
]  # fmt: skip


@pytest.mark.parametrize(("rpc", "message", "verb", "target", "repeatable"), BY_BOTH)
def test_one_judgement_over_grpc_and_json(
    rpc: str, message: dict[str, Any], verb: str, target: str, *, repeatable: bool
) -> None:
    """A write gets the same judgement as an RPC and as a request to the JSON API."""
    method, api = verb.split()
    over_http = RFC9110.classify(Request(method, f"{api}.googleapis.com", target, {}))
    assert rules.judge(GrpcCall(rpc, message), None).repeatable is repeatable
    assert over_http.repeatable is repeatable


def test_the_methods_of_compute_engine_are_found_first() -> None:
    """`Instances/Delete` is the RPC of a DELETE there, not the DeleteInstances of another service."""
    judgement = rules.judge_json("compute.googleapis.com", "DELETE", "/compute/v1/projects/p/zones/z/instances/i")
    assert judgement is not None
    assert judgement.operation == "google.cloud.compute.v1.Instances/Delete"


def test_a_create_whose_id_is_not_in_the_path() -> None:
    """The id of a Create by POST is in the query or in the body: the path alone allows none."""
    judgement = rules.judge_json("apikeys.googleapis.com", "POST", "/v2/projects/p/locations/l/keys")
    assert judgement is not None
    assert not judgement.repeatable


@pytest.mark.parametrize("mask", ["*", "name,*"])
def test_a_mask_of_everything(mask: str) -> None:
    """It may name fields that do more than change a value."""
    target = f"/v1/projects/p/locations/l/indexes/i?updateMask={mask}"
    judgement = rules.judge_json("aiplatform.googleapis.com", "PATCH", target)
    assert judgement is not None
    assert not judgement.repeatable
    call = GrpcCall("google.cloud.scheduler.v1.CloudScheduler/UpdateJob", {"update_mask": mask})
    assert not rules.judge(call, None).repeatable


@pytest.mark.parametrize("target", ["/drive/v3/files/f", "/calendar/v3/calendars/c/events/e"])
@pytest.mark.parametrize(
    "host", [f"{name}.googleapis.com" for name in ("www", "gmail", "admin", "tasks")] + ["a.example"]
)
def test_an_api_without_rpcs(host: str, target: str) -> None:
    """RFC 9110 alone judges a DELETE there."""
    assert RFC9110.classify(Request("DELETE", host, target, {})).maybe_done == (404, 410, 412)
