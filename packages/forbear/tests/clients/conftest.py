"""The flavours of clients to test, and one embedded cloud for all tests, empty but for a bucket before each.

`make test` runs every library and every style, but not each pair of them.
"""

import socket
from collections.abc import Iterator

import pytest

from forbear_cloud import Cloud
from forbear_testkit.clients.flavours import FLAVOURS, Flavour

REST = {"httpx-asyncio", "httpx2", "httpx2-trio", "redis-async", "valkey"}
"""The pairs of a library and a style that are left to `make soak`: the others have each library and each style."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of these pairs."""
    parameters = (
        item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    )
    if any(getattr(parameter, "name", None) in REST for parameter in parameters):
        item.add_marker(pytest.mark.soak)


@pytest.fixture(params=FLAVOURS, ids=lambda flavour: flavour.name)
def flavour(request: pytest.FixtureRequest) -> Flavour:
    """One library in one style."""
    chosen: Flavour = request.param
    return chosen


@pytest.fixture(scope="session")
def running_cloud() -> Iterator[Cloud]:
    """A cloud for all tests, since starting one takes longer than most of them; some reach it by other names."""
    with Cloud(allowed_hosts=["api.example.com", "storage.googleapis.com.evil.example"]) as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud) -> Cloud:
    """The cloud with nothing in it but the bucket "bkt"."""
    running_cloud.reset()
    running_cloud.clear_faults()
    running_cloud.store.create_bucket("bkt")
    return running_cloud


@pytest.fixture
def closed_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
