"""Writes of Google's APIs by rows and list: executions on a real server, sync and asyncio, and in functions."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import pytest

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.testing import virtual_time
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import Server, running

CREATE = "google.cloud.tasks.v2.CloudTasks/CreateTask"
QUERY = "google.cloud.bigquery.v2.JobService/Query"
SECRETS, PUBSUB = "google.cloud.secretmanager.v1.SecretManagerService", "google.pubsub.v1"
SECRET, MASK = "projects/p/secrets/s", {"paths": ["labels"]}
KEY = "7d9f3a52-6f0b-4b7e-9a37-0e4b1f6f6f11"
Message = dict[str, Any]
Send = Callable[[str, str, Message], object]


def call(target: str, name: str, message: Message) -> object:
    """Call an RPC with a message as JSON, on a sync channel."""
    with grpc.insecure_channel(target) as plain:
        channel: Any = grpc.intercept_channel(plain, RetryInterceptor(timeout=7200))
        return channel.unary_unary(f"/{name}", request_serializer=as_json)(message)


def acall(target: str, name: str, message: Message) -> object:
    """The same on an asyncio channel."""

    async def run() -> object:
        async with grpc.aio.insecure_channel(target, interceptors=aio_interceptors(timeout=7200)) as opened:
            channel: Any = opened
            return await channel.unary_unary(f"/{name}", request_serializer=as_json)(message)

    return asyncio.run(run())


def as_json(message: Message) -> bytes:
    """Return a message as JSON, by which the server tells the requests apart."""
    return json.dumps(message).encode()


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Send:
    """One of the two styles."""
    chosen: Send = request.param
    return chosen


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends calls as the test says."""
    with running() as server:
        yield server


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (CREATE, {"task": {"name": "projects/p/tasks/t"}}),
        ("google.firestore.v1.Firestore/UpdateDocument", {"document": {"name": "projects/p/documents/d"}}),
        ("google.firestore.v1.Firestore/RunQuery", {"structured_query": {}}),
        (QUERY, {"query_request": {"query": "INSERT", "request_id": KEY}}),
        ("google.cloud.compute.v1.Instances/Delete", {"instance": "i", "request_id": KEY}),
        ("google.cloud.compute.v1.Instances/Insert", {"project": "p", "request_id": KEY}),
        (f"{SECRETS}/CreateSecret", {"parent": "projects/p", "secret_id": "s"}),
        (f"{SECRETS}/DeleteSecret", {"name": SECRET, "etag": "e"}),
        (f"{SECRETS}/UpdateSecret", {"update_mask": MASK, "secret": {"name": SECRET, "etag": "e"}}),
        (f"{PUBSUB}.Publisher/CreateTopic", {"name": "projects/p/topics/t"}),
        (f"{PUBSUB}.Publisher/UpdateTopic", {"topic": {"name": "projects/p/topics/t"}, "update_mask": MASK}),
        (f"{PUBSUB}.Subscriber/DeleteSubscription", {"subscription": "projects/p/subscriptions/s"}),
    ],
)
def test_a_write_that_a_rule_allows_is_repeated(server: Server, send: Send, name: str, message: Message) -> None:
    """The same request is executed again, with its id, key or etag."""
    server.fail(UNAVAILABLE)
    with virtual_time(seed=1):
        send(server.target, name, message)
    assert server.requests == [as_json(message)] * 2


@pytest.mark.parametrize(
    ("name", "message", "condition"),
    [
        (CREATE, {"parent": "projects/p/queues/q"}, "task.name"),
        ("google.firestore.v1.Firestore/UpdateDocument", {"document": {}}, "document.name"),
        ("google.firestore.v1.Firestore/RunQuery", {"new_transaction": {"read_write": {}}}, "no transaction"),
        ("google.firestore.v1.Firestore/Commit", {"writes": []}, None),
        (QUERY, {"query_request": {"query": "INSERT", "request_id": ""}}, "query_request.request_id"),
        ("google.cloud.compute.v1.Instances/Delete", {"instance": "i"}, "request_id"),
        ("google.cloud.compute.v1.Instances/Insert", {"project": "p", "request_id": ""}, "request_id"),
        (f"{SECRETS}/CreateSecret", {"secret_id": ""}, "secret_id"),
        (f"{SECRETS}/DeleteSecret", {"name": SECRET}, "name of one resource and etag"),
        (f"{SECRETS}/UpdateSecret", {"update_mask": MASK, "secret": {}}, "update_mask and secret.etag"),
        (f"{PUBSUB}.Subscriber/DeleteSubscription", {"subscription": "projects/-/subscriptions/s"}, "subscription"),
        (f"{PUBSUB}.Publisher/Publish", {"topic": "projects/p/topics/t"}, None),
        (
            "google.cloud.secretmanager.v1.SecretManagerService/AddSecretVersion",
            {"parent": "projects/p/secrets/s"},
            None,
        ),
    ],
)
def test_any_other_write_is_executed_once(
    server: Server, send: Send, name: str, message: Message, condition: str | None
) -> None:
    """The note names the condition that is missing, or has the line that vouches."""
    server.fail(UNAVAILABLE)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server.target, name, message)
    assert len(server.calls) == 1
    note = caught.value.__notes__[0]
    assert (f"only with {condition}" if condition else f'safe="/{name}"') in note


def test_a_conflict_of_its_own_making_is_told(server: Server, send: Send) -> None:
    """The second attempt finds the task that the first one made."""
    server.fail(UNAVAILABLE)
    server.fail(grpc.StatusCode.ALREADY_EXISTS)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server.target, CREATE, {"task": {"name": "projects/p/tasks/t"}})
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


@pytest.mark.parametrize(("seconds", "calls"), [(600, 2), (820, 1)])
def test_a_key_is_not_used_longer_than_the_server_knows_it(
    server: Server, send: Send, seconds: int, calls: int
) -> None:
    """BigQuery knows the request_id of a query for 15 minutes; a tenth is left for clocks and connections."""
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", f"{seconds * 1000}"),))
    with virtual_time(seed=1):
        try:
            send(server.target, QUERY, {"query_request": {"query": "INSERT", "request_id": KEY}})
        except grpc.RpcError:
            assert calls == 1
    assert len(server.calls) == calls


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_name_that_each_attempt_draws_anew(server: Server, is_drawn: bool) -> None:
    """Each attempt would create another task."""

    @forbear.retry(on=forbear.transient)
    def create(name: str) -> object:
        with grpc.insecure_channel(server.target) as plain:
            channel: Any = plain
            message = {"task": {"name": f"t-{uuid4()}" if is_drawn else name}}
            return channel.unary_unary(f"/{CREATE}", request_serializer=as_json)(message)

    server.fail(UNAVAILABLE)
    with virtual_time(seed=1):
        try:
            create(f"t-{uuid4()}")
        except grpc.RpcError:
            assert is_drawn
    assert len(server.calls) == (1 if is_drawn else 2)
