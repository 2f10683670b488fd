"""`settle=` over gRPC: a Get says what became of a Create or Delete, on a real server, sync and asyncio."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, NotFound
from google.cloud import secretmanager_v1
from google.cloud.secretmanager_v1.services.secret_manager_service import transports
from google.protobuf import empty_pb2
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

import forbear
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.exchange.grpc import Rpc
from forbear.exchange.settling import RpcReadBack
from forbear.grpc.call import GrpcCall, to_raw
from forbear.run.scope import OwnWrites
from forbear.services.rpcs.settling import plan_read
from forbear.testing import virtual_time
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.rest_server import Fate
from forbear_testkit.clients.google.rest_server import running as running_rest
from forbear_testkit.clients.google.secret_server import SERVICE, SecretServer, running

NAME = "projects/p/secrets/s"
Message = dict[str, Any]
CREATE: Message = {
    "parent": "projects/p",
    "secret_id": "s",
    "secret": {"labels": {"by": "us"}, "replication": {"automatic": {}}},
}
DELETE: Message = {"name": NAME, "etag": "e"}
ALIKE: Message = {"labels": {"by": "us"}, "replication": {"automatic": {}}}
Send = Callable[..., Any]


def send(server: SecretServer, method: str, request: Message, **options: Any) -> Any:
    """Make one call on a sync channel with an interceptor."""
    with grpc.insecure_channel(server.target) as plain:
        channel = grpc.intercept_channel(plain, RetryInterceptor(**options))
        transport = transports.SecretManagerServiceGrpcTransport(channel=channel)
        return getattr(secretmanager_v1.SecretManagerServiceClient(transport=transport), method)(request, retry=None)


def asend(server: SecretServer, method: str, request: Message, **options: Any) -> Any:
    """The same with asyncio."""

    async def run() -> Any:
        async with grpc.aio.insecure_channel(server.target, interceptors=aio_interceptors(**options)) as channel:
            transport = transports.SecretManagerServiceGrpcAsyncIOTransport(channel=channel)
            client = secretmanager_v1.SecretManagerServiceAsyncClient(transport=transport)
            return await getattr(client, method)(request, retry=None)

    return asyncio.run(run())


def send_installed(server: SecretServer, method: str, request: Message, **options: Any) -> Any:
    """The same with a client that has forbear's retries."""
    with grpc.insecure_channel(server.target) as channel:
        transport = transports.SecretManagerServiceGrpcTransport(channel=channel)
        client = forbear.install(secretmanager_v1.SecretManagerServiceClient(transport=transport), **options)
        return getattr(client, method)(request)


def asend_installed(server: SecretServer, method: str, request: Message, **options: Any) -> Any:
    """The same with asyncio."""

    async def run() -> Any:
        async with grpc.aio.insecure_channel(server.target) as channel:
            transport = transports.SecretManagerServiceGrpcAsyncIOTransport(channel=channel)
            client = forbear.install(secretmanager_v1.SecretManagerServiceAsyncClient(transport=transport), **options)
            return await getattr(client, method)(request)

    return asyncio.run(run())


WAYS: dict[str, Send] = {"sync": send, "aio": asend, "installed": send_installed, "installed aio": asend_installed}


@pytest.fixture(params=WAYS)
def call(request: pytest.FixtureRequest) -> Send:
    """One of the ways to make a call."""
    return WAYS[request.param]


@pytest.fixture(scope="module")
def running_server() -> Iterator[SecretServer]:
    """One server for all tests."""
    with running() as server:
        yield server


@pytest.fixture
def server(running_server: SecretServer) -> SecretServer:
    """That server without any secret."""
    running_server.reset()
    return running_server


def put(server: SecretServer, fields: Message = ALIKE) -> None:
    """Let somebody else create the secret."""
    server.secrets[NAME] = secretmanager_v1.Secret(name=NAME, etag="e", **fields)


