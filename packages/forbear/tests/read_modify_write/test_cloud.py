"""Thirty writers of one resource over real sockets, under random faults: every change is applied exactly once."""

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx
import pytest

from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.policy import Policy
from forbear.read_modify_write import aupdate, update
from forbear.run.runtime import FastClock, current
from forbear.services import cloud_storage, iam
from forbear_cloud import Cloud, Fault, random_faults

Resource = dict[str, Any]

WRITERS = 20
ROLE = "roles/iam.serviceAccountUser"
ACCOUNT = "/v1/projects/p/serviceAccounts/worker@p.iam.gserviceaccount.com"
BUCKET = "/storage/v1/b/bkt"
FACTOR = 200
"""The factor by which the clients' clocks run faster."""


class Kind(NamedTuple):
    """A kind of resource: how it is read and written, and how each writer changes it."""

    name: str
    read: Callable[[], httpx.Request]
    write: Callable[[Resource], httpx.Request]
    add: Callable[[Resource, int], Resource]
    has: Callable[[int], Callable[[Resource], bool]]
    changes: Callable[[Cloud], list[int]]
    operation: str
    conflict: Callable[[Exception], bool]
    policy: Policy


def add_member(policy: Resource, writer: int) -> Resource:
    """Grant the role to a writer, once more if it has it already."""
    members = [member for binding in policy["bindings"] for member in binding["members"]]
    return {**policy, "bindings": [{"role": ROLE, "members": [*members, f"user:{writer}@example.com"]}]}


def add_label(bucket: Resource, writer: int) -> Resource:
    """Count the writers in a label, and name them in others."""
    labels = bucket.get("labels", {})
    return {**bucket, "labels": {**labels, f"w{writer}": "", "count": str(int(labels.get("count", "0")) + 1)}}


def members(cloud: Cloud) -> list[int]:
    """The writers in the policy."""
    account = cloud.store.iam.account("p", ACCOUNT.rpartition("/")[2])
    bindings: Any = account.policy.body["bindings"]
    return [int(member[5:].partition("@")[0]) for binding in bindings for member in binding["members"]]


def labels(cloud: Cloud) -> list[int]:
    """The writers in the labels, which agree with the count."""
    found: Any = cloud.store.bucket("bkt").fields["labels"]
    assert int(found["count"]) == len(found) - 1
    return [int(label[1:]) for label in found if label != "count"]


def read_policy() -> httpx.Request:
    """Ask for the policy."""
    return httpx.Request("POST", f"{ACCOUNT}:getIamPolicy")


def write_policy(policy: Resource) -> httpx.Request:
    """Write the policy under its etag."""
    return httpx.Request("POST", f"{ACCOUNT}:setIamPolicy", json={"policy": policy})


def read_bucket() -> httpx.Request:
    """Ask for the bucket."""
    return httpx.Request("GET", BUCKET)


def write_bucket(bucket: Resource) -> httpx.Request:
    """Write the labels under the metageneration."""
    condition = {"ifMetagenerationMatch": bucket["metageneration"]}
    return httpx.Request("PATCH", BUCKET, params=condition, json={"labels": bucket["labels"]})


def is_member(writer: int) -> Callable[[Resource], bool]:
    """Return whether a policy has the writer."""
    return iam.has_member(ROLE, f"user:{writer}@example.com")


def is_label(writer: int) -> Callable[[Resource], bool]:
    """Return whether a bucket has the writer."""
    return lambda bucket: f"w{writer}" in bucket.get("labels", {})


SET = "iam.projects.serviceAccounts.setIamPolicy"
PATCH = "storage.buckets.patch"
KINDS = [
    Kind("policy", read_policy, write_policy, add_member, is_member, members, SET, iam.is_conflict, iam.policy),
    Kind("bucket", read_bucket, write_bucket, add_label, is_label, labels, PATCH, cloud_storage.is_conflict,
         cloud_storage.policy),
]  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A cloud with a service account and a bucket, where a third of all requests fail."""
    with Cloud() as running:
        running.store.create_bucket("bkt")
        running.store.iam.create_account("p", "worker")
        running.fault(
            random_faults(3, unavailable=0.05, throttled=0.05, reset_before=0.05, reset_after=0.08, truncated=0.05),
            Fault.status(503, when="after", probability=0.05, times=None),
        )
        yield running


def patient(policy: Policy) -> Policy:
    """A policy that has the time for thirty writers on a busy machine, at the pace of the clients' clocks."""
    return policy.with_timeout(100 * FACTOR).with_attempts(None)


def check(cloud: Cloud, kind: Kind) -> None:
    """Every change is there, and was made once."""
    assert sorted(kind.changes(cloud)) == list(range(WRITERS))
    assert cloud.effects.count(kind.operation) == WRITERS
    failed = sum(request.fault is not None for request in cloud.requests)
    assert failed > WRITERS / 2


@every_kind
def test_thirty_threads_lose_no_change(cloud: Cloud, kind: Kind) -> None:
    """Thirty threads change one resource, each in a run of its own."""
    limits = httpx.Limits(max_connections=WRITERS)
    transport = RetryTransport(patient(kind.policy), transport=httpx.HTTPTransport(limits=limits, verify=False))

    with httpx.Client(transport=transport, timeout=60) as http:

        def send(request: httpx.Request) -> Resource:
            reply = http.request(request.method, f"{cloud.url}{request.url.raw_path.decode()}", content=request.content)
            reply.raise_for_status()
            found: Resource = reply.json()
            return found

        def change(writer: int) -> Resource:
            return update(
                read=lambda: send(kind.read()),
                modify=lambda resource: kind.add(resource, writer),
                write=lambda resource: send(kind.write(resource)),
                conflict=kind.conflict,
                mine=kind.has(writer),
                policy=patient(kind.policy),
            )

        token = current.set(FastClock(FACTOR))
        with ThreadPoolExecutor(WRITERS) as pool:
            runs = [pool.submit(contextvars.copy_context().run, change, writer) for writer in range(WRITERS)]
        current.reset(token)
    for writer, run in enumerate(runs):
        assert kind.has(writer)(run.result())
    check(cloud, kind)


@every_kind
async def test_thirty_tasks_lose_no_change(cloud: Cloud, kind: Kind) -> None:
    """Thirty tasks change one resource, each in a run of its own."""
    limits = httpx.Limits(max_connections=WRITERS)
    transport = AsyncRetryTransport(
        patient(kind.policy), transport=httpx.AsyncHTTPTransport(limits=limits, verify=False)
    )

    async with httpx.AsyncClient(transport=transport, timeout=60) as http:

        async def send(request: httpx.Request) -> Resource:
            reply = await http.request(
                request.method, f"{cloud.url}{request.url.raw_path.decode()}", content=request.content
            )
            reply.raise_for_status()
            found: Resource = reply.json()
            return found

        async def change(writer: int) -> Resource:
            return await aupdate(
                read=lambda: send(kind.read()),
                modify=lambda resource: kind.add(resource, writer),
                write=lambda resource: send(kind.write(resource)),
                conflict=kind.conflict,
                mine=kind.has(writer),
                policy=patient(kind.policy),
            )

        token = current.set(FastClock(FACTOR))
        resources = await asyncio.gather(*(change(writer) for writer in range(WRITERS)))
        current.reset(token)
    assert all(kind.has(writer)(resource) for writer, resource in enumerate(resources))
    check(cloud, kind)
