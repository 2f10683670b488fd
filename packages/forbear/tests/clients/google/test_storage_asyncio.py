"""The asyncio client of google-cloud-storage, which speaks gRPC, against a real server of grpc.aio with one object."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.api_core.retry import AsyncRetry as StockRetry
from google.cloud.storage.asyncio.async_grpc_client import AsyncGrpcClient

import forbear
from forbear.clients.google import async_retry_for
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_testkit.clients.google import ANONYMOUS

GET, DELETE = "google.storage.v2.Storage/GetObject", "google.storage.v2.Storage/DeleteObject"
LOST = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL]


class Store(grpc.GenericRpcHandler):  # type: ignore[type-arg] # generic in the stubs alone
    """One object that is there until it is deleted; the first call ends with `code`, after its effect if `after`."""

    def __init__(self, code: grpc.StatusCode, *, after: bool) -> None:
        self.fates = [(code, after)]
        self.there = True
        self.calls: list[str] = []
        self.effects = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Handle every RPC."""
        name = handler_call_details.method.rpartition("/")[2]

        async def answer(request: bytes, context: Any) -> bytes:
            self.calls.append(name)
            code, after = self.fates.pop() if self.fates else (None, True)
            if code is not None and not after:
                await context.abort(code, "as told")
            if not self.there:
                await context.abort(grpc.StatusCode.NOT_FOUND, "gone")
            if name == "DeleteObject":
                self.there = False
                self.effects += 1
            if code is not None:
                await context.abort(code, "as told")
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def connected(store: Store) -> AsyncGenerator[Any]:
    """The client, as it comes."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([store])
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    client: Any = AsyncGrpcClient(credentials=ANONYMOUS, client_options=ClientOptions(api_endpoint=target))
    try:
        yield client
    finally:
        await client.grpc_client.transport.close()
        await server.stop(None)


def run(store: Store, call: Callable[[Any], Awaitable[object]]) -> Exception | None:
    """Return the end of a call."""

    async def main() -> None:
        async with connected(store) as client:
            await call(client)

    try:
        asyncio.run(main())
    except exceptions.GoogleAPICallError as error:
        return error
    return None


async def read(client: Any) -> None:
    """Ask for the object."""
    await client.get_object("b", "o", retry=async_retry_for(GET))


async def delete(client: Any, **condition: int) -> None:
    """Delete it."""
    await client.delete_object("b", "o", retry=async_retry_for(DELETE), **condition)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("code", LOST, ids=lambda code: code.name)
def test_each_operation_is_repeated_only_if_that_does_no_harm(code: grpc.StatusCode, after: bool) -> None:
    """The outcomes and the effects are those of the clients that speak HTTP."""
    with virtual_time(seed=7) as time:
        store = Store(code, after=after)
        assert run(store, read) is None
        assert store.calls == ["GetObject"] * 2

        store = Store(code, after=after)
        error = run(store, lambda client: delete(client, if_generation_match=7))
        assert (store.calls, store.effects) == (["DeleteObject"] * 2, 1)
        assert isinstance(error, exceptions.NotFound) if after else error is None
        report = forbear.report(error)
        assert (report is not None and report.maybe_done) is after
        assert len(time.slept) == 2

        store = Store(code, after=after)
        error = run(store, delete)
        assert (store.calls, store.effects) == (["DeleteObject"], int(after))
        report = forbear.report(error)
        assert report is not None
        assert report.reason is forbear.events.Reason.UNSAFE
        assert len(time.slept) == 2


def test_the_stock_object_repeats_what_may_have_been_done() -> None:
    """It knows the error only."""
    store = Store(grpc.StatusCode.UNAVAILABLE, after=True)
    error = run(store, lambda client: client.delete_object("b", "o", retry=StockRetry(initial=0.001, maximum=0.001)))
    assert isinstance(error, exceptions.NotFound)
    assert store.calls == ["DeleteObject"] * 2


def test_a_call_that_is_cancelled_while_it_waits_is_not_sent_again() -> None:
    """The cancellation passes straight through."""
    store = Store(grpc.StatusCode.UNAVAILABLE, after=False)

    async def main() -> None:
        async with connected(store) as client:
            failed = asyncio.Event()
            policy = cloud_storage.policy.with_on_event(lambda _: failed.set())
            call = asyncio.ensure_future(client.get_object("b", "o", retry=async_retry_for(GET, policy)))
            await failed.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())
    assert store.calls == ["GetObject"]