def test_a_create_of_our_own_is_done(server: SecretServer, call: Send) -> None:
    """The caller gets the resource, and the event says how that is known; the read has the call's own metadata."""
    server.faults.append("after")
    events: list[Any] = []
    with virtual_time(seed=1):
        secret = call(server, "create_secret", CREATE, settle=True, on_event=events.append)
    assert (secret.name, secret.labels["by"]) == (NAME, "us")
    assert (server.calls, server.executed) == (["CreateSecret", "CreateSecret", "GetSecret"], ["CreateSecret"])
    assert (type(events[-1]), events[-1].settled, events[-1].attempt) == (forbear.events.Recovered, True, 2)
    routes = [each["x-goog-request-params"] for each in server.metadata]
    assert routes == ["parent=projects/p", "parent=projects/p", f"name={NAME}"]
    assert server.metadata[2]["x-goog-api-client"] == server.metadata[0]["x-goog-api-client"]


def test_a_delete_of_our_own_is_done(server: SecretServer, call: Send) -> None:
    """Nothing has the name any more."""
    put(server)
    server.faults.append("after")
    with virtual_time(seed=1):
        assert call(server, "delete_secret", DELETE, settle=f"/{SERVICE}/Delete*") is None
    assert (server.calls, server.executed) == (["DeleteSecret", "DeleteSecret", "GetSecret"], ["DeleteSecret"])


def never(call: GrpcCall) -> bool:
    """A word that covers no call."""
    return False


@pytest.mark.parametrize(
    ("settle", "calls"),
    [(False, 2), (f"/{SERVICE}/Delete*", 2), (never, 2), (True, 3)],
)
def test_any_doubt_leaves_the_conflict(server: SecretServer, call: Send, settle: Any, calls: int) -> None:
    """Without the user's word nothing is read; a resource that is another one proves nothing."""
    server.faults.append("before")
    server.between = lambda method: put(server, ALIKE | {"labels": {"by": "them"}})
    with virtual_time(seed=1), pytest.raises((AlreadyExists, grpc.RpcError)) as caught:
        call(server, "create_secret", CREATE, settle=settle)
    assert len(server.calls) == calls
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.maybe_done, report.settled) == (True, False)


@pytest.mark.parametrize("code", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE])
def test_a_read_that_fails_leaves_the_conflict(server: SecretServer, call: Send, code: grpc.StatusCode) -> None:
    """It is sent once, and its own error is not shown."""
    put(server)
    server.faults.append("after")
    server.fail_reads = code
    with virtual_time(seed=1), pytest.raises((NotFound, grpc.RpcError)) as caught:
        call(server, "delete_secret", DELETE, settle=True)
    assert code_of(caught.value) == "NOT_FOUND"
    assert server.calls == ["DeleteSecret", "DeleteSecret", "GetSecret"]


def code_of(error: Any) -> str:
    """Return the name of the code of an error of gRPC, or of a client of Google."""
    code: Any = error.grpc_status_code if isinstance(error, GoogleAPICallError) else error.code()
    return str(code.name)


def alter(name: str, value: Any) -> Callable[[Any], None]:
    """Return a function that changes a field of a secret."""
    return lambda secret: setattr(secret, name, value)


@pytest.mark.parametrize(
    "change",
    [
        alter("labels", {"by": "US"}),
        alter("labels", {"by": "us", "more": "x"}),
        alter("annotations", {"a": "x" * 2**20}),
    ],
    ids=["another value", "one more entry", "too large"],
)
def test_another_resource_leaves_the_conflict(server: SecretServer, call: Send, change: Callable[[Any], None]) -> None:
    """A server may write a value in another way: then nothing is known."""
    server.faults.append("after")
    server.change = change
    with virtual_time(seed=1), pytest.raises((AlreadyExists, grpc.RpcError)):
        call(server, "create_secret", CREATE, settle=True)
    assert server.calls[2:] == ["GetSecret"]


def test_a_new_resource_of_the_name_leaves_the_conflict(server: SecretServer, call: Send) -> None:
    """R2: ours is gone, and before the read somebody makes another one."""
    put(server)
    server.faults.append("after")
    server.between = lambda method: put(server) if method == "GetSecret" else None
    with virtual_time(seed=1), pytest.raises((NotFound, grpc.RpcError)):
        call(server, "delete_secret", DELETE, settle=True)


