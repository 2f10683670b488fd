"""The IAM methods of all other Google APIs, and the requests and RPCs that only look like them."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, Safety
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services.iam import any_api
from forbear.services.iam.service import RECOMMENDED
from forbear.services.registry import find, find_rpc, recommend
from forbear.services.rfc9110 import RFC9110

TOPIC = "/v1/projects/p/topics/t"
INSTANCE = "/compute/v1/projects/p/zones/z/instances/i"
TAGGED = b'{"policy": {"etag": "BwX=", "bindings": []}}'
BARE = b'{"policy": {"bindings": []}}'
MASKED = b'{"policy": {"etag": "BwX="}, "updateMask": "bindings"}'


def judge(
    line: str, host: str = "pubsub.googleapis.com", body: bytes | None = TAGGED, headers: dict[str, str] | None = None
) -> Judgement:
    """The judgement of the service that answers on the host, by default a tagged policy to Pub/Sub."""
    method, _, target = line.partition(" ")
    return (find(host, target) or RFC9110).classify(Request(method, host, target, headers or {}, body))


@pytest.mark.parametrize(
    "host",
    [
        "pubsub.googleapis.com", "PubSub.GoogleAPIs.com.:443", "pubsub.mtls.googleapis.com",
        "pubsub.us-east1.rep.googleapis.com", "us-central1-aiplatform.googleapis.com", "run-psc1.p.googleapis.com",
        "www.googleapis.com", "www.mtls.googleapis.com", "europe-west1-run.mtls.googleapis.com:8443",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [TOPIC, "/v1beta2/projects/example.com:p/b", "/bigquery/v2/projects/p/datasets/d"])
def test_every_host_of_google(host: str, path: str) -> None:
    """Two reads, and a write that may be repeated with the etag of the policy and without a mask."""
    for name in ("getIamPolicy", "testIamPermissions"):
        judged = judge(f"POST {path}:{name}?alt=json", host, b"{}")
        assert (judged.operation, judged.safety, judged.mutation) == (f"iam.any.{name}", Safety.ALWAYS, False)
    for body, repeatable in ((TAGGED, True), (BARE, False), (MASKED, False), (None, False), (b"{", False)):
        judged = judge(f"POST {path}:setIamPolicy", host, body)
        assert (judged.service, judged.operation, judged.safety) == ("iam", "iam.any.setIamPolicy", Safety.CONDITIONAL)
        assert judged.repeatable is repeatable
    assert recommend(host, f"{path}:setIamPolicy").service == RECOMMENDED


def test_a_conflict_calls_for_a_new_cycle() -> None:
    """The responses mean what they mean for IAM itself."""
    judged = judge(f"POST {TOPIC}:setIamPolicy")
    assert RECOMMENDED.verdict(judged, 409, {}, lambda: b'{"error": {"status": "ABORTED"}}') is CONFLICT
    assert judged.maybe_done == (409,)


@pytest.mark.parametrize(
    "host",
    [
        "evil-googleapis.com", "googleapis.com.evil.example", "pubsub.googleapis.com.evil.example", "googleapis.com",
        "pubsub.googleapis.community", "pubsubXgoogleapis.com", "pubsub.googleapis.com:pw@evil.example",
        "pubsub.googleapis.com@evil.example", "evil.example/pubsub.googleapis.com", "pubsub.googleapis.com:80.evil.org",
        "-x.googleapis.com", ".googleapis.com", "pubsub..googleapis.com", "pubsub.googleapis.com\n", "localhost:8080",
        "xn--googleapis.com", "[::1]:443", "", "pubsub.googleapis.com..",
    ],
)  # fmt: skip
def test_hosts_that_are_not_googles(host: str) -> None:
    """Names that look alike, user info and odd ports have the rules of unknown hosts."""
    assert find(host, f"{TOPIC}:setIamPolicy") is None
    assert not judge(f"POST {TOPIC}:setIamPolicy", host).repeatable
    assert not judge(f"POST {TOPIC}:getIamPolicy", host).repeatable


@pytest.mark.parametrize(
    "line",
    [
        f"POST {TOPIC}:publish", f"POST {TOPIC}:SetIamPolicy", f"POST {TOPIC}%3AsetIamPolicy",
        f"POST {TOPIC}:setIamPolicy/", f"POST {TOPIC}:setIamPolicy/..", f"POST {TOPIC}?x=:setIamPolicy",
        f"POST {TOPIC}#:setIamPolicy", f"POST {TOPIC}:setIamPolicy#x", "POST /v1/:setIamPolicy",
        "POST /v1/projects/..:setIamPolicy", "POST /v1:setIamPolicy", "POST /:setIamPolicy", "POST :setIamPolicy",
        "POST /v0/b/bkt/o/name:getIamPolicy", "POST /upload/files:getIamPolicy", f"POST {TOPIC}/setIamPolicy",
        f"POST {TOPIC}/testIamPermissions", "POST /compute/v1/setIamPolicy", "POST /compute/v1//setIamPolicy",
        f"PATCH {TOPIC}:setIamPolicy", f"POST {TOPIC}:getIamPolicy:x", "POST /batch/v1",
    ],
)  # fmt: skip
def test_paths_that_are_none(line: str) -> None:
    """A POST that is no IAM method is not repeated, whatever its body says."""
    judged = judge(line)
    assert (judged.operation, judged.repeatable) == (None, False)


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_overrides_are_not_trusted(header: str) -> None:
    """A request that another method replaces is unknown; one that names its own is not."""
    for method, repeatable in (("DELETE", False), ("PATCH", False), ("POST", True)):
        assert judge(f"POST {TOPIC}:setIamPolicy", headers={header: method}).repeatable is repeatable
        assert judge(f"POST {TOPIC}:getIamPolicy", headers={header: method}).repeatable is repeatable


@pytest.mark.parametrize("host", ["storage.googleapis.com", "bkt.storage.googleapis.com", "storage.cloud.google.com"])
def test_names_of_objects_are_no_methods(host: str) -> None:
    """On hosts of Cloud Storage a path ends as users name their objects, whichever service judges it."""
    request = Request("POST", host, f"{TOPIC}:getIamPolicy", {}, b"")
    assert find(host, request.target) != RECOMMENDED
    assert not judge(f"POST {TOPIC}:getIamPolicy", host).repeatable
    assert not RECOMMENDED.classify(request).repeatable


def test_the_rest_of_a_host_stays_unknown() -> None:
    """Other requests to a Google host without a table are judged by RFC 9110, and by the rules for its RPCs."""
    for line, repeatable in (("GET /v1/x", True), ("PUT /v1/x", False), (f"POST {TOPIC}:publish", False)):
        judged = judge(line)
        assert (judged.service, judged.repeatable) == ("rfc9110", repeatable)


def test_an_emulator_under_the_policy_of_iam() -> None:
    """A policy of IAM applies to every host, so the rule holds there, too; IAM's own hosts have their table only."""
    request = Request("POST", "localhost:8085", f"{TOPIC}:setIamPolicy", {}, TAGGED)
    assert RECOMMENDED.classify(request).repeatable
    assert not RECOMMENDED.classify(request.replace(host="iam.googleapis.com")).repeatable


