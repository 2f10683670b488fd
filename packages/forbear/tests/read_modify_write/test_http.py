"""An update around an HTTP client that retries by itself: what it gave up on, and why, leads to the right thing."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from forbear.clients.httpx import RetryTransport
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import Policy, retry
from forbear.read_modify_write import update
from forbear.services import cloud_storage, iam
from forbear.testing.virtual_clock import virtual_time
from forbear_cloud import Cloud, Fault

Resource = dict[str, Any]
Clients = Callable[..., httpx.Client]

ROLE, MEMBER = "roles/viewer", "user:me@example.com"
PROJECT = "/v1/projects/p"
ACCOUNT = "/v1/projects/p/serviceAccounts/worker@p.iam.gserviceaccount.com"
SET_PROJECT, SET_ACCOUNT = "cloudresourcemanager.projects.setIamPolicy", "iam.projects.serviceAccounts.setIamPolicy"
has_me = iam.has_member(ROLE, MEMBER)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A cloud with a service account and a bucket."""
    with Cloud() as running:
        running.store.iam.create_account("p", "worker")
        running.store.create_bucket("bkt")
        yield running


@pytest.fixture
def clients(cloud: Cloud) -> Iterator[Clients]:
    """Makes clients that retry by a policy, None for that of whatever service they talk to."""
    made: list[httpx.Client] = []

    def make(policy: Policy | None = None, buffer: int = 2**20) -> httpx.Client:
        transport = RetryTransport(policy, transport=httpx.HTTPTransport(verify=False), buffer=buffer)
        made.append(httpx.Client(base_url=cloud.url, transport=transport))
        return made[-1]

    with virtual_time(5):
        yield make
    for client in made:
        client.close()


def json_of(reply: httpx.Response) -> Resource:
    """The JSON of a success."""
    reply.raise_for_status()
    found: Resource = reply.json()
    return found


def grant(http: httpx.Client, path: str, *, mine: bool) -> Resource:
    """Add the member to a policy."""
    return update(
        read=lambda: json_of(http.post(f"{path}:getIamPolicy")),
        modify=lambda policy: {**policy, "bindings": [*policy["bindings"], {"role": ROLE, "members": [MEMBER]}]},
        write=lambda policy: json_of(http.post(f"{path}:setIamPolicy", json={"policy": policy})),
        conflict=iam.is_conflict,
        mine=has_me if mine else None,
        policy=iam.policy,
    )


def label(http: httpx.Client, *, mine: bool, stream: bool = False, policy: Policy = cloud_storage.policy) -> Resource:
    """Add a label to the bucket."""
    path = "/storage/v1/b/bkt"

    def write(bucket: Resource) -> Resource:
        body = httpx.Request("POST", "/", json={"labels": bucket["labels"]}).content
        condition = {"ifMetagenerationMatch": bucket["metageneration"]}
        return json_of(http.patch(path, params=condition, content=iter([body]) if stream else body))

    return update(
        read=lambda: json_of(http.get(path)),
        modify=lambda bucket: {**bucket, "labels": {**bucket.get("labels", {}), "me": "1"}},
        write=write,
        conflict=cloud_storage.is_conflict,
        mine=(lambda bucket: "me" in bucket.get("labels", {})) if mine else None,
        policy=policy,
    )


def outcome(cloud: Cloud, operation: str, change: Callable[[], Resource]) -> tuple[int, Reason | None, bool]:
    """Return how often the change was made, and what the report of the error says, if one was raised."""
    try:
        change()
    except httpx.HTTPError as error:
        found = report(error)
        assert found is not None
        return cloud.effects.count(operation), found.reason, found.maybe_done
    return cloud.effects.count(operation), None, False


@pytest.mark.parametrize("fault", [Fault.status(503, when="after", operation="storage.buckets.patch"),
                                   Fault.reset(when="after", operation="storage.buckets.patch"),
                                   Fault.truncate(3, operation="storage.buckets.patch")],
                         ids=lambda fault: fault.name)  # fmt: skip
