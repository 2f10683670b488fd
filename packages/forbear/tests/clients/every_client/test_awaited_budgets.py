"""A budget that does I/O: the adapters of async clients await it, those of sync clients call it."""

import asyncio
import socket
from typing import Any

import grpc
import grpc.aio
import pytest

from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.core.report import report
from forbear.policy import Policy
from forbear.services import rfc9110
from forbear_testkit.clients.others import BLIND_TOO
from forbear_testkit.run.remote_budget import Remote

RPC = "a.B/C"


@pytest.fixture
def closed_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


class Instant(Remote):
    """The same without a wait, for clients that have no virtual time."""

    __slots__ = ()

    def take(self) -> bool:
        """Answer a sync loop."""
        return self._answer("take")

    async def atake(self) -> bool:
        """Answer an async loop."""
        return self._answer("atake")


def under(budget: Remote) -> Policy:
    """Return the usual policy with this budget."""
    return rfc9110.policy.with_budget(budget).with_on_event(budget.note)


@BLIND_TOO
def test_every_client_asks_the_budget(flavour: Any, closed_port: int) -> None:
    """One retry is granted, the next is refused, and the client's own error is raised."""
    budget = Remote(True, False)
    result = flavour.call(flavour.transport(under(budget)), "GET", f"http://127.0.0.1:{closed_port}/x")
    method = "atake" if flavour.is_async else "take"
    assert budget.log == [method, "Scheduled", method, "GaveUp"]
    given_up = report(result.error)
    assert given_up is not None
    assert (given_up.count, given_up.text) == (2, "the retry budget is used up")


def test_grpc_aio(closed_port: int) -> None:
    """The interceptors for asyncio await it, for messages and for streams."""
    budget = Instant(False, False)

    async def main() -> None:
        interceptors = aio_interceptors(under(budget), safe=[RPC])
        async with grpc.aio.insecure_channel(f"127.0.0.1:{closed_port}", interceptors=interceptors) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await channel.unary_unary(f"/{RPC}", bytes, bytes)(b"")
            with pytest.raises(grpc.aio.AioRpcError):
                await anext(aiter(channel.unary_stream(f"/{RPC}", bytes, bytes)(b"")))

    asyncio.run(main())
    assert budget.log == ["atake", "GaveUp", "atake", "GaveUp"]


def test_grpc_sync(closed_port: int) -> None:
    """The interceptor for sync channels calls it."""
    budget = Instant(False)
    with grpc.insecure_channel(f"127.0.0.1:{closed_port}") as channel:
        retrying = grpc.intercept_channel(channel, RetryInterceptor(under(budget), safe=[RPC]))
        with pytest.raises(grpc.RpcError):
            retrying.unary_unary(f"/{RPC}", bytes, bytes)(b"")
    assert budget.log == ["take", "GaveUp"]