def published(wanted: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield host, HTTP method, path and name of the IAM methods in these discovery documents (none named: all)."""

    def methods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from resource.get("methods", {}).values()
        for inner in resource.get("resources", {}).values():
            yield from methods(inner)

    documents = resources.files("googleapiclient.discovery_cache") / "documents"
    for file in documents.iterdir():
        if file.name.startswith("storage.") or (wanted and file.name.removesuffix(".json") not in wanted):
            continue
        text = file.read_text(encoding="utf-8")
        document = json.loads(text if "IamP" in text else "{}")
        for method in methods(document):
            name = method["id"].rpartition(".")[2]
            if name in any_api.METHODS:
                path = f"/{document['servicePath']}{method.get('flatPath') or method['path']}"
                host = document["rootUrl"].removeprefix("https://").strip("/")
                yield host, method["httpMethod"], path.replace("{", "").replace("}", ""), name


SOME = (
    "bigquery.v2",
    "cloudkms.v1",
    "deploymentmanager.alpha",
    "dns.v1",
    "iap.v1",
    "pubsub.v1",
    "run.v2",
    "spanner.v1",
)


@pytest.mark.parametrize("documents", [SOME, pytest.param((), marks=pytest.mark.soak)], ids=["some", "all"])
def test_every_published_method_is_recognised(documents: tuple[str, ...]) -> None:
    """The IAM methods of the APIs in Google's discovery documents, some with a colon and some with a slash."""
    seen: set[str] = set()
    for host, verb, path, name in published(documents):
        judged = judge(f"{verb} {path}", host)
        assert (judged.operation or "").endswith(name), (host, path)
        assert judged.repeatable, (host, path)
        assert judged.mutation is (name == "setIamPolicy")
        assert judge(f"{verb} {path}", host, BARE).repeatable is (name != "setIamPolicy")
        seen.add(host)
    assert len(seen) == len(SOME) if documents else len(seen) > 60


@pytest.mark.parametrize("rpc", ["google.iam.v1.IAMPolicy/", "/google.pubsub.v1.Publisher/"])
def test_over_grpc(rpc: str) -> None:
    """The three RPCs of any Google service are judged by their messages."""
    for name, message, repeatable in (
        ("GetIamPolicy", {}, True),
        ("TestIamPermissions", {}, True),
        ("SetIamPolicy", {"policy": {"etag": b"BwX"}}, True),
        ("SetIamPolicy", {"policy": {"etag": b"BwX"}, "update_mask": {"paths": ["bindings"]}}, False),
        ("SetIamPolicy", {"policy": {"etag": b""}}, False),
        ("SetIamPolicy", None, False),
    ):
        service = find_rpc(rpc + name)
        assert service is not None
        judged = service.classify_call(GrpcCall(rpc + name, message))
        assert (judged.operation, judged.repeatable) == ((rpc + name).removeprefix("/"), repeatable)
    assert not RECOMMENDED.classify_call(GrpcCall("acme.Topics/GetIamPolicy", {})).repeatable
    assert find_rpc(f"{rpc}Publish") is None
