"""Read-modify-write of the policies of projects, folders, organizations and tags, through real clients."""

from collections.abc import Iterator
from typing import Any

import google.api_core.client_options
import googleapiclient.discovery
import httpx
import pytest
from google.auth.credentials import AnonymousCredentials

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.core.decide import Reason
from forbear.read_modify_write import update
from forbear.services import iam, resource_manager
from forbear.testing.virtual_clock import virtual_time
from forbear_cloud import Cloud, Fault

ROLE = "roles/viewer"
HOST = "cloudresourcemanager.googleapis.com"
RESOURCES = ["v1/projects/p", "v2/folders/1", "v3/organizations/1", "v3/tagKeys/1"]


class Rerouted(httpx.BaseTransport):
    """A transport that sends the requests for any host to the cloud, over real sockets."""

    def __init__(self, cloud: Cloud) -> None:
        self._target = httpx.URL(cloud.url)
        self._inner = httpx.HTTPTransport(verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request on, with the cloud's own host."""
        url = request.url.copy_with(scheme="http", host=self._target.host, port=self._target.port)
        headers = {**request.headers, "host": self._target.netloc.decode()}
        return self._inner.handle_request(
            httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)
        )

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Cloud]:
    """The cloud of all tests here."""
    with Cloud() as running:
        yield running


@pytest.fixture
def cloud(shared: Cloud) -> Iterator[Cloud]:
    """A cloud without policies, faults and effects, in virtual time."""
    shared.reset()
    with virtual_time(5):
        yield shared


@pytest.fixture
def http(cloud: Cloud) -> Iterator[httpx.Client]:
    """A client that retries by the recommended policy of the host in each URL."""
    with httpx.Client(transport=RetryTransport(transport=Rerouted(cloud))) as client:
        yield client


def operation(resource: str, name: str = "setIamPolicy") -> str:
    """The operation of a resource, such as "cloudresourcemanager.folders.setIamPolicy"."""
    return f"cloudresourcemanager.{resource.split('/')[1]}.{name}"


def grant(http: httpx.Client, resource: str, member: str) -> dict[str, Any]:
    """Add a member to the policy of a resource, by the page's read-modify-write."""
    url = f"https://{HOST}/{resource}"

    def post(method: str, body: dict[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = http.post(f"{url}:{method}", json=body).raise_for_status().json()
        return document

    return update(
        read=lambda: post("getIamPolicy", {}),
        modify=lambda policy: {**policy, "bindings": [*policy["bindings"], {"role": ROLE, "members": [member]}]},
        write=lambda policy: post("setIamPolicy", {"policy": policy}),
        conflict=iam.is_conflict,
        mine=iam.has_member(ROLE, member),
        policy=resource_manager.policy,
    )


@pytest.mark.parametrize("resource", RESOURCES[:3])
@pytest.mark.parametrize("when", ["503 twice", "503 after", "reset before", "reset after", "aborted three times"])
def test_each_grant_is_made_once(cloud: Cloud, http: httpx.Client, resource: str, when: str) -> None:
    """Whatever happens to a write, the change is applied exactly once."""
    matching = operation(resource)
    fault = {
        "503 twice": Fault.status(503, times=2, operation=matching),
        "503 after": Fault.status(503, when="after", operation=matching),
        "reset before": Fault.reset(when="before", operation=matching),
        "reset after": Fault.reset(when="after", operation=matching),
        "aborted three times": Fault.status(409, reason="ABORTED", times=3, operation=matching),
    }[when]
    cloud.fault(fault)
    policy = grant(http, resource, "user:ada@example.com")
    assert policy["bindings"] == [{"role": ROLE, "members": ["user:ada@example.com"]}]
    assert cloud.effects.count(matching) == 1


@pytest.mark.parametrize("resource", RESOURCES)
def test_requests_by_their_host(cloud: Cloud, http: httpx.Client, resource: str) -> None:
    """Reads are repeated after a lost response, and a write with an etag, but none without."""
    url = f"https://{HOST}/{resource}"
    for name, body in (("getIamPolicy", {}), ("testIamPermissions", {"permissions": ["a.b.c"]})):
        cloud.fault(Fault.status(503, when="after", operation=operation(resource, name)))
        before = cloud.requests.total
        assert http.post(f"{url}:{name}", json=body).status_code == 200
        assert cloud.requests.total - before == 2
    cloud.fault(Fault.status(503, when="after", operation=operation(resource)))
    response = http.post(f"{url}:setIamPolicy", json={"policy": {"bindings": []}})
    report = forbear.report(response)
    assert response.status_code == 503
    assert report is not None
    assert report.reason is Reason.UNSAFE
    policy = http.post(f"{url}:getIamPolicy").json()
    cloud.fault(Fault.status(503, operation=operation(resource)))
    assert http.post(f"{url}:setIamPolicy", json={"policy": policy}).status_code == 200
    assert cloud.effects.count(operation(resource)) == 2


@pytest.mark.parametrize(("version", "kind"), [("v1", "projects"), ("v3", "folders"), ("v3", "organizations")])
def test_googles_client(cloud: Cloud, version: str, kind: str) -> None:
    """google-api-python-client in `forbear.update`: a lost response and another writer, and each change once."""
    options = google.api_core.client_options.ClientOptions(api_endpoint=cloud.url)
    with googleapiclient.discovery.build(
        "cloudresourcemanager",
        version,
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options=options,
        static_discovery=True,
    ) as client:
        calls = getattr(client, kind)()
        name = "p" if version == "v1" else f"{kind}/1"
        rivals = ["user:rival@example.com"]

        def read() -> dict[str, Any]:
            policy: dict[str, Any] = calls.getIamPolicy(resource=name, body={}).execute()
            return policy

        def modify(policy: dict[str, Any], member: str = "user:ada@example.com") -> dict[str, Any]:
            return {**policy, "bindings": [*policy.get("bindings", []), {"role": ROLE, "members": [member]}]}

        def write(policy: dict[str, Any]) -> dict[str, Any]:
            if rivals:  # another client is quicker
                calls.setIamPolicy(resource=name, body={"policy": modify(read(), rivals.pop())}).execute()
                cloud.fault(Fault.reset(when="after", skip=1, operation=f"cloudresourcemanager.{kind}.setIamPolicy"))
            written: dict[str, Any] = calls.setIamPolicy(resource=name, body={"policy": policy}).execute()
            return written

        mine = iam.has_member(ROLE, "user:ada@example.com")
        policy = update(
            read=read, modify=modify, write=write, conflict=iam.is_conflict, mine=mine, policy=resource_manager.policy
        )
    members = [member for binding in policy["bindings"] for member in binding["members"]]
    assert members == ["user:rival@example.com", "user:ada@example.com"]
    assert cloud.effects.count(f"cloudresourcemanager.{kind}.setIamPolicy") == 2