def test_a_412_after_the_clients_own_retry(cloud: Cloud, clients: Clients, fault: Fault) -> None:
    """The client repeated a guarded write whose response was lost, or lost half a response: the update sees it done."""
    cloud.fault(fault)
    assert outcome(cloud, "storage.buckets.patch", lambda: label(clients(cloud_storage.policy), mine=True)) == (
        1,
        None,
        False,
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_409_after_the_clients_own_retry(cloud: Cloud, clients: Clients, when: Any) -> None:
    """A conflict on the second attempt may be with the first: with `mine` it is known, without it is an error."""
    http = clients(iam.policy)
    cloud.fault(Fault.status(503, when=when, operation=SET_ACCOUNT))
    assert outcome(cloud, SET_ACCOUNT, lambda: grant(http, ACCOUNT, mine=True)) == (1, None, False)
    cloud.fault(Fault.status(503, when=when, operation=SET_ACCOUNT))
    expected = (2, Reason.UNSAFE, True) if when == "after" else (2, None, False)
    assert outcome(cloud, SET_ACCOUNT, lambda: grant(http, ACCOUNT, mine=False)) == expected


def test_a_write_that_the_client_dared_not_repeat(cloud: Cloud, clients: Clients) -> None:
    """A POST to an API that the client does not know is not repeated by it; the update looks first."""
    cloud.fault(Fault.reset(when="after", operation=SET_PROJECT), Fault.status(502, skip=1, operation=SET_PROJECT))
    assert outcome(cloud, SET_PROJECT, lambda: grant(clients(), PROJECT, mine=True)) == (1, None, False)
    cloud.clear_faults()
    cloud.fault(Fault.reset(when="after", operation=SET_PROJECT))
    assert outcome(cloud, SET_PROJECT, lambda: grant(clients(), PROJECT, mine=False)) == (2, Reason.UNSAFE, True)


def test_somebody_else_was_quicker(cloud: Cloud, clients: Clients) -> None:
    """A conflict on the first attempt is somebody else's doing: the whole cycle runs again, with `mine` or without."""
    http = clients(iam.policy)
    stale = json_of(http.post(f"{ACCOUNT}:getIamPolicy"))
    json_of(http.post(f"{ACCOUNT}:setIamPolicy", json={"policy": stale}))
    given = [stale]

    def read() -> Resource:
        return given.pop() if given else json_of(http.post(f"{ACCOUNT}:getIamPolicy"))

    def write(policy: Resource) -> Resource:
        return json_of(http.post(f"{ACCOUNT}:setIamPolicy", json={"policy": policy}))

    update(read=read, modify=lambda policy: policy, write=write, conflict=iam.is_conflict, policy=iam.policy)
    assert cloud.requests.count(SET_ACCOUNT) == 3
    assert cloud.effects.count(SET_ACCOUNT) == 2


def test_a_body_that_the_client_could_not_send_again(cloud: Cloud, clients: Clients) -> None:
    """A stream can be read once; the next cycle makes a new one, even if its policy does not know the error."""
    cloud.fault(Fault.status(503, operation="storage.buckets.patch"))
    http = clients(cloud_storage.policy, buffer=0)

    def change() -> Resource:
        return label(http, mine=True, stream=True, policy=retry(on=KeyError))

    assert outcome(cloud, "storage.buckets.patch", change) == (1, None, False)


@pytest.mark.parametrize("mine", [True, False])
def test_an_outage_that_the_client_sat_out_in_vain(cloud: Cloud, clients: Clients, mine: bool) -> None:
    """A read on which the client spent its whole timeout is not tried again, and of a write the report says maybe."""
    cloud.fault(Fault.status(503, operation=SET_ACCOUNT, times=None))
    assert outcome(cloud, SET_ACCOUNT, lambda: grant(clients(iam.policy), ACCOUNT, mine=mine)) == (
        0,
        Reason.TIMEOUT,
        True,
    )
    assert cloud.requests.count("iam.projects.serviceAccounts.getIamPolicy") == 1
