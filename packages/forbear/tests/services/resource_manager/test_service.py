"""The table of Resource Manager: complete, consistent, and every row of it answers as it says."""

import pytest

from forbear.core.verdict import Safety
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.services import resource_manager
from forbear.services.registry import find, find_rpc
from forbear.services.resource_manager.service import RECOMMENDED
from forbear.tables.table import Row
from forbear_testkit.rows import for_each
from forbear_testkit.services import json_tables
from forbear_testkit.services.json_tables import check_calls, check_requests, check_row

HOST = "cloudresourcemanager.googleapis.com"
ROWS = RECOMMENDED.rows_of("operations")
VERSIONS = ("v1", "v1beta1", "v2", "v3")
ETAG = b'{"policy": {"etag": "BwX=", "bindings": []}}'


@for_each(ROWS, "{0.id}")
def test_every_row_answers_as_it_says(row: Row) -> None:
    """Requests and calls, with each condition, without one, and with everything that only looks like one."""
    for host in (HOST, "cloudresourcemanager.mtls.googleapis.com:443", "localhost:8080"):
        check_requests(RECOMMENDED, host, row)
    check_calls(RECOMMENDED, row)


@for_each(ROWS, "{0.id}")
def test_every_row_is_complete(row: Row) -> None:
    """Sources are named, duplicates of what is unsafe are described, and every GET is a read."""
    check_row(row)


def test_the_table_is_the_discovery_documents() -> None:
    """A method that Google adds, moves or drops in any version of the API shows up here."""
    listed = {
        (_published_id(row.id), row.where[0], json_tables.shape(path))
        for row in ROWS
        for path in row.where[1].split("|")
    }
    published = {
        (id, *where)
        for version in VERSIONS
        for id, where in json_tables.published(f"cloudresourcemanager.{version}").items()
        if version != "v2" or id != "cloudresourcemanager.operations.get"  # that one is served under /v1
    }
    assert listed == published


def _published_id(id: str) -> str:
    """The id without the version, which only rows of methods that changed between versions have."""
    api, version, rest = id.split(".", 2) if id.count(".") > 2 else (*id.partition(".")[::2], "")
    return f"{api}.{rest}" if version in VERSIONS else id


def test_the_rows_have_the_rpcs_of_the_client() -> None:
    """google-cloud-resource-manager 1.19 has 52 RPCs, and the method for operations that all services share."""
    rpcs = [row.where[2] for row in ROWS if row.where[2].startswith("google.cloud.resourcemanager.v3.")]
    assert len(rpcs) == len(set(rpcs)) == 52
    assert {find_rpc(rpc) for rpc in rpcs} == {RECOMMENDED}
    assert find_rpc("google.longrunning.Operations/GetOperation", HOST) == RECOMMENDED


def test_reads_are_told_from_writes() -> None:
    """A method that gets, lists, tests, fetches or searches is a read, also as a POST; no other method is."""
    for row in ROWS:
        name = row.id.rpartition(".")[2]
        assert row.is_read is name.startswith(("get", "list", "test", "search", "fetch")), row.id


POLICIES = [
    f"/{version}/{resource}"
    for version, resources in {
        "v1": ("projects/p", "projects/example.com:p", "organizations/1"),
        "v1beta1": ("projects/p", "organizations/1"),
        "v2": ("folders/1",),
        "v3": ("projects/p", "folders/1", "organizations/1", "tagKeys/1", "tagValues/1"),
    }.items()
    for resource in resources
]


@pytest.mark.parametrize("path", POLICIES)
def test_policies_of_every_resource(path: str) -> None:
    """Each resource has the three IAM methods: two reads, and a write that needs the etag."""
    service = find(HOST, path)
    assert service == RECOMMENDED == resource_manager.policy.service
    for method, body, safety, repeatable in (
        ("getIamPolicy", b"{}", Safety.ALWAYS, True),
        ("testIamPermissions", b'{"permissions": ["x"]}', Safety.ALWAYS, True),
        ("setIamPolicy", ETAG, Safety.CONDITIONAL, True),
        ("setIamPolicy", b'{"policy": {"bindings": []}}', Safety.CONDITIONAL, False),
        ("setIamPolicy", b'{"policy": {"etag": "x"}, "updateMask": "bindings"}', Safety.CONDITIONAL, False),
    ):
        judged = RECOMMENDED.classify(Request("POST", HOST, f"{path}:{method}", {}, body))
        assert (judged.safety, judged.repeatable) == (safety, repeatable)
        assert judged.mutation is (method == "setIamPolicy")
        assert (judged.operation or "").endswith(f"s.{method}")


@pytest.mark.parametrize(
    ("resource", "method"),
    [(kind, method) for kind in ("Projects", "Folders", "Organizations", "TagKeys", "TagValues")
     for method in ("GetIamPolicy", "SetIamPolicy", "TestIamPermissions")],
)  # fmt: skip
def test_the_same_over_grpc(resource: str, method: str) -> None:
    """Messages are judged as bodies are."""
    rpc = f"/google.cloud.resourcemanager.v3.{resource}/{method}"
    bare = RECOMMENDED.classify_call(GrpcCall(rpc, {"resource": "x"}))
    tagged = RECOMMENDED.classify_call(GrpcCall(rpc, {"resource": "x", "policy": {"etag": b"BwX"}}))
    assert tagged.repeatable
    assert bare.repeatable is (method != "SetIamPolicy")
    assert bare.operation == rpc[1:]


@pytest.mark.parametrize(
    "line",
    [
        "POST /v3/projects/p:setIampolicy", "POST /v3/projects/p%3AsetIamPolicy", "POST /v3/projects/:setIamPolicy",
        "POST /v3/projects/..:setIamPolicy", "POST /v3/projects/p/x:setIamPolicy", "PUT /v3/projects/p:setIamPolicy",
        "POST /v3/folders/1:search", "POST /v4/projects/p:setIamPolicy", "POST /v2/projects/p:setIamPolicy",
        "PATCH /v1/projects/p", "POST /v3/projects/p:setIamPolicy#x", "DELETE /v3/tagBindings/a/b",
    ],
)  # fmt: skip
def test_what_is_not_known_is_never_repeated(line: str) -> None:
    """Other versions, other methods and other spellings are none of the operations."""
    method, _, target = line.partition(" ")
    judged = RECOMMENDED.classify(Request(method, HOST, target, {}, ETAG))
    assert (judged.operation, judged.repeatable) == (None, False)
