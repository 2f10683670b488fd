"""Keys that `install` fills into `request_id`: all attempts, of a run around too, send the same one (K1 to K3, K6)."""

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import grpc
import grpc.aio
import pytest
from google.api_core import exceptions, grpc_helpers, grpc_helpers_async

import forbear
from forbear.clients._gapic import fill_key
from forbear.clients.google import AsyncRetry, Retry
from forbear.exchange.grpc import Rpc
from forbear.run.keys import RepeatRefused
from forbear.testing import virtual_time
from forbear_testkit.clients.google import protos
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.run.budgets import ClosedAtFirst

helpers: Any = grpc_helpers
ahelpers: Any = grpc_helpers_async
IMPORT = "/google.cloud.parallelstore.v1.Parallelstore/ImportData"
"""An RPC whose `request_id` counts for an hour, and which nothing else makes safe."""

OUTER = forbear.retry(on=forbear.transient, attempts=3, timeout=60, retry_exhausted=True)
ONCE = forbear.retry(on=forbear.transient, attempts=1)
PATIENT: Any = {"on": forbear.transient, "attempts": 2, "timeout": 9000}
Client = Callable[[Any], object]


def encode(message: Any) -> bytes:
    """Return a message as it goes over the wire."""
    encoded: bytes = message.SerializeToString()
    return encoded


def request(name: str = "a", **fields: Any) -> Any:
    """Return a message with a `request_id`."""
    return protos.message("google.made.v1.CreateThingRequest", name=name, **fields)


def sent(server: Server) -> list[Any]:
    """Return the requests that the server got."""
    return [type(request()).FromString(each) for each in server.requests]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends calls as the test says."""
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def time() -> Iterator[Any]:
    """Waits take no time."""
    with virtual_time(seed=3) as clock:
        yield clock


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Client]]:
    """A function that makes a client of one method, as `install` leaves it."""
    channels = list[Any]()

    def make(policy: forbear.Policy | None = None, *, fills: bool = True) -> Client:
        channels.append(grpc.insecure_channel(server.target))
        stub = channels[-1].unary_unary(IMPORT, request_serializer=encode)
        retry: Any = Retry(Rpc(IMPORT, policy), fills=fills)
        client: Client = retry(helpers.wrap_errors(stub))
        return client

    yield make
    for channel in channels:
        channel.close()


def acall(server: Server, message: Any, *, fills: bool = True) -> object:
    """Make a call of an asyncio client."""

    async def run() -> object:
        async with grpc.aio.insecure_channel(server.target) as opened:
            channel: Any = opened
            stub: Any = ahelpers.wrap_errors(channel.unary_unary(IMPORT, request_serializer=encode))
            retry: Any = AsyncRetry(Rpc(IMPORT), fills=fills)
            return await retry(stub)(message)

    return asyncio.run(run())


@pytest.mark.parametrize("is_async", [False, True])
def test_all_attempts_send_one_key(server: Server, connect: Callable[..., Client], *, is_async: bool) -> None:
    """It is a UUID4, another one for each call, and never in the caller's message."""
    server.fail(UNAVAILABLE, times=2)
    message, client = request(), connect()
    for _ in range(2):
        _ = acall(server, message) if is_async else client(message)
    first, second, third, other = [UUID(each.request_id) for each in sent(server)]
    assert first == second == third != other
    assert first.version == 4
    assert message == request()


@pytest.mark.parametrize("is_async", [False, True])
def test_the_key_of_the_caller_stays(server: Server, connect: Callable[..., Client], *, is_async: bool) -> None:
    """Each attempt sends it."""
    server.fail(UNAVAILABLE)
    message = request(request_id="mine")
    _ = acall(server, message) if is_async else connect()(message)
    assert [each.request_id for each in sent(server)] == ["mine", "mine"]


@pytest.mark.parametrize("is_async", [False, True])
def test_nothing_is_filled_without_install(server: Server, connect: Callable[..., Client], *, is_async: bool) -> None:
    """A single retry object judges what it is given."""
    server.fail(UNAVAILABLE)
    with pytest.raises(exceptions.ServiceUnavailable, match="as told"):
        _ = acall(server, request(), fills=False) if is_async else connect(fills=False)(request())
    assert sent(server) == [request()]


def nest(call: Callable[[], object]) -> object:
    """Call a function in a run around another one."""
    return OUTER.call(lambda: OUTER.call(call))


def decorate(call: Callable[[], object]) -> object:
    """Call a decorated function."""
    return OUTER(call)()


@pytest.mark.parametrize("wrap", [decorate, OUTER.call, nest])
def test_a_run_around(
    server: Server, connect: Callable[..., Client], wrap: Callable[[Callable[[], object]], object]
) -> None:
    """The next attempt of a function sends the same key."""
    client = connect(ONCE)
    server.fail(UNAVAILABLE)
    wrap(lambda: client(request()))
    first, second = sent(server)
    assert first == second
    assert first.request_id


def test_equal_calls_in_another_order(server: Server, connect: Callable[..., Client]) -> None:
    """Each request finds its own key, by what it is; of equal ones, the first has the first key (K1)."""
    orders, client = iter([["a", "b", "b"], ["b", "a", "b"]]), connect(ONCE)

    def work() -> None:
        lost: Exception | None = None
        for name in next(orders):
            try:
                client(request(name))
            except exceptions.ServiceUnavailable as error:
                lost = error
        if lost is not None:
            raise lost

    server.fail(UNAVAILABLE, times=3)
    OUTER.call(work)
    first_a, first_b, other_b, b, a, last_b = [each.request_id for each in sent(server)]
    assert (a, b, last_b) == (first_a, first_b, other_b)
    assert len({a, b, last_b}) == 3


