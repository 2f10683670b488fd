"""Google's own clients under forbear and as they come: executions on real servers, over gRPC and REST.

`make clients` has all clients; the others tests' environment has a few of them.
"""

import asyncio
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from time import monotonic
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import grpc
import grpc.aio
import pytest
import requests
from google.api_core import exceptions
from google.api_core.retry import retry_unary

import forbear
from forbear.testing import virtual_time
from forbear.testing.proxy import Proxy
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rest_server import Fate
from forbear_testkit.clients.google.rest_server import running as running_rest
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.lazily import Library

bigquery: Any = Library("google.cloud.bigquery")
firestore: Any = Library("google.cloud.firestore")
pubsub: Any = Library("google.cloud.pubsub_v1")
FAILED = (exceptions.GoogleAPICallError, requests.RequestException, exceptions.RetryError)
DOCUMENTS = "projects/p/databases/(default)/documents"
QUEUE, TOPIC = "projects/p/locations/l/queues/q", "projects/p/topics/t"


@dataclass(frozen=True)
class Call:
    """A call of a client, how often its own retries execute it if the first response is UNAVAILABLE, and forbear's."""

    client: str
    method: str
    stock: int
    forbear: int
    request: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def kind(self) -> Any:
        """The class of the client."""
        module, _, name = self.client.rpartition(".")
        return getattr(Library(module), name)

    def over_grpc(self, target: str, *, install: bool = True) -> object:
        """Make the call, with forbear's retries or with those of the client."""
        with grpc.insecure_channel(target) as channel:
            client = self.kind(transport=self.kind.get_transport_class("grpc")(channel=channel))
            if install:
                forbear.install(client)
            return getattr(client, self.method)(self.request)

    def over_asyncio(self, target: str) -> object:
        """Make the call of the asyncio client."""

        async def run() -> object:
            async with grpc.aio.insecure_channel(target) as channel:
                module, _, name = self.client.rpartition(".")
                kind = getattr(Library(module), name.replace("Client", "AsyncClient"))
                client = kind(transport=self.kind.get_transport_class("grpc_asyncio")(channel=channel))
                return await getattr(forbear.install(client), self.method)(self.request)

        return asyncio.run(run())

    def over_rest(self, target: str) -> object:
        """Make the call over REST."""
        transport = self.kind.get_transport_class("rest")(host=target, credentials=ANONYMOUS, url_scheme="http")
        with self.kind(transport=transport) as client:
            return getattr(forbear.install(client), self.method)(self.request)


PUBLISHER, SUBSCRIBER = "google.pubsub_v1.PublisherClient", "google.pubsub_v1.SubscriberClient"
FIRESTORE = "google.cloud.firestore_v1.services.firestore.FirestoreClient"
SECRETS, TASKS = "google.cloud.secretmanager_v1.SecretManagerServiceClient", "google.cloud.tasks_v2.CloudTasksClient"
REDIS, POLICIES = "google.cloud.redis_v1.CloudRedisClient", "google.cloud.iam_v2.PoliciesClient"
PARALLEL = "google.cloud.parallelstore_v1.ParallelstoreClient"
CREATED = {"parent": f"{DOCUMENTS}/c/d", "collection_id": "c", "document": {}}
SECRET = {"parent": "projects/p", "secret": {"replication": {"automatic": {}}}}
TASK = {"http_request": {"url": "https://a.example"}}
INSTANCE = "projects/p/locations/l/instances/i"

