"""Budgets that count first attempts, in gRPC calls: nothing is sent without leave, and every attempt ends."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest

import forbear
from forbear import Constant, Throttled
from forbear.budgets import Budget
from forbear.clients.google import async_retry_for, retry_for
from forbear.clients.google_storage import install
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.events import Reason
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google.intercepted import KINDS, SAFE, UNAVAILABLE, acall, call
from forbear_testkit.clients.google.rpc_server import Server, running
from forbear_testkit.run.budgets import ONCE, TWICE, Closed, ClosedAtFirst, Noted, counted

AT_ONCE = rfc9110.policy.with_backoff(Constant(0)).with_attempts(3)
SAFE_POLICY = cloud_storage.policy.with_backoff(Constant(0))
Send = Callable[..., list[bytes]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for all tests here."""
    with running() as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Server:
    """The server, which has seen nothing yet."""
    shared.fates.clear()
    shared.calls.clear()
    shared.replies = [b"1", b"2"]
    return shared


@pytest.fixture(params=[call, acall], ids=["sync", "aio"])
def send(request: pytest.FixtureRequest) -> Send:
    """One of the two styles."""
    chosen: Send = request.param
    return chosen


def requests(name: str, *, once: bool) -> Any:
    """Return the request of a call, as an iterator if it is to be read `once`."""
    if KINDS[name].startswith("unary"):
        return b"a"
    return iter([b"a", b"b"]) if once else [b"a", b"b"]


@pytest.mark.parametrize("once", [False, True], ids=["list", "iterator"])
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_sent_without_leave(server: Server, send: Send, name: str, once: bool) -> None:
    """A refused first attempt is a Throttled with a report and two events."""
    events: list[forbear.events.Event] = []
    policy = AT_ONCE.with_budget(Budget(Closed())).with_on_event(events.append)
    with pytest.raises(Throttled) as caught:
        send(server, name, policy=policy, request=requests(name, once=once))
    given_up = forbear.report(caught.value)
    assert given_up is not None
    assert (given_up.reason, given_up.method, given_up.count) == (Reason.BUDGET, f"t.T/{name}", 1)
    assert [type(event) for event in events] == [forbear.events.Failed, forbear.events.GaveUp]
    assert server.calls == []


@pytest.mark.parametrize("name", KINDS)
def test_a_function_around_may_try_again(server: Server, send: Send, name: str) -> None:
    """A refusal sends nothing, so that a function around the call is called again."""
    policy = AT_ONCE.with_budget(Budget(ClosedAtFirst(10)))
    again = forbear.retry(on=Throttled, attempts=2, retry_exhausted=True, backoff=Constant(0))
    again(send)(server, name, policy=policy, request=requests(name, once=False))
    assert len(server.calls) == 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("failures", "log"),
    [(0, ONCE), (1, TWICE), (3, ["admit", "release", "take", "release", "take", "release"])],
)
def test_every_attempt_is_counted_and_ends(
    server: Server, send: Send, name: str, failures: int, log: list[str]
) -> None:
    """In this order, and none is under way in the end."""
    budget = Noted()
    server.fail(UNAVAILABLE, times=failures)
    with virtual_time(), suppress(grpc.RpcError):
        send(server, name, policy=AT_ONCE.with_budget(budget), request=requests(name, once=False))
    assert (budget.log, budget.active) == (log, 0)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("failures", "accepts"), [(0, 1), (1, 1), (3, 0)])
def test_the_throttle_counts_what_is_known(server: Server, send: Send, name: str, failures: int, accepts: int) -> None:
    """Google's throttle counts each attempt once, with its outcome."""
    budget = Budget.google_sre()
    server.fail(UNAVAILABLE, times=failures)
    with virtual_time(), suppress(grpc.RpcError):
        send(server, name, policy=AT_ONCE.with_budget(budget), request=requests(name, once=False))
    assert counted(budget) == (failures + accepts, accepts)


@pytest.mark.parametrize("name", ["Collect", "Bidi"])
@pytest.mark.parametrize("failures", [0, 1])
def test_a_call_that_is_sent_once_is_counted(server: Server, send: Send, name: str, failures: int) -> None:
    """A stream of requests that cannot be read again; its success counts, too."""
    budget = Noted()
    server.fail(UNAVAILABLE, times=failures)
    with suppress(grpc.RpcError):
        send(server, name, policy=AT_ONCE.with_budget(budget), request=requests(name, once=True))
    assert sorted(budget.log) == (sorted(ONCE) if failures == 0 else ["admit", "release"])
    assert budget.active == 0


