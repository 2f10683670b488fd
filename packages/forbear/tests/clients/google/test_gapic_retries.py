"""`retry_for` on Google's generated clients, sync and async, against a real gRPC server."""

import asyncio
import functools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.api_core import exceptions, gapic_v1, grpc_helpers
from google.api_core import retry as api_retry
from google.api_core.client_options import ClientOptions
from google.cloud import _storage_v2 as storage_v2
from google.cloud._storage_v2.services.storage import transports
from google.cloud.storage.asyncio.async_appendable_object_writer import AsyncAppendableObjectWriter
from google.cloud.storage.asyncio.async_grpc_client import AsyncGrpcClient

import forbear
from forbear.clients import google
from forbear.clients.google_storage import DEFAULT_RETRY
from forbear.grpc.call import GrpcCall
from forbear.services import cloud_storage, iam
from forbear.testing import virtual_time
from forbear_testkit.clients.google import ANONYMOUS, protos
from forbear_testkit.clients.google.rpc_server import Server, running

DELETE = "google.storage.v2.Storage/DeleteObject"
GET = "google.storage.v2.Storage/GetObject"
SAFE = storage_v2.DeleteObjectRequest(bucket="b", object_="o", generation=7)
UNSAFE = storage_v2.DeleteObjectRequest(bucket="b", object_="o")
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def server() -> Iterator[Server]:
    """Run a server that ends calls as its script says."""
    with running() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    """The generated client of Cloud Storage."""
    with grpc.insecure_channel(server.target) as channel:
        yield storage_v2.StorageClient(transport=transports.StorageGrpcTransport(channel=channel))


def test_the_message_decides(server: Server, client: Any) -> None:
    """A delete of a generation is repeated; one without is not, and its error says what is missing."""
    server.fail(UNAVAILABLE, times=2)
    with virtual_time(seed=1) as time:
        client.delete_object(SAFE, retry=google.retry_for(DELETE))
        assert (len(server.calls), len(time.slept)) == (3, 2)
        server.fail(UNAVAILABLE)
        with pytest.raises(exceptions.ServiceUnavailable) as caught:
            client.delete_object(UNSAFE, retry=google.retry_for(DELETE))
    assert len(server.calls) == 4
    assert caught.value.__notes__[0].endswith(
        "google.storage.v2.Storage/DeleteObject may have been executed; "
        "it may be repeated only with if_generation_match or generation [unsafe]"
    )


def test_not_found_after_a_lost_response_is_raised(server: Server, client: Any) -> None:
    """NOT_FOUND after a doubtful attempt is raised unchanged, and the report says that it may be done."""
    server.fail(UNAVAILABLE)
    server.fail(grpc.StatusCode.NOT_FOUND)
    with virtual_time(), pytest.raises(exceptions.NotFound) as caught:
        client.delete_object(SAFE, retry=google.retry_for(DELETE))
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


def test_the_retries_are_alike_on_asyncio(server: Server) -> None:
    """The same on asyncio."""

    async def run() -> None:
        async with grpc.aio.insecure_channel(server.target) as channel:
            transport = transports.StorageGrpcAsyncIOTransport(channel=channel)
            client: Any = storage_v2.StorageAsyncClient(transport=transport)
            server.fail(UNAVAILABLE, times=2)
            await client.delete_object(SAFE, retry=google.async_retry_for(DELETE))
            server.fail(UNAVAILABLE)
            with pytest.raises(exceptions.ServiceUnavailable):
                await client.delete_object(UNSAFE, retry=google.async_retry_for(DELETE))
            with pytest.raises(TypeError, match="returned an awaitable"):
                await client.get_object(storage_v2.GetObjectRequest(), retry=google.retry_for(GET))

    with virtual_time(seed=1) as time:
        asyncio.run(run())
    assert (server.calls, len(time.slept)) == (["DeleteObject"] * 4, 2)


def test_the_asyncio_client_of_cloud_storage(server: Server) -> None:
    """Its calls take the object for their RPC, and its writers read the numbers of ours."""

    async def run() -> None:
        options = ClientOptions(api_endpoint=server.target)
        client: Any = AsyncGrpcClient(credentials=ANONYMOUS, client_options=options)
        server.fail(UNAVAILABLE, times=2)
        await client.get_object("b", "o", retry=google.async_retry_for(GET))
        server.fail(UNAVAILABLE)
        with pytest.raises(exceptions.ServiceUnavailable):
            await client.delete_object("b", "o", retry=google.async_retry_for(DELETE))
        writer: Any = AsyncAppendableObjectWriter(client, "b", "o")
        merged = writer._merge_retry_policy(DEFAULT_RETRY.with_deadline(20))
        assert (merged._deadline, merged._initial, merged._maximum) == (20, 1, 60)
        await client.grpc_client.transport.close()

    with virtual_time(seed=1) as time:
        asyncio.run(run())
    assert (server.calls, len(time.slept)) == (["GetObject"] * 3 + ["DeleteObject"], 2)