def test_a_first_conflict_is_no_doubt(server: SecretServer, call: Send) -> None:
    """No attempt of ours was before it, so nothing is read."""
    put(server)
    with virtual_time(seed=1), pytest.raises((AlreadyExists, grpc.RpcError)):
        call(server, "create_secret", CREATE, settle=True)
    assert server.calls == ["CreateSecret"]


def is_mine(sent: Any, read: Any) -> bool:
    """The recipe of the documentation: a mark that only this write has."""
    return bool(sent.labels["by"] == read.labels.get("by"))


def test_the_user_s_function_decides_alone(server: SecretServer, call: Send) -> None:
    """It gets the messages of the client; what it gives must be a bool."""
    server.change = alter("labels", {"by": "us", "more": "x"})
    server.faults.append("after")
    with virtual_time(seed=1):
        assert call(server, "create_secret", CREATE, settle=is_mine).name == NAME
    server.reset()
    server.faults.append("after")

    def odd(sent: Any, read: Any) -> Any:
        return None

    with virtual_time(seed=1), pytest.raises(TypeError, match="`settle` must return True or False, got None"):
        call(server, "create_secret", CREATE, settle=odd)


def test_a_delete_has_no_mark(server: SecretServer, call: Send) -> None:
    """With a function it is never read back."""
    put(server)
    server.faults.append("after")
    with virtual_time(seed=1), pytest.raises((NotFound, grpc.RpcError)):
        call(server, "delete_secret", DELETE, settle=is_mine)
    assert server.calls == ["DeleteSecret", "DeleteSecret"]


@pytest.mark.parametrize("installed", [False, True])
def test_an_earlier_attempt_of_a_function_counts(server: SecretServer, installed: bool) -> None:
    """The first one ended in doubt, and the second finds the secret; a second run knows nothing of the first."""
    server.faults.append("after")
    around = forbear.retry(grpc.RpcError, GoogleAPICallError, attempts=2, repeatable=True, retry_exhausted=True)
    with grpc.insecure_channel(server.target) as plain, virtual_time(seed=1):
        options: Any = {"settle": True, "attempts": 1}
        channel = plain if installed else grpc.intercept_channel(plain, RetryInterceptor(**options))
        transport = transports.SecretManagerServiceGrpcTransport(channel=channel)
        client = secretmanager_v1.SecretManagerServiceClient(transport=transport)
        call: Any = forbear.install(client, **options) if installed else client
        arguments = {} if installed else {"retry": None}
        secret = around(lambda: call.create_secret(CREATE, **arguments))()
        assert (secret.name, server.executed) == (NAME, ["CreateSecret"])
        with pytest.raises((AlreadyExists, grpc.RpcError)):
            around(lambda: call.create_secret(CREATE, **arguments))()


def test_the_writes_of_an_update_are_its_own_affair(server: SecretServer, call: Send) -> None:
    """There `mine` of the update decides."""
    server.faults.append("after")
    with virtual_time(seed=1), OwnWrites(), pytest.raises((AlreadyExists, grpc.RpcError)):
        call(server, "create_secret", CREATE, settle=True)
    assert len(server.calls) == 2


def test_nothing_is_read_after_the_timeout(server: SecretServer, call: Send) -> None:
    """The read has what is left of it."""
    server.faults.append("after")

    def wait(_: Any) -> bool:
        time.advance(60)
        return True

    with virtual_time(seed=1) as time, pytest.raises((AlreadyExists, grpc.RpcError)):
        call(server, "create_secret", CREATE, settle=wait, timeout=50)
    assert len(server.calls) == 2