def test_a_cancelled_stream_ends_its_attempt(server: Server) -> None:
    """Before its first response."""
    budget = Noted()
    interceptor = RetryInterceptor(AT_ONCE.with_budget(budget), safe=SAFE)
    with grpc.insecure_channel(server.target) as plain:
        channel: Any = grpc.intercept_channel(plain, interceptor)
        stream = channel.unary_stream("/t.T/Watch")(b"a")
        assert budget.active == 1
        stream.cancel()
        assert (budget.log, budget.active) == (["admit", "release"], 0)
        with suppress(grpc.RpcError):
            list(stream)
    assert budget.active == 0


def test_a_cancelled_stream_ends_its_attempt_on_asyncio(server: Server) -> None:
    """By its `cancel`, or with the task that reads it."""
    budget = Noted()

    async def main() -> None:
        interceptors = aio_interceptors(AT_ONCE.with_budget(budget), safe=SAFE)
        async with grpc.aio.insecure_channel(server.target, interceptors=interceptors) as opened:
            channel: Any = opened
            stream = channel.unary_stream("/t.T/Watch")(b"a")
            await stream.wait_for_connection()
            assert budget.active == 1
            stream.cancel()
            assert budget.active == 0
            with pytest.raises(asyncio.CancelledError):
                await anext(aiter(stream))

    asyncio.run(main())
    assert budget.log == ["admit", "release"]


def test_each_grpc_service_has_its_own_budget(server: Server, send: Send) -> None:
    """An interceptor does not see the target of its channel, so a budget per host counts by the service."""
    budget = Budget.per_host(forbear.budgets.TokenBucket(1, deposit=0))
    server.fail(UNAVAILABLE, times=2)
    with virtual_time(), pytest.raises(grpc.RpcError) as caught:
        send(server, "Say", policy=AT_ONCE.with_budget(budget))
    given_up = forbear.report(caught.value)
    assert given_up is not None
    assert given_up.reason is Reason.BUDGET
    assert not budget.of("t.T", "grpc").take()
    assert budget.of("t.Other", "grpc").take()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_googles_retry_objects(is_async: bool) -> None:
    """They refuse without leave, and count every attempt, also one that is interrupted."""
    sent: list[object] = []

    def attempt(request: object) -> object:
        sent.append(request)
        if len(sent) == 2:
            raise KeyboardInterrupt
        return request

    async def aattempt(request: object) -> object:
        return attempt(request)

    def run(policy: forbear.Policy) -> object:
        name = "google.iam.admin.v1.IAM/ListRoles"
        if not is_async:
            return retry_for(name, policy)(attempt)("a")
        return asyncio.run(async_retry_for(name, policy)(aattempt)("a"))  # type: ignore[arg-type]

    with pytest.raises(Throttled):
        run(AT_ONCE.with_budget(Budget(Closed())))
    assert sent == []
    budget = Noted()
    assert run(AT_ONCE.with_budget(budget)) == "a"
    assert (budget.log, budget.active) == (ONCE, 0)
    with pytest.raises(KeyboardInterrupt) as kept:
        run(AT_ONCE.with_budget(budget))
    assert (budget.active, kept.value.args) == (0, ())


def test_a_storage_client_that_was_made_safe(cloud: Cloud, client: Any) -> None:
    """Without leave the cloud sees no request, and Google's loop does not begin again; with it all attempts end."""
    bucket = install(client, SAFE_POLICY.with_budget(Budget(Closed()))).bucket("bkt")
    before = len(cloud.requests)
    for use in (bucket.reload, lambda: bucket.blob("a").upload_from_string("hello", if_generation_match=0)):
        with pytest.raises(Throttled) as caught:
            use()
        assert forbear.report(caught.value) is not None
    assert len(cloud.requests) == before
    budget = Noted()
    bucket = install(client, SAFE_POLICY.with_budget(budget)).bucket("bkt")
    cloud.fault(Fault.status(503))
    with virtual_time():
        bucket.reload()
    assert (budget.log, budget.active) == (TWICE, 0)