CALLS = [
    # In the environment of the other tests.
    Call(POLICIES, "delete_policy", 2, 1, {"name": "policies/a/denypolicies/b"}),  # one that was made meanwhile
    Call(REDIS, "get_instance", 1, 2, {"name": INSTANCE}),
    Call(REDIS, "failover_instance", 1, 1, {"name": INSTANCE}),
    # A second message, and messages that nobody gets before their deadline.
    Call(PUBLISHER, "publish", 2, 1, {"topic": TOPIC, "messages": [{"data": b"x"}]}),
    Call(SUBSCRIBER, "pull", 2, 1, {"subscription": "projects/p/subscriptions/s", "max_messages": 1}),
    Call(PUBLISHER, "create_topic", 2, 2, {"name": TOPIC}),
    # A second document under another id of the server.
    Call(FIRESTORE, "create_document", 2, 1, CREATED),
    Call(FIRESTORE, "create_document", 2, 2, CREATED | {"document_id": "d"}),
    Call(FIRESTORE, "get_document", 2, 2, {"name": f"{DOCUMENTS}/c/d"}),
    # Its own retries give up what could be repeated; they repeat no call of this client that must not be.
    Call(SECRETS, "create_secret", 1, 2, SECRET | {"secret_id": "s"}),
    Call(SECRETS, "get_secret", 1, 2, {"name": "projects/p/secrets/s"}),
    Call(SECRETS, "add_secret_version", 1, 1, {"parent": "projects/p/secrets/s", "payload": {"data": b"x"}}),
    # The same for Cloud Tasks.
    Call(TASKS, "create_task", 1, 1, {"parent": QUEUE, "task": TASK}),
    Call(TASKS, "create_task", 1, 2, {"parent": QUEUE, "task": TASK | {"name": f"{QUEUE}/tasks/t"}}),
    Call(TASKS, "delete_task", 2, 2, {"name": f"{QUEUE}/tasks/t"}),
    # forbear fills the request_id, by which the service executes the call once.
    Call(PARALLEL, "import_data", 1, 2, {"name": INSTANCE}),
]
NAMES = [f"{call.client.rpartition('.')[2]}.{call.method}-{call.stock}-{call.forbear}" for call in CALLS]


def has(name: str) -> bool:
    """Return whether a client is installed: its module, without those above it being there, too."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    """One server for all tests."""
    with running() as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Server:
    """A server that has seen nothing yet."""
    for seen in (one_server.fates, one_server.calls, one_server.requests):
        seen.clear()
    one_server.replies = [b""]
    return one_server


@pytest.fixture(params=CALLS, ids=NAMES)
def call(request: pytest.FixtureRequest) -> Call:
    """One of the calls whose client is installed."""
    chosen: Call = request.param
    if not has(chosen.client.rpartition(".")[0]):
        pytest.skip("`make clients` has it")
    return chosen


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the retries of google-api-core wait for nothing."""

    def sleep(_: float) -> None:
        """Return at once."""

    monkeypatch.setattr(retry_unary, "time", SimpleNamespace(sleep=sleep, monotonic=monotonic))


def expect(executions: int, send: Callable[[], object]) -> None:
    """Make a call which succeeds if it is executed again, and fails if not."""
    with virtual_time(seed=1):
        if executions == 2:
            send()
        else:
            with pytest.raises(FAILED):
                send()


@pytest.mark.usefixtures("at_once")
def test_their_own_retries(server: Server, call: Call) -> None:
    """They execute some calls twice that must not be, and give up others that may be."""
    server.fail(UNAVAILABLE)
    expect(call.stock, lambda: call.over_grpc(server.target, install=False))
    assert len(server.calls) == call.stock


@pytest.mark.parametrize("style", ["over_grpc", "over_asyncio"])
def test_unavailable_after_it_was_executed(server: Server, call: Call, style: str) -> None:
    """The code says nothing of what was executed."""
    server.fail(UNAVAILABLE)
    expect(call.forbear, lambda: getattr(call, style)(server.target))
    assert len(server.calls) == call.forbear


@contextmanager
def losing(server: Server) -> Generator[str]:
    """Lose the first response, together with its connection."""
    lost = list[bytes]()

    def cut(_: bytes, response: bytes | None) -> bool:
        if response is None or not server.calls or lost:
            return False
        lost.append(response)
        return True

    host, port = server.target.split(":")
    with Proxy((host, int(port)), cut) as proxy:
        yield f"{proxy.host}:{proxy.port}"


@pytest.mark.parametrize("style", ["over_grpc", "over_asyncio"])
def test_a_lost_response(server: Server, call: Call, style: str) -> None:
    """The call was executed, and its connection breaks."""
    with losing(server) as target:
        expect(call.forbear, lambda: getattr(call, style)(target))
    assert len(server.calls) == call.forbear


@pytest.mark.parametrize("fate", [Fate(503, executed=True), Fate(breaks="reset", executed=True)], ids=["503", "lost"])
def test_over_rest(call: Call, fate: Fate) -> None:
    """The same judgement."""
    with running_rest() as server:
        server.fail(fate)
        expect(call.forbear, lambda: call.over_rest(server.host))
        assert len(server.executed) == call.forbear


@pytest.mark.parametrize("style", ["over_grpc", "over_asyncio", "over_rest"])
def test_a_refused_connection(call: Call, style: str) -> None:
    """Over REST it proves that nothing was executed; without the channel, gRPC's error does not."""
    with socket.socket() as reserved, virtual_time(seed=1):
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(FAILED) as caught:
            getattr(call, style)(f"127.0.0.1:{reserved.getsockname()[1]}")
    report = forbear.report(caught.value)
    assert report is not None
    assert (len(report.attempts) > 1) == (style == "over_rest" or call.forbear == 2)