@pytest.mark.parametrize(("word", "waits"), [("30000", 1), ("-1", 0)])
def test_the_servers_pushback_is_obeyed(server: Server, client: Any, word: str, waits: int) -> None:
    """The server's word is obeyed; Google's own objects do not read it."""
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", word),))
    with virtual_time(seed=1) as time:
        if waits:
            client.get_object(storage_v2.GetObjectRequest(), retry=google.retry_for(GET))
        else:
            with pytest.raises(exceptions.ServiceUnavailable):
                client.get_object(storage_v2.GetObjectRequest(), retry=google.retry_for(GET))
    assert [delay >= 30 for delay in time.slept] == [True] * waits


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("google.cloud.redis.v1.CloudRedis/CreateInstance", 2),
        ("google.cloud.redis.v1.CloudRedis/FailoverInstance", 1),
        ("google.iam.admin.v1.IAM/GetRole", 2),
        ("google.iam.admin.v1.IAM/CreateServiceAccountKey", 1),
    ],
)
def test_other_services(server: Server, method: str, sent: int) -> None:
    """IAM and Memorystore are judged by their own tables, through the wrapper of every generated method."""
    with grpc.insecure_channel(server.target) as channel:
        raw: Any = channel
        wrap: Any = gapic_v1.method.wrap_method
        call = wrap(raw.unary_unary(f"/{method}"))
        server.fail(UNAVAILABLE)
        with virtual_time():
            if sent == 2:
                call(b"", retry=google.retry_for(method), timeout=10)
            else:
                with pytest.raises(exceptions.ServiceUnavailable):
                    call(b"", retry=google.retry_for(method), timeout=10)
    assert len(server.calls) == sent


def test_copies_and_pickles(server: Server, client: Any) -> None:
    """Google's `with_…` methods derive others, which keep the RPC."""
    told: list[Exception] = []
    teapot = google.retry_for(GET).with_predicate(lambda error: isinstance(error, exceptions.NotFound))
    server.fail(grpc.StatusCode.NOT_FOUND)
    with virtual_time() as time:
        client.get_object(storage_v2.GetObjectRequest(), retry=teapot.with_delay(initial=5, maximum=5))
    assert time.slept[0] <= 5
    quick = pickle.loads(pickle.dumps(google.async_retry_for(DELETE).with_deadline(9)))
    assert (quick.timeout, quick._rpc.method, quick._rpc.policy.limits.timeout) == (9, DELETE, 9)
    assert google.retry_for(GET).with_timeout(None).timeout is None
    server.fail(UNAVAILABLE)
    with virtual_time():
        google.retry_for(GET)(client.get_object, told.append)(storage_v2.GetObjectRequest())
    assert [type(error) for error in told] == [exceptions.ServiceUnavailable]


def test_a_policy_of_ones_own(server: Server, client: Any) -> None:
    """It brings its limits; the table still decides what may be repeated."""
    policy = forbear.retry(on=exceptions.ServiceUnavailable, attempts=2)
    server.fail(UNAVAILABLE, times=3)
    with virtual_time():
        with pytest.raises(exceptions.ServiceUnavailable):
            client.delete_object(SAFE, retry=google.retry_for(DELETE, policy))
        assert len(server.calls) == 2
        with pytest.raises(exceptions.ServiceUnavailable):
            client.delete_object(UNSAFE, retry=google.retry_for(DELETE, policy))
    assert len(server.calls) == 3


def is_of_o(call: GrpcCall) -> bool:
    """Return whether a call is about the object "o"."""
    message: Any = call.message
    return bool(message.object_ == "o")


@pytest.mark.parametrize("safe", [True, is_of_o], ids=["all", "some"])
@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_vouch(server: Server, client: Any, safe: Any, style: str) -> None:
    """The user's word makes the call repeatable, also in objects made from the first one."""
    server.fail(UNAVAILABLE, times=2)
    with virtual_time():
        if style == "sync":
            client.delete_object(UNSAFE, retry=google.retry_for(DELETE, safe=safe).with_timeout(60))
        else:

            async def delete(message: Any) -> None:
                client.delete_object(message, retry=None)

            async def main() -> None:
                wrap: Any = google.async_retry_for(DELETE, safe=safe).with_delay(initial=1)
                await wrap(delete)(UNSAFE)

            asyncio.run(main())
    assert len(server.calls) == 3