def test_the_call_itself_is_a_success(server: SecretServer) -> None:
    """A caller that asks for the call gets one that ended well; the metadata are those of its last attempt."""
    put(server)
    server.faults.append("after")
    with grpc.insecure_channel(server.target) as plain, virtual_time(seed=1):
        channel = grpc.intercept_channel(plain, RetryInterceptor(settle=True))
        encode, decode = secretmanager_v1.DeleteSecretRequest.serialize, empty_pb2.Empty.FromString
        stub = channel.unary_unary(f"/{SERVICE}/DeleteSecret", request_serializer=encode, response_deserializer=decode)
        response, found = stub.with_call(secretmanager_v1.DeleteSecretRequest(DELETE))
    call: Any = found
    assert response == empty_pb2.Empty()
    assert (call.code(), call.details(), call.exception(), call.traceback()) == (grpc.StatusCode.OK, "", None, None)
    assert call.trailing_metadata() == ()
    report = forbear.report(call)
    assert report is not None
    assert report.settled
    told = list[Any]()
    call.add_done_callback(told.append)
    assert told == [call]


def test_over_rest() -> None:
    """A client over REST: 409 after a lost response."""
    with running_rest() as server, virtual_time(seed=1):
        anonymous: Any = ANONYMOUS
        transport: Any = transports.SecretManagerServiceRestTransport(
            host=server.host, credentials=anonymous, url_scheme="http"
        )
        client = forbear.install(secretmanager_v1.SecretManagerServiceClient(transport=transport), settle=True)
        server.fail(Fate(503, executed=True), Fate(409, error="ALREADY_EXISTS"))
        server.content = secretmanager_v1.Secret.to_json(secretmanager_v1.Secret(name=NAME, **ALIKE)).encode()
        assert client.create_secret(CREATE).name == NAME
        assert [method for method, _ in server.requests] == ["POST", "POST", "GET"]
        transport.close()


@settings(max_examples=max(1, settings().max_examples // 4))  # each one makes calls over a channel of its own
@given(
    way=st.sampled_from(sorted(WAYS)),
    faults=st.lists(st.sampled_from(["before", "after", "none"]), min_size=1, max_size=3),
    others=st.lists(st.sampled_from(["nothing", "create", "delete"]), max_size=5),
)
def test_a_mark_never_takes_another_s_write_for_ours(
    running_server: SecretServer, way: str, faults: list[str], others: list[str]
) -> None:
    """Somebody else makes the same write, or takes it back, before any of our calls: what is called done was ours."""
    server, actions = running_server, [*others]
    server.reset()
    server.faults.extend(faults)

    def act(_: str) -> None:
        action = actions.pop(0) if actions else "nothing"
        if action == "create" and NAME not in server.secrets:
            put(server, ALIKE | {"labels": {"by": "them"}})
        if action == "delete":
            server.secrets.pop(NAME, None)

    server.between = act
    with virtual_time(seed=1), suppress(AlreadyExists, grpc.RpcError, GoogleAPICallError):
        assert WAYS[way](server, "create_secret", CREATE, settle=is_mine).labels["by"] == "us"
        assert "CreateSecret" in server.executed


def test_wrong_words() -> None:
    """The error names the option and what it takes."""
    with pytest.raises(ValueError, match="`settle` must hold full names of RPCs"):
        RetryInterceptor(settle="CreateSecret")
    with pytest.raises(TypeError, match="`settle` must take the resource that was sent"):
        RetryInterceptor(settle=lambda: True)  # type: ignore[arg-type]
    assert repr(RetryInterceptor(settle=True)) == "RetryInterceptor(settle=True)"


@pytest.mark.parametrize("kind", [secretmanager_v1.CreateSecretRequest, secretmanager_v1.DeleteSecretRequest])
@pytest.mark.parametrize("is_raw", [False, True])
def test_a_channel_encodes_the_read_as_the_write(kind: Any, is_raw: bool) -> None:
    """It knows the class of the write alone: a message of that class has the bytes of the read."""
    call = GrpcCall(f"{SERVICE}/CreateSecret", secretmanager_v1.CreateSecretRequest(CREATE))
    plan = plan_read(call)
    assert plan is not None
    look = RpcReadBack(Rpc(call.method), call, plan, 1.0)
    encoded = look.encode_as(type(kind.pb(kind())) if is_raw else kind)
    assert to_raw(encoded).SerializeToString() == secretmanager_v1.GetSecretRequest.serialize(plan.request)
    with pytest.raises(DecodeError):
        look.encode_as(secretmanager_v1.Replication)  # its first field is a message, not a text
