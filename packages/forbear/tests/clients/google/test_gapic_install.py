"""`install` on Google's generated clients, sync and asyncio, over gRPC and REST: executions on real servers."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.api_core import exceptions
from google.cloud import redis_v1
from google.cloud.location import locations_pb2
from google.cloud.redis_v1.services.cloud_redis.transports import (
    CloudRedisGrpcAsyncIOTransport,
    CloudRedisGrpcTransport,
    CloudRedisRestTransport,
)

import forbear
from forbear.clients.google import install, retry_for
from forbear.testing import virtual_time
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.intercepted import UNAVAILABLE
from forbear_testkit.clients.google.rest_server import Fate
from forbear_testkit.clients.google.rest_server import running as running_rest
from forbear_testkit.clients.google.rpc_server import Server, running

NAME = "projects/p/locations/l/instances/i"
NONE: dict[str, Any] = {}
CREDENTIALS: Any = ANONYMOUS
Send = Callable[..., Any]


def send(server: Server, method: str, request: Any, options: dict[str, Any] = NONE, **arguments: Any) -> Any:
    """Make one call of a sync client with forbear's retries, which have these options."""
    with grpc.insecure_channel(server.target) as channel:
        client = redis_v1.CloudRedisClient(transport=CloudRedisGrpcTransport(channel=channel))
        assert forbear.install(client, **options) is client
        return getattr(client, method)(request, **arguments)


def asend(server: Server, method: str, request: Any, options: dict[str, Any] = NONE, **arguments: Any) -> Any:
    """The same with an asyncio client."""

    async def run() -> Any:
        async with grpc.aio.insecure_channel(server.target) as channel:
            client = redis_v1.CloudRedisAsyncClient(transport=CloudRedisGrpcAsyncIOTransport(channel=channel))
            return await getattr(forbear.install(client, **options), method)(request, **arguments)

    return asyncio.run(run())


@pytest.fixture(params=[send, asend], ids=["sync", "aio"])
def call(request: pytest.FixtureRequest) -> Send:
    """One of the two styles."""
    chosen: Send = request.param
    return chosen


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that ends calls as the test says."""
    with running() as server:
        yield server


@pytest.mark.parametrize(
    ("method", "request_", "executions"),
    [
        ("get_instance", {"name": NAME}, 2),
        ("list_locations", locations_pb2.ListLocationsRequest(name="projects/p"), 2),  # in no table: a GET
        ("failover_instance", {"name": NAME}, 1),
        ("export_instance", {"name": NAME}, 1),
    ],
)
def test_each_method_is_judged_by_its_rpc(
    server: Server, call: Send, method: str, request_: Any, executions: int
) -> None:
    """A read is repeated, which Google's client does not; what may do harm is executed once."""
    server.fail(UNAVAILABLE)
    with virtual_time(seed=1):
        if executions == 2:
            call(server, method, request_)
        else:
            with pytest.raises(exceptions.ServiceUnavailable, match="as told"):
                call(server, method, request_)
    assert len(server.calls) == executions


def test_options_hold_for_all_methods(server: Server, call: Send) -> None:
    """The user's word and the limits, too."""
    server.fail(UNAVAILABLE, times=3)
    options: dict[str, Any] = {"safe": "/google.cloud.redis.v1.CloudRedis/Failover*", "attempts": 3}
    with virtual_time(seed=1), pytest.raises(exceptions.ServiceUnavailable) as caught:
        call(server, "failover_instance", {"name": NAME}, options)
    assert len(server.calls) == 3
    assert forbear.report(caught.value) is not None


def test_a_call_with_a_retry_of_its_own_keeps_it(server: Server, call: Send) -> None:
    """None turns retries off."""
    server.fail(UNAVAILABLE)
    with virtual_time(seed=1), pytest.raises(exceptions.ServiceUnavailable):
        call(server, "get_instance", {"name": NAME}, retry=None)
    assert len(server.calls) == 1


@pytest.mark.parametrize(("method", "executions"), [("get_instance", 2), ("failover_instance", 1)])
def test_a_rest_transport(method: str, executions: int) -> None:
    """The same judgement over REST."""
    with running_rest() as server, virtual_time(seed=1):
        transport = CloudRedisRestTransport(host=server.host, credentials=CREDENTIALS, url_scheme="http")
        with install(redis_v1.CloudRedisClient(transport=transport)) as client:
            server.fail(Fate(503, executed=True))
            if executions == 2:
                assert getattr(client, method)({"name": NAME}) is not None
            else:
                with pytest.raises(exceptions.ServiceUnavailable):
                    getattr(client, method)({"name": NAME})
        assert len(server.executed) == executions


def test_what_is_refused(server: Server) -> None:
    """A second installation and anything but a generated client are refused with the reason."""
    with grpc.insecure_channel(server.target) as channel:
        client = install(redis_v1.CloudRedisClient(transport=CloudRedisGrpcTransport(channel=channel)))
        with pytest.raises(ValueError, match="has forbear's retries already"):
            install(client)
    other: Any = retry_for("google.cloud.redis.v1.CloudRedis/GetInstance")
    with pytest.raises(TypeError, match=r"must be a generated client of Google; for any other write retry=forbear"):
        install(other)