def test_an_rpc_of_any_api(server: Server) -> None:
    """With a vouch it needs no table."""
    with grpc.insecure_channel(server.target) as channel, virtual_time():
        raw: Any = channel
        server.fail(UNAVAILABLE)
        wrap: Any = google.retry_for("t.T/Say", safe=True)
        assert wrap(raw.unary_unary("/t.T/Say"))(b"a") == b""
    assert len(server.calls) == 2


@pytest.mark.parametrize(("name", "executions"), [("shop.v1.Orders/Show", 2), ("google.made.v1.Things/Pull", 1)])
def test_an_rpc_without_a_table(server: Server, name: str, executions: int) -> None:
    """One whose definition is loaded, or of Google, needs no vouch; it is judged by its definition."""
    protos.load()
    wrap_errors: Any = grpc_helpers.wrap_errors
    with grpc.insecure_channel(server.target) as channel, virtual_time():
        raw: Any = channel
        send: Any = google.retry_for(name)(wrap_errors(raw.unary_unary(f"/{name}")))
        server.fail(UNAVAILABLE)
        if executions == 2:
            assert send(b"a") == b""
        else:
            with pytest.raises(exceptions.ServiceUnavailable):
                send(b"a")
    assert len(server.calls) == executions
    with pytest.raises(ValueError, match="of Google or of one whose definition is loaded"):
        google.retry_for("shop.v1.Orders/Gone")


@pytest.mark.parametrize("safe", [True, bool])
@pytest.mark.parametrize("method", ["Say", "t.T/*", "t.T/"])
def test_a_vouch_names_one_rpc(method: str, safe: Any) -> None:
    """A pattern, or a name that no RPC has, is refused."""
    with pytest.raises(ValueError, match="`method` must be the full name of an RPC"):
        google.retry_for(method, safe=safe)


def test_unknown_rpcs_and_wrong_policies_are_refused() -> None:
    """Unknown RPCs, and policies that belong elsewhere."""
    with pytest.raises(TypeError, match="`safe` must be True, False or a function"):
        google.retry_for(GET, safe="yes")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`method` must be the full name of an RPC"):
        google.retry_for("google.storage.v2.Storage/Explode")
    with pytest.raises(TypeError, match="`method` must be the full name of an RPC"):
        google.retry_for(None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="must be one for cloud_storage"):
        google.retry_for(GET, iam.policy)
    with pytest.raises(TypeError, match="`policy` must be a forbear"):
        google.retry_for(GET, 3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="attempt_timeout"):
        google.retry_for(GET, cloud_storage.policy.with_attempt_timeout(3))
    with pytest.raises(ValueError, match="on_result"):
        google.retry_for(GET, cloud_storage.policy.with_on_result(bool))


@pytest.mark.parametrize("code", [UNAVAILABLE, grpc.StatusCode.NOT_FOUND])
def test_on_error_is_called_as_google_api_core_calls_it(server: Server, code: grpc.StatusCode) -> None:
    """With each error that is worth a retry, so also with the last one; sync, on asyncio and for storage."""
    policy = cloud_storage.policy.with_attempts(None).with_timeout(5).with_backoff(forbear.Constant(3))
    theirs: Any = api_retry.Retry(predicate=api_retry.if_exception_type(exceptions.ServiceUnavailable), timeout=5)
    counts: list[int] = []

    def heard(wrapped: Callable[[Any], Callable[[Any], object]]) -> None:
        errors: list[Exception] = []
        server.fail(code, times=2)
        with virtual_time(seed=1), pytest.raises(exceptions.GoogleAPIError):
            wrapped(errors.append)(SAFE)
        server.fates.clear()
        counts.append(len(errors))

    with grpc.insecure_channel(server.target) as channel:
        client: Any = storage_v2.StorageClient(transport=transports.StorageGrpcTransport(channel=channel))
        send = functools.partial(client.delete_object, retry=None)

        async def asend(request: Any) -> Any:
            return send(request)

        async def run(retried: Any, request: Any) -> None:
            await retried(request)

        objects: list[Any] = [
            google.retry_for(DELETE, policy),
            DEFAULT_RETRY.with_timeout(0.001).with_repeatable(True),
            theirs.with_timeout(0),
        ]
        for retry in objects:
            heard(functools.partial(retry, send))
        awaited: Any = google.async_retry_for(DELETE, policy)
        heard(lambda on_error: lambda request: asyncio.run(run(awaited(asend, on_error), request)))
    worth = code is UNAVAILABLE
    assert counts == ([2, 1, 1, 2] if worth else [0, 0, 0, 0])