needs_google = pytest.mark.skipif(not has("google.cloud.pubsub_v1"), reason="`make clients` has it")


@needs_google
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("installed", [False, True])
def test_a_message_of_a_batch_is_published_once(server: Server, *, installed: bool) -> None:
    """The publisher sends its batches in a thread; by itself it publishes them twice."""
    server.replies = [b"\x0a\x011"]
    server.fail(UNAVAILABLE)
    with grpc.insecure_channel(server.target) as channel:
        kind = Library("google.pubsub_v1").PublisherClient.get_transport_class("grpc")
        publisher = pubsub.PublisherClient(transport=kind(channel=channel))
        if installed:
            forbear.install(publisher)
        future = publisher.publish(TOPIC, b"x")
        if installed:
            with pytest.raises(exceptions.ServiceUnavailable):
                future.result(timeout=30)
        else:
            assert future.result(timeout=30) == "1"
    assert server.calls == ["Publish"] * (1 if installed else 2)


@needs_google
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("installed", [False, True])
def test_a_document_is_counted_up_once(server: Server, monkeypatch: pytest.MonkeyPatch, *, installed: bool) -> None:
    """The client of documents commits; by itself it repeats a commit that was executed."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.target)
    server.replies = [b"\x0a\x00"]  # one write has a result
    server.fail(UNAVAILABLE)
    client = firestore.Client(project="p", credentials=ANONYMOUS)
    if installed:
        assert forbear.install(client) is client
    document = client.collection("c").document("d")
    expect(1 if installed else 2, lambda: document.update({"n": firestore.Increment(1)}))
    client.close()
    assert server.calls == ["Commit"] * (1 if installed else 2)


@needs_google
@pytest.mark.parametrize("style", ["over_grpc", "over_asyncio"])
def test_the_request_id_that_is_filled(server: Server, style: str) -> None:
    """All attempts send the same one."""
    server.fail(UNAVAILABLE)
    call = next(call for call in CALLS if call.client == PARALLEL)
    with virtual_time(seed=1):
        getattr(call, style)(server.target)
    messages: Any = Library("google.cloud.parallelstore_v1")
    first, second = [messages.ImportDataRequest.deserialize(each).request_id for each in server.requests]
    assert first == second
    assert UUID(first).version == 4


ROW = [{"a": 1}]
BIGQUERY: list[tuple[str, tuple[Any, ...], dict[str, Any], int, int, int]] = [
    ("insert_rows_json", ("p.d.t", ROW), {"row_ids": [None]}, 503, 2, 1),  # a second row
    ("get_table", ("p.d.t",), {}, 504, 1, 2),  # 504 is not in its list
    ("create_table", ("p.d.t",), {}, 503, 2, 1),
]


@needs_google
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("method", "arguments", "options", "status", "stock", "ours"), BIGQUERY)
@pytest.mark.parametrize("how", ["stock", "forbear", "lost", "refused"])
def test_bigquery(
    method: str, arguments: tuple[Any, ...], options: dict[str, Any], status: int, stock: int, ours: int, how: str
) -> None:
    """Its own retries, and those of a function with `retry=None` in the call."""
    fate = Fate(breaks="reset", executed=True) if how == "lost" else Fate(status, executed=True)
    with running_rest() as server:
        server.content = b'{"tableReference": {"projectId": "p", "datasetId": "d", "tableId": "t"}}'
        server.fail(fate)
        refused = server.host.replace("127.0.0.1", "127.0.0.2")  # where nobody listens
        url = f"http://{refused if how == 'refused' else server.host}"
        client = bigquery.Client(project="p", credentials=ANONYMOUS, client_options={"api_endpoint": url})
        call = getattr(client, method)
        if how == "stock":
            expect(stock, lambda: call(*arguments, **options))
            assert len(server.executed) == stock
        elif how == "refused":
            with virtual_time(seed=1) as time, pytest.raises(FAILED):
                forbear.retry(forbear.transient, attempts=3).call(call, *arguments, **options, retry=None)
            assert (len(time.slept), server.requests) == (2, [])
        else:
            retried = forbear.retry(forbear.transient)
            expect(ours, lambda: retried.call(call, *arguments, **options, retry=None))
            assert len(server.executed) == ours
        client.close()