def test_another_request_in_the_next_attempt(server: Server, connect: Callable[..., Client]) -> None:
    """It may be the one in doubt with another time in it, so it is not sent (K2)."""
    names, client = iter("ab"), connect(ONCE)
    server.fail(UNAVAILABLE)
    with pytest.raises(RepeatRefused, match="this one may be the same") as caught:
        OUTER.call(lambda: client(request(next(names))))
    assert len(server.calls) == 1
    assert forbear.report(caught.value) is not None


def test_each_client_has_its_own_keys(server: Server, connect: Callable[..., Client]) -> None:
    """An equal request of another client may go to another region."""
    clients = iter([connect(ONCE), connect(ONCE)])
    server.fail(UNAVAILABLE)
    with pytest.raises(RepeatRefused):
        OUTER.call(lambda: next(clients)(request()))
    assert len(server.calls) == 1


def test_what_has_succeeded_is_not_sent_again(server: Server, connect: Callable[..., Client]) -> None:
    """The next attempt would send another key (K3)."""
    client = connect(ONCE)

    def work() -> None:
        client(request())
        raise ConnectionError("later")

    with pytest.raises(ConnectionError, match="later"):
        OUTER.call(work)
    assert len(server.calls) == 1


def test_what_was_refused_is_in_no_doubt(server: Server, connect: Callable[..., Client]) -> None:
    """After an error of the caller, the next attempt may ask for something else."""
    names, client = iter("ab"), connect(ONCE)
    server.fail(grpc.StatusCode.INVALID_ARGUMENT)
    forbear.retry(on=exceptions.InvalidArgument, attempts=2, repeatable=True).call(lambda: client(request(next(names))))
    assert [each.name for each in sent(server)] == ["a", "b"]


def pushback(seconds: int) -> tuple[tuple[str, str]]:
    """Return the metadata by which a server asks for a wait."""
    return (("grpc-retry-pushback-ms", f"{seconds * 1000}"),)


@pytest.mark.parametrize(("later", "wait", "calls"), [(100, 2500, 4), (1000, 2500, 3), (3000, 100, 4), (3300, 1, 2)])
def test_a_key_counts_from_its_first_use(
    server: Server, connect: Callable[..., Client], time: Any, later: int, wait: int, calls: int
) -> None:
    """It counts for 54 minutes, also where an earlier attempt of the function has sent it (K6)."""
    client = connect(forbear.retry(**PATIENT, max_retry_after=3000))

    def work() -> None:
        try:
            client(request())
        finally:
            time.advance(later)

    server.fail(UNAVAILABLE, times=2)
    server.fail(UNAVAILABLE, metadata=(("grpc-retry-pushback-ms", f"{wait * 1000}"),))
    try:
        forbear.retry(**PATIENT, retry_exhausted=True, max_retry_after=1).call(work)
    except (exceptions.ServiceUnavailable, RepeatRefused):
        assert calls < 4
    assert len(server.calls) == calls
    assert len({each.request_id for each in sent(server)}) == 1


@pytest.mark.parametrize(
    "name",
    [
        "google.cloud.dataproc.v1.WorkflowTemplateService/InstantiateWorkflowTemplate",
        "google.cloud.dataproc.v1.WorkflowTemplateService/InstantiateInlineWorkflowTemplate",
        "google.home.graph.v1.HomeGraphApiService/RequestSyncDevices",
        "google.cloud.retail.v2.ProductService/ImportProducts",
        "google.cloud.recommendationengine.v1beta1.CatalogService/ImportCatalogItems",
        "google.made.v1.Things/CreateThing",
        "shop.v1.Orders/Make",
    ],
)
def test_an_id_that_promises_nothing_stays_empty(name: str) -> None:
    """A request_id may be a trace, or only keep two from running at once."""
    message = request()
    assert fill_key(name, message, None) == (message, None)


def test_a_request_without_the_field() -> None:
    """An older client does not have it, and a dict shows no fields."""
    other = protos.message("google.made.v1.GetThingRequest", name="a")
    assert fill_key(IMPORT, other, None) == (other, None)
    assert fill_key(IMPORT, {}, None) == ({}, None)


def test_a_refused_first_attempt_has_used_no_key(server: Server, connect: Callable[..., Client]) -> None:
    """A refusal of the budget sends nothing: the next attempt of the function may ask for something else."""
    names = iter(["a", "b"])
    client = connect(ONCE.with_budget(forbear.budgets.Budget(ClosedAtFirst(10))))
    policy = forbear.retry(on=forbear.Throttled, attempts=2, retry_exhausted=True)
    policy.call(lambda: client(request(next(names))))
    assert [each.name for each in sent(server)] == ["b"]


def test_copies_fill_keys_too(server: Server) -> None:
    """Google's methods for copies and pickle keep what `install` has set up."""
    retry: Any = Retry(Rpc(IMPORT, ONCE), fills=True)
    copies = [retry.with_timeout(5), retry.with_delay(1, 2), copy.copy(retry), pickle.loads(pickle.dumps(retry))]
    with grpc.insecure_channel(server.target) as channel:
        for each in copies:
            each(helpers.wrap_errors(channel.unary_unary(IMPORT, encode, None)))(request())
    assert all(each.request_id for each in sent(server))
    assert len(server.requests) == len(copies)
